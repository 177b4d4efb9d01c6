#include "tuner/text/topo_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/units.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;
using Children = std::span<const MachineObject>;

// "Package", "2 x Package": `plain` for one.
std::string counted(std::size_t count, std::string_view word) {
  return (count == 1 ? "" : std::to_string(count) + " x ") + std::string(word);
}

std::string plural(int count, std::string_view one, std::string_view many) {
  return std::to_string(count) + ' ' + std::string(count == 1 ? one : many);
}

// The firmware's share of each NUMA node's memory differs a little: that does not make two nodes different.
bool alike(std::size_t a, std::size_t b) {
  constexpr double tolerance = 0.03;
  return std::abs(static_cast<double>(a) - static_cast<double>(b)) <= tolerance * static_cast<double>(std::max(a, b));
}

bool alike(const MachineObject& a, const MachineObject& b) {
  return a.type == b.type && alike(a.bytes, b.bytes) &&
         std::equal(a.children.begin(), a.children.end(), b.children.begin(), b.children.end(),
                    [](const MachineObject& x, const MachineObject& y) { return alike(x, y); });
}

// How many of the first children look alike.
std::size_t run_length(Children children) {
  std::size_t length = 1;
  while (length < children.size() && alike(children[0], children[length])) ++length;
  return length;
}

bool is_leaf_run(Children children) {
  return !children.empty() && children[0].children.empty() && run_length(children) == children.size();
}

// `within_run`: the objects stand for several parents, so that their indices would mislead.
void append_tree(Children children, int depth, bool within_run, std::string& text) {
  while (!children.empty()) {
    const std::size_t length = run_length(children);
    const MachineObject& first = children[0];
    text.append(static_cast<std::size_t>(depth) * 2, ' ').append(counted(length, first.type));
    if (!within_run) {
      text += ' ' + std::to_string(first.index);
      if (length > 1) text += '-' + std::to_string(children[length - 1].index);
    }
    if (first.bytes > 0) text += ", " + format_bytes(first.bytes);
    const bool collapse = is_leaf_run(first.children);
    if (collapse) {
      text += ", " + std::to_string(first.children.size()) + ' ' + first.children[0].type;
      if (length > 1) text += " each";
    }
    text += '\n';
    if (!collapse) append_tree(first.children, depth + 1, within_run || length > 1, text);
    children = children.subspan(length);
  }
}

Json object_json(const MachineObject& object) {
  Json json = {{"type", object.type}, {"index", object.index}};
  if (object.bytes > 0) json["bytes"] = object.bytes;
  json["children"] = Json::array();
  for (const MachineObject& child : object.children) json["children"].push_back(object_json(child));
  return json;
}

std::string decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string port_text(const VerbsPort& port) {
  std::string text = "HCA " + port.device + " port " + std::to_string(port.port) + ": " + port.state;
  text += port.ethernet ? ", Ethernet" : ", InfiniBand";
  if (port.bytes_per_second > 0) {
    text += ", " + decimal(port.bytes_per_second / 1e9) + " GB/s";
  }
  if (port.lid != 0) text += ", LID " + std::to_string(port.lid);
  if (!port.gid.empty()) text += ", GID " + port.gid;
  if (port.numa >= 0) text += ", NUMA node " + std::to_string(port.numa);
  return text;
}

Json known(std::int32_t index) { return index >= 0 ? Json(index) : Json(nullptr); }

std::string hex(HostId host) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(host.high),
                static_cast<unsigned long long>(host.low));
  return text;
}

std::vector<int> vrank_order(const Hierarchy& hierarchy) {
  std::vector<int> order(static_cast<std::size_t>(hierarchy.ranks()));
  for (int vrank = 0; vrank < hierarchy.ranks(); ++vrank) order[vrank] = hierarchy.rank_at(vrank);
  return order;
}

std::string node_text(const Hierarchy& hierarchy, std::span<const Location> locations, int node) {
  constexpr int most_ranks_listed = 64;  // beyond, one line a rank is no longer for people
  const std::vector<int> ranks = hierarchy.ranks_on_node(node);
  std::string text = "node " + std::to_string(node) + ", host " + locations[ranks[0]].hostname + ": ";
  text += (ranks.size() == 1 ? "rank " : "ranks ") + ranges_text(ranks) + '\n';
  if (hierarchy.ranks() > most_ranks_listed) return text;
  for (const int rank : ranks) {
    text += "  rank " + std::to_string(rank) + " at vrank " + std::to_string(hierarchy.vrank_of(rank)) + ": " +
            binding_text(locations[rank]) + '\n';
  }
  return text;
}

Json rank_json(const Hierarchy& hierarchy, const Location& location, int rank) {
  Json json = {{"rank", rank}, {"vrank", hierarchy.vrank_of(rank)}, {"node", hierarchy.node_of(rank)}};
  json.update(binding_json(location));
  return json;
}

}  // namespace

std::string machine_text(const MachineTopology& machine) {
  std::string text = machine.root.type;
  if (machine.root.bytes > 0) text += ", " + format_bytes(machine.root.bytes);
  text += ": " + plural(machine.packages, "package", "packages") + ", " +
          plural(machine.numa_nodes, "NUMA node", "NUMA nodes") + ", " +
          plural(machine.l3_caches, "L3 cache", "L3 caches") + ", " + plural(machine.cores, "core", "cores") + ", " +
          plural(machine.processing_units, "processing unit", "processing units") + '\n';
  append_tree(machine.root.children, 1, false, text);
  return text;
}

Json machine_json(const MachineTopology& machine) {
  return {{"packages", machine.packages},
          {"numa_nodes", machine.numa_nodes},
          {"l3_caches", machine.l3_caches},
          {"cores", machine.cores},
          {"processing_units", machine.processing_units},
          {"tree", object_json(machine.root)}};
}

std::string hcas_text(const Result<std::vector<VerbsPort>>& ports) {
  if (!ports.ok()) return "no HCA found (libibverbs: " + ports.status().message() + ")\n";
  if (ports->empty()) return "no HCA found (libibverbs: it lists no device)\n";
  std::string text;
  for (const VerbsPort& port : *ports) text += port_text(port) + '\n';
  return text;
}

std::string rails_text(std::span<const Rail> rails) {
  if (rails.empty()) return "no rail between nodes found\n";
  std::string text;
  for (const Rail& rail : rails) {
    text += "rail " + rail.name + ": " + std::string(name(rail.kind)) + ", network " + rail.network;
    if (rail.bytes_per_second > 0) text += ", " + format_bytes(static_cast<std::size_t>(rail.bytes_per_second)) + "/s";
    text += rail.used ? ", used\n" : ", not used: " + rail.state + "\n";
  }
  return text;
}

Json rails_json(std::span<const Rail> rails) {
  Json list = Json::array();
  for (const Rail& rail : rails)
    list.push_back({{"name", rail.name},
                    {"kind", name(rail.kind)},
                    {"network", rail.network},
                    {"bytes_per_second", rail.bytes_per_second},
                    {"state", rail.state},
                    {"used", rail.used}});
  return list;
}

Json hcas_json(const Result<std::vector<VerbsPort>>& ports) {
  Json json = {{"ports", Json::array()}, {"reason", nullptr}};
  if (!ports.ok()) {
    json["reason"] = ports.status().message();
    return json;
  }
  for (const VerbsPort& port : *ports) {
    json["ports"].push_back({{"device", port.device},
                             {"port", port.port},
                             {"active", port.active},
                             {"state", port.state},
                             {"link_layer", port.ethernet ? "ethernet" : "infiniband"},
                             {"bytes_per_second", port.bytes_per_second},
                             {"lid", port.lid},
                             {"gid", port.gid},
                             {"numa", known(port.numa)}});
  }
  return json;
}

std::string binding_text(const Location& location) {
  std::string text;
  const auto add = [&](std::string_view what, std::int32_t index) {
    if (index < 0) return;
    text += (text.empty() ? "" : ", ") + std::string(what) + ' ' + std::to_string(index);
  };
  add("package", location.package);
  add("NUMA node", location.numa);
  add("L3", location.l3);
  add("core", location.core);
  if (text.empty())
    text = "not bound";
  else if (location.core < 0)
    text += ", not bound to one core";
  add("GPU", location.gpu);
  add("island", location.island);
  return text;
}

Json binding_json(const Location& location) {
  return {{"package", known(location.package)},
          {"numa", known(location.numa)},
          {"l3", known(location.l3)},
          {"core", known(location.core)},
          {"gpu", known(location.gpu)},
          {"island", known(location.island)},
          {"processing_units_allowed", location.cores_allowed}};
}

std::string ranges_text(std::span<const int> numbers) {
  std::string text;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    const bool range = end - begin >= 3;
    if (!range) end = begin + 1;
    if (!text.empty()) text += ' ';
    text += std::to_string(numbers[begin]);
    if (range) text += '-' + std::to_string(numbers[end - 1]);
    begin = end;
  }
  return text;
}

std::string job_text(const Hierarchy& hierarchy, std::span<const Location> locations) {
  std::string text = "job: " + plural(hierarchy.ranks(), "rank", "ranks") + " on " +
                     plural(hierarchy.nodes(), "node", "nodes") + ", hierarchy " + hierarchy.describe() +
                     (hierarchy.uniform() ? ", uniform\n" : ", not uniform\n");
  text += "vrank order: ranks " + ranges_text(vrank_order(hierarchy)) + '\n';
  for (int node = 0; node < hierarchy.nodes(); ++node) text += node_text(hierarchy, locations, node);
  return text;
}

Json job_json(const Hierarchy& hierarchy, std::span<const Location> locations) {
  Json levels = Json::array(), ranks = Json::array(), nodes = Json::array();
  for (const Level& level : hierarchy.levels()) {
    levels.push_back({{"kind", name(level.kind)},
                      {"groups", level.group_first.size()},
                      {"cardinality", level.cardinality > 0 ? Json(level.cardinality) : Json(nullptr)},
                      {"group_first", std::vector<int>(level.group_first)}});
  }
  for (int rank = 0; rank < hierarchy.ranks(); ++rank) ranks.push_back(rank_json(hierarchy, locations[rank], rank));
  for (int node = 0; node < hierarchy.nodes(); ++node) {
    const std::vector<int> members = hierarchy.ranks_on_node(node);
    const Location& location = locations[members[0]];
    nodes.push_back({{"hostname", location.hostname}, {"host_id", hex(location.host)}, {"ranks", members}});
  }
  return {{"ranks", hierarchy.ranks()},   {"hierarchy", hierarchy.describe()},     {"uniform", hierarchy.uniform()},
          {"levels", std::move(levels)},  {"vrank_order", vrank_order(hierarchy)}, {"nodes", std::move(nodes)},
          {"locations", std::move(ranks)}};
}

}  // namespace plait::tuner
