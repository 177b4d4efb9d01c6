#include "tuner/text/platform.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

constexpr int most_nodes = 1 << 20;

Status refused(const std::string& why) { return {Code::invalid, "platform: " + why}; }

// The text of an attribute of the element that begins the text.
std::optional<std::string> attribute(std::string_view element, std::string_view name) {
  for (std::size_t at = element.find(name); at != element.npos; at = element.find(name, at + 1)) {
    const std::size_t equals = at + name.size();
    if (at == 0 || std::string_view(" \t\n").find(element[at - 1]) == std::string_view::npos) continue;
    if (equals + 1 >= element.size() || element[equals] != '=') continue;
    const char quote = element[equals + 1];
    const std::size_t end = element.find(quote, equals + 2);
    if ((quote != '"' && quote != '\'') || end == element.npos) continue;
    return std::string(element.substr(equals + 2, end - equals - 2));
  }
  return std::nullopt;
}

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit rate_units[] = {{"TBps", 1e12},     {"GBps", 1e9},     {"MBps", 1e6},     {"kBps", 1e3},
                               {"Tbps", 1e12 / 8}, {"Gbps", 1e9 / 8}, {"Mbps", 1e6 / 8}, {"kbps", 1e3 / 8},
                               {"Bps", 1},         {"bps", 1.0 / 8}};
constexpr Unit time_units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

template <std::size_t N>
Result<double> quantity(std::string_view element, std::string_view name, const Unit (&units)[N]) {
  const std::optional<std::string> text = attribute(element, name);
  if (!text) return refused("the cluster has no " + std::string(name));
  double value = 0;
  const auto [rest, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  const std::string_view unit(rest, static_cast<std::size_t>(text->data() + text->size() - rest));
  for (const Unit& known : units)
    if (error == std::errc() && unit == known.name && value > 0 && std::isfinite(value)) return value * known.factor;
  return refused(std::string(name) + "=\"" + *text + "\": expected a positive number with a unit, such as 5" +
                 std::string(units[1].name));
}

Result<std::vector<int>> numbers(const std::string& text) {
  std::vector<int> found;
  for (const std::string& part : split(text, ',')) {
    int number = 0;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || rest != part.data() + part.size() || number < 1 || number > most_nodes)
      return refused("topo_parameters: \"" + text + "\": expected positive numbers");
    found.push_back(number);
  }
  return found;
}

// By topology: who hangs together, and what leaves them.
Status add_topology(const std::string& topology, const std::string& parameters, Platform& platform) {
  std::vector<std::vector<int>> parts;
  for (const std::string& part : split(parameters, ';')) {
    Result<std::vector<int>> found = numbers(part);
    if (!found.ok()) return found.status();
    parts.push_back(std::move(*found));
  }
  const auto shaped = [&](std::initializer_list<std::size_t> sizes) {
    return std::ranges::equal(parts, sizes, {}, [](const auto& part) { return part.size(); });
  };
  platform.far_latency_s = platform.group_latency_s = 2 * platform.link_latency_s;
  if (topology == "FAT_TREE") {
    platform.topology = Topology::fat_tree;
    if (!shaped({1, 2, 2, 2}) || parts[0][0] != 2)
      return refused("topo_parameters: \"" + parameters +
                     "\": expected a tree of two levels, such as 2;32,128;1,16;1,1");
    platform.group = parts[1][0];
    platform.group_rate = platform.link_rate * parts[2][1] * parts[3][1];
    platform.far_latency_s = 4 * platform.link_latency_s;
  } else if (topology == "DRAGONFLY") {
    platform.topology = Topology::dragonfly;
    if (!shaped({2, 2, 2, 1}))
      return refused("topo_parameters: \"" + parameters +
                     "\": expected groups, chassis, routers and nodes, such as 32,4;1,1;32,1;4");
    // A group's way to group g leaves by its first chassis' router g, which SimGrid 3.32 takes to be there.
    if (parts[0][0] > parts[2][0])
      return refused("topo_parameters: \"" + parameters +
                     "\": SimGrid takes no more groups than a chassis has routers");
    platform.group = parts[1][0] * parts[2][0] * parts[3][0];
    platform.group_rate = platform.link_rate * parts[0][1] * std::max(parts[0][0] - 1, 1);
    // To the node's router and from it; within each group to a router of its chassis, and to another chassis.
    const int within = parts[1][0] > 1 ? 2 : 1;
    platform.far_latency_s = (3 + 2 * within) * platform.link_latency_s;
    platform.group_latency_s = (2 + within) * platform.link_latency_s;
    // A switch has one link to each other of its chassis, a group those of one pair of groups to each other group.
    platform.node_meeting = {.near = parts[3][0],
                             .messages = std::max(static_cast<double>(parts[3][0]) / parts[2][1], 1.0)};
    platform.group_meeting = {.messages = static_cast<double>(std::max(parts[0][0] - 1, 1))};
  } else if (topology == "TORUS") {
    platform.topology = Topology::torus;
    if (parts.size() != 1)
      return refused("topo_parameters: \"" + parameters + "\": expected lengths, such as 16,16,16");
    platform.group = parts[0][0];
    double hops = 0;
    for (const int length : parts[0]) hops += length / 4.0;
    platform.group_rate = platform.link_rate * 2 * static_cast<double>(parts[0].size() - 1) * parts[0][0];
    platform.far_latency_s = platform.link_latency_s * std::max(hops, 1.0);
    platform.node_meeting = {.ring = parts[0][0]};
    if (parts[0].size() > 1)  // a message takes one of the ways out of a node
      platform.group_meeting = {.messages = 2.0 * static_cast<double>(parts[0].size() - 1), .ring = parts[0][1]};
  } else if (topology != "FLAT") {
    return refused("topology \"" + topology + "\": expected FAT_TREE, DRAGONFLY, TORUS or FLAT");
  }
  return {};
}

constexpr std::array<std::string_view, 4> topology_names = {"flat", "fat-tree", "dragonfly", "torus"};

}  // namespace

std::string_view name(Topology topology) { return topology_names[static_cast<std::size_t>(topology)]; }

std::optional<Topology> topology_named(std::string_view name) {
  const auto found = std::ranges::find(topology_names, name);
  if (found == topology_names.end()) return std::nullopt;
  return static_cast<Topology>(found - topology_names.begin());
}

Result<Platform> read_platform(std::string_view text) {
  const std::size_t begin = text.find("<cluster");
  if (begin == text.npos) return refused("expected a file with one <cluster> (SimGrid's DTD 4.1)");
  if (text.find("<cluster", begin + 1) != text.npos) return refused("more than one <cluster>");
  const std::string_view element = text.substr(begin, text.find('>', begin) - begin);
  Platform platform;
  platform.id = attribute(element, "id").value_or("");
  platform.prefix = attribute(element, "prefix").value_or("");
  platform.suffix = attribute(element, "suffix").value_or("");
  const std::string radical = attribute(element, "radical").value_or("");
  int last = -1;
  const std::size_t dash = radical.find('-');
  std::from_chars(radical.data(), radical.data() + std::min(dash, radical.size()), platform.first);
  if (dash != radical.npos) std::from_chars(radical.data() + dash + 1, radical.data() + radical.size(), last);
  platform.nodes = last - platform.first + 1;
  if (platform.first < 0 || platform.nodes < 1 || platform.nodes > most_nodes)
    return refused("radical=\"" + radical + "\": expected the nodes' numbers, such as 0-4095");
  struct Field {
    std::string_view name;
    double* value;
    bool is_rate;
  };
  for (const Field& field :
       {Field{"bw", &platform.link_rate, true}, Field{"lat", &platform.link_latency_s, false},
        Field{"loopback_bw", &platform.near_rate, true}, Field{"loopback_lat", &platform.near_latency_s, false}}) {
    const Result<double> found =
        field.is_rate ? quantity(element, field.name, rate_units) : quantity(element, field.name, time_units);
    if (!found.ok()) return found.status();
    *field.value = *found;
  }
  if (Status status = add_topology(attribute(element, "topology").value_or("FLAT"),
                                   attribute(element, "topo_parameters").value_or("1"), platform);
      !status.ok())
    return status;
  return platform;
}

// "link_from_8191_8051_4108_UP" from a switch, whose numbers follow those of the nodes;
// "blue_link_between_group_0_and_4_..."; "torus_link_from_12_to_13_DOWN".
bool is_global_link(std::string_view name, Topology topology, int nodes) {
  switch (topology) {
    case Topology::fat_tree: {
      constexpr std::string_view before = "link_from_";
      int from = -1;
      if (!name.starts_with(before)) return false;
      std::from_chars(name.data() + before.size(), name.data() + name.size(), from);
      return from >= nodes;
    }
    case Topology::dragonfly:
      return name.starts_with("blue_link_");
    case Topology::torus:
      return name.starts_with("torus_link_from_");
    case Topology::flat:
      return false;
  }
  return false;
}

Machine machine_of(const Platform& platform) {
  Machine machine;
  machine.name = platform.id;
  if (platform.group > 0) {
    LinkLevel far{.name = "switch", .latency = platform.far_latency_s, .overhead = message_overhead_s, .network = true};
    far.port_seconds_per_byte = 1 / platform.group_rate;
    far.port_shared = true;
    far.meeting = platform.group_meeting;
    machine.levels.push_back(far);
  }
  LinkLevel node{.name = "node", .latency = platform.group_latency_s, .overhead = message_overhead_s, .network = true};
  node.port_seconds_per_byte = 1 / platform.link_rate;
  node.port_shared = true;
  node.meeting = platform.node_meeting;
  machine.levels.push_back(node);
  LinkLevel near{.name = "rank", .latency = platform.near_latency_s, .overhead = near_overhead_s};
  near.cpu_seconds_per_byte = 1 / platform.near_rate;
  machine.levels.push_back(near);
  return machine;
}

double least_seconds(Collective collective, std::size_t bytes, const PlatformJob& job, const Platform& platform) {
  // Of parts of the same size behind the same kind of way out: cards of nodes, links of groups.
  const auto bound = [&](double parts, double ranks_a_part, double rate) {
    const double all = static_cast<double>(bytes), others = parts - 1;
    if (parts <= 1) return 0.0;
    switch (collective) {
      case Collective::allreduce:
        return 2 * others / parts * all / rate;
      case Collective::bcast:
      case Collective::reduce:
        return all / rate;
      case Collective::allgather:
      case Collective::reduce_scatter_block:
        return others / parts * all / rate;
      case Collective::alltoall:
        return ranks_a_part * ranks_a_part * others * all / rate;
      default:
        return 0.0;
    }
  };
  double least = bound(job.nodes, job.ranks_per_node, platform.link_rate);
  if (platform.group > 0 && job.nodes > platform.group)
    least = std::max(least, bound(static_cast<double>(job.nodes) / platform.group,
                                  static_cast<double>(platform.group) * job.ranks_per_node, platform.group_rate));
  return least;
}

}  // namespace plait::tuner
