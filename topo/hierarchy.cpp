#include "topo/hierarchy.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/keyed_hash.h"

namespace plait::topo {
namespace {

// Of hierarchies that are given as numbers.
constexpr std::array kinds = {LevelKind::node, LevelKind::package, LevelKind::numa,
                              LevelKind::l3,   LevelKind::core,    LevelKind::rank};

constexpr std::array<std::string_view, 9> kind_names = {"switch", "node", "island", "package", "numa",
                                                        "l3",     "core", "gpu",    "rank"};

// A level before it has a place in a hierarchy's memory.
struct SplitLevel {
  LevelKind kind;
  std::vector<int> group_first;
  int cardinality;
};

// Ranks that are being split, level by level, into ever smaller groups of consecutive vranks.
// Within a group ranks ascend, so that the children's order of first appearance is that of their smallest ranks.
class Grouping {
 public:
  explicit Grouping(std::size_t ranks) : order(ranks), first(ranks > 0 ? 1 : 0) {
    std::iota(order.begin(), order.end(), 0);
    members_.reserve(ranks);
  }

  // Splits every group by `key_of(rank)`, but not the groups in which `known(rank)` is false for somebody.
  template <class KeyOf, class Known>
  void split(LevelKind kind, KeyOf key_of, Known known) {
    std::vector<int> children;
    children.reserve(first.size());
    int most = 1, fewest = static_cast<int>(order.size());
    for (std::size_t group = 0; group < first.size(); ++group) {
      const auto before = children.size();
      split_group(first[group], end_of(group), key_of, known, children);
      const int count = static_cast<int>(children.size() - before);
      most = std::max(most, count);
      fewest = std::min(fewest, count);
    }
    if (most == 1) return;
    levels.push_back({kind, children, most == fewest ? most : 0});
    first = std::move(children);
  }

  std::vector<int> order;  // vrank -> rank
  std::vector<int> first;  // first vrank of each group of the innermost level so far
  std::vector<SplitLevel> levels;

 private:
  struct Run {
    int begin, end;
  };

  int end_of(std::size_t group) const {
    return group + 1 < first.size() ? first[group + 1] : static_cast<int>(order.size());
  }

  template <class KeyOf, class Known>
  void split_group(int begin, int end, KeyOf key_of, Known known, std::vector<int>& children) {
    const auto from = order.begin() + begin, to = order.begin() + end;
    const auto key = key_of(*from);
    const auto same = [&](int rank) { return key_of(rank) == key; };
    if (!std::all_of(from, to, known) || std::all_of(from, to, same)) {
      children.push_back(begin);
      return;
    }
    members_.assign(from, to);
    std::sort(members_.begin(), members_.end(),
              [&](int a, int b) { return std::pair(key_of(a), a) < std::pair(key_of(b), b); });
    find_runs(key_of);
    int vrank = begin;
    for (const Run& run : runs_) {
      children.push_back(vrank);
      vrank = static_cast<int>(
          std::copy(members_.begin() + run.begin, members_.begin() + run.end, order.begin() + vrank) - order.begin());
    }
  }

  // The runs of equal keys in `members_`, that with the smallest rank first.
  template <class KeyOf>
  void find_runs(KeyOf key_of) {
    runs_.clear();
    const int size = static_cast<int>(members_.size());
    for (int begin = 0, end = 1; begin < size; begin = end++) {
      while (end < size && key_of(members_[end]) == key_of(members_[begin])) ++end;
      runs_.push_back({begin, end});
    }
    std::sort(runs_.begin(), runs_.end(),
              [&](const Run& a, const Run& b) { return members_[a.begin] < members_[b.begin]; });
  }

  std::vector<int> members_;
  std::vector<Run> runs_;
};

constexpr auto always = [](int) { return true; };

// Whether the switches say something that the nodes do not, and nothing that contradicts them: each rank's is known,
// each node hangs on one, and some switch has several nodes.
bool switches_group_nodes(std::span<const Location> locations) {
  std::vector<std::pair<HostId, std::uint64_t>> nodes;
  std::vector<std::uint64_t> switches;
  nodes.reserve(locations.size());
  for (const Location& location : locations) {
    if (location.leaf_switch == 0) return false;
    nodes.emplace_back(location.host, location.leaf_switch);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (node > 0 && nodes[node].first == nodes[node - 1].first) return false;
    switches.push_back(nodes[node].second);
  }
  std::sort(switches.begin(), switches.end());
  return std::adjacent_find(switches.begin(), switches.end()) != switches.end();
}

std::string cardinalities(const Level& level, std::span<const int> parent_first) {
  if (level.cardinality > 0) return std::to_string(level.cardinality);
  constexpr std::size_t shown = 8;
  std::string text;
  auto child = level.group_first.begin();
  for (std::size_t parent = 0; parent < parent_first.size(); ++parent) {
    if (parent == shown) return text + ",..";
    const auto next = parent + 1 < parent_first.size()
                          ? std::lower_bound(child, level.group_first.end(), parent_first[parent + 1])
                          : level.group_first.end();
    if (parent > 0) text += ',';
    text += std::to_string(next - child);
    child = next;
  }
  return text;
}

// An image: these, of each level these, the numbers from 0 on, a list of each kind that is not the same as they, the
// nodes' first vranks, the groups of each level, and a hash of all that.
struct ImageHead {
  int ranks, nodes, levels, in_order;  // in_order: vranks are ranks
};
struct ImageLevel {
  int kind, cardinality, groups;
};
constexpr std::size_t head_numbers = sizeof(ImageHead) / sizeof(int), level_numbers = sizeof(ImageLevel) / sizeof(int),
                      hash_numbers = sizeof(KeyedHash) / sizeof(int);  // at the end (hierarchy_print.h)

bool counts_up(std::span<const int> numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != static_cast<int>(i)) return false;
  return true;
}

// Takes the lists of an image one after the other.
class ImageReader {
 public:
  explicit ImageReader(const int* begin) : at_(begin) {}
  Numbering take(std::size_t count) {
    const Numbering taken(at_, count);
    at_ += count;
    return taken;
  }
  const int* at() const { return at_; }

 private:
  const int* at_;
};

// `order[vrank]` is a rank; `node_first` is the first vrank of each node.
Hierarchy assembled(const std::vector<int>& order, const std::vector<SplitLevel>& levels, std::vector<int> node_first) {
  const std::size_t ranks = order.size();
  const bool in_order = counts_up(order);
  std::vector<int> image = {static_cast<int>(ranks), static_cast<int>(node_first.size()),
                            static_cast<int>(levels.size()), in_order ? 1 : 0};
  const auto add = [&image](std::span<const int> numbers) {
    image.insert(image.end(), numbers.begin(), numbers.end());
  };
  for (const SplitLevel& level : levels)
    add(std::array{static_cast<int>(level.kind), level.cardinality, static_cast<int>(level.group_first.size())});
  std::vector<int> counting(ranks), vrank_of(ranks), node_of(ranks);
  std::iota(counting.begin(), counting.end(), 0);
  node_first.push_back(static_cast<int>(ranks));
  for (std::size_t node = 0; node + 1 < node_first.size(); ++node)
    for (int vrank = node_first[node]; vrank < node_first[node + 1]; ++vrank) {
      const auto rank = static_cast<std::size_t>(order[static_cast<std::size_t>(vrank)]);
      vrank_of[rank] = vrank;
      node_of[rank] = static_cast<int>(node);
    }
  add(counting);
  if (!in_order) {
    add(order);
    add(vrank_of);
  }
  add(node_of);
  add(node_first);
  for (const SplitLevel& level : levels)
    if (level.group_first.size() < ranks) add(level.group_first);
  const KeyedHash hash = keyed_hash({}, std::as_bytes(std::span<const int>(image)));
  std::array<int, hash_numbers> print{};
  static_assert(sizeof print == sizeof hash);
  std::memcpy(print.data(), hash.data(), sizeof print);
  add(print);
  const auto kept = std::make_shared<const std::vector<int>>(std::move(image));
  return Hierarchy::of_image({kept, kept->data()});
}

}  // namespace

std::string_view name(LevelKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

Hierarchy Hierarchy::from_locations(std::span<const Location> locations) {
  Grouping grouping(locations.size());
  if (switches_group_nodes(locations)) {
    grouping.split(
        LevelKind::leaf_switch, [&](int rank) { return locations[rank].leaf_switch; }, always);
  }
  grouping.split(
      LevelKind::node, [&](int rank) { return locations[rank].host; }, always);
  std::vector<int> node_first = grouping.first;

  const std::size_t outside = grouping.levels.size();
  for (const auto& [kind, member] : levels_within_node) {
    if (grouping.levels.size() - outside + 1 == most_levels_within_node) break;
    const auto key_of = [&, index = member](int rank) { return locations[rank].*index; };
    grouping.split(kind, key_of, [&](int rank) { return key_of(rank) >= 0; });
  }
  grouping.split(
      LevelKind::rank, [](int rank) { return rank; }, always);
  return assembled(grouping.order, grouping.levels, std::move(node_first));
}

Hierarchy Hierarchy::uniform_of(std::span<const int> given) {
  int stride = 1;
  for (const int cardinality : given) {
    assert(cardinality >= 1);
    stride *= cardinality;
  }
  Grouping grouping(static_cast<std::size_t>(stride));
  std::vector<int> node_first = grouping.first;
  std::size_t depth = 0;
  for (const int cardinality : given) {
    if (cardinality == 1) continue;
    stride /= cardinality;
    grouping.split(
        kinds[std::min(depth, kinds.size() - 1)], [&](int rank) { return rank / stride; }, always);
    if (depth++ == 0) node_first = grouping.first;
  }
  return assembled(grouping.order, grouping.levels, std::move(node_first));
}

Hierarchy Hierarchy::nodes_of(std::span<const int> ranks_per_node) {
  std::vector<Location> locations;
  for (std::size_t node = 0; node < ranks_per_node.size(); ++node) {
    assert(ranks_per_node[node] >= 1);
    Location location;
    location.host.low = node;
    locations.insert(locations.end(), static_cast<std::size_t>(ranks_per_node[node]), location);
  }
  return from_locations(locations);
}

Hierarchy Hierarchy::of_image(std::shared_ptr<const int> memory) {
  Hierarchy result;
  const int* begin = memory.get();
  ImageReader reader(begin);
  const Numbering head = reader.take(head_numbers);
  const auto ranks = static_cast<std::size_t>(head[0]), levels = static_cast<std::size_t>(head[2]);
  const bool in_order = head[3] != 0;
  const Numbering described = reader.take(levels * level_numbers), counting = reader.take(ranks);
  result.rank_at_ = in_order ? counting : reader.take(ranks);
  result.vrank_of_ = in_order ? counting : reader.take(ranks);
  result.node_of_ = reader.take(ranks);
  result.node_first_ = reader.take(static_cast<std::size_t>(head[1]) + 1);
  for (std::size_t level = 0; level < levels; ++level) {
    const auto one = described.subspan(level * level_numbers, level_numbers);
    const auto groups = static_cast<std::size_t>(one[2]);
    result.levels_.push_back(
        {static_cast<LevelKind>(one[0]), groups == ranks ? counting : reader.take(groups), one[1]});
  }
  reader.take(hash_numbers);
  result.image_ = {begin, reader.at()};
  result.memory_ = std::move(memory);
  return result;
}

bool Hierarchy::uniform() const {
  return std::all_of(levels_.begin(), levels_.end(), [](const Level& level) { return level.cardinality > 0; });
}

std::vector<int> Hierarchy::ranks_on_node(int node) const {
  const auto first = static_cast<std::size_t>(node_first_[static_cast<std::size_t>(node)]);
  return Numbering(
      rank_at_.subspan(first, static_cast<std::size_t>(node_first_[static_cast<std::size_t>(node) + 1]) - first));
}

std::string Hierarchy::describe() const {
  static constexpr int whole = 0;
  std::span<const int> parent_first(&whole, 1);
  std::string text = "[";
  for (const Level& level : levels_) {
    if (text.size() > 1) text += ", ";
    text += cardinalities(level, parent_first) + ' ' + std::string(name(level.kind));
    parent_first = level.group_first;
  }
  return text + "]";
}

}  // namespace plait::topo
