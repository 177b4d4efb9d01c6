// The levels that split a communicator, outermost first, and the vrank order of its ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topo/location.h"

namespace plait::topo {

enum class LevelKind : std::uint8_t { leaf_switch, node, island, package, numa, l3, core, gpu, rank };
std::string_view name(LevelKind kind);  // "switch", "node", ...

// The levels within a node, outermost first, and where a rank is on each of them.
struct LevelWithinNode {
  LevelKind kind;
  std::int32_t Location::*place;
};
inline constexpr std::array<LevelWithinNode, 6> levels_within_node = {{
    {LevelKind::island, &Location::island},
    {LevelKind::package, &Location::package},
    {LevelKind::numa, &Location::numa},
    {LevelKind::l3, &Location::l3},
    {LevelKind::core, &Location::core},
    {LevelKind::gpu, &Location::gpu},
}};

// Of a hierarchy; plans and shapes have no room for more. Where a machine has more of them, the innermost but `rank`
// are left out.
inline constexpr std::size_t most_levels_within_node = 5;

// Whole numbers in a hierarchy's memory: valid as long as it lives, or a copy of it.
struct Numbering : std::span<const int> {
  using std::span<const int>::span;
  Numbering(std::span<const int> numbers) : std::span<const int>(numbers) {}
  operator std::vector<int>() const { return {begin(), end()}; }
  friend bool operator==(const Numbering& a, std::span<const int> b) { return std::ranges::equal(a, b); }
};

// One level: how each group of the level above is split. Virtual ranks (vranks) are positions in that order, 0 ..
// ranks-1.
struct Level {
  LevelKind kind;
  // First vrank of each group at this level, ascending, starting with 0. Every group of the level above is split at
  // these vranks. At the innermost level each vrank is its own group.
  Numbering group_first;
  // Groups in each parent group, when it is the same for all parents; 0 when it differs.
  int cardinality = 0;
};

// Immutable once made, so that copies share their memory: at most 16 bytes a rank, 8 where vranks are ranks, and 4 for
// each group of a level but the innermost. A default-constructed one has no rank. Levels at which no group is split are
// dropped, so every level has some parent with two or more children. A communicator of one rank has no level.
class Hierarchy {
 public:
  // `locations[r]` is rank r's. Ranks that nothing distinguishes further are split by a last level of kind `rank`,
  // in rank order. Within a group the children are ordered by their smallest rank, so that the result does not depend
  // on how hosts happen to be numbered; rank 0 always has vrank 0.
  // A group is split at a level only when the level is known for all of its members; by switch, moreover, only when
  // the ranks of each node agree on theirs and some switch has several nodes. An island of GPUs counts before packages,
  // as what its ranks exchange is in its memory; a GPU of its own only where nothing of the processors tells ranks
  // apart.
  static Hierarchy from_locations(std::span<const Location> locations);

  // A uniform hierarchy of these cardinalities (outermost first, ones dropped), rank = vrank. For tools and tests.
  // Kinds: node first, then package, numa, l3, core as far as they are needed, and `rank` for all that follow.
  static Hierarchy uniform_of(std::span<const int> cardinalities);
  // Two levels, node and rank, with the given number of ranks on each node.
  static Hierarchy nodes_of(std::span<const int> ranks_per_node);

  // All of it as plain numbers, for other processes; and what has that image again, as long as `memory` lives, which
  // begins with it.
  std::span<const int> image() const { return image_; }
  static Hierarchy of_image(std::shared_ptr<const int> memory);

  int ranks() const { return static_cast<int>(rank_at_.size()); }
  std::span<const Level> levels() const { return levels_; }
  bool uniform() const;  // every level has one cardinality

  int rank_at(int vrank) const { return rank_at_[vrank]; }
  int vrank_of(int rank) const { return vrank_of_[rank]; }

  // Index of the node that `rank` is on, 0 .. nodes()-1 in vrank order.
  int node_of(int rank) const { return node_of_[rank]; }
  int nodes() const { return std::max(static_cast<int>(node_first_.size()) - 1, 0); }
  // The same for all ranks.
  Numbering nodes_by_rank() const { return node_of_; }
  // What keeps them.
  const std::shared_ptr<const int>& memory() const { return memory_; }
  // First vrank of each node, ascending. Not the outermost level's where that is `switch`, or where there is one node.
  std::span<const int> node_first() const { return node_first_.first(static_cast<std::size_t>(nodes())); }
  // Ranks of one node, in vrank order.
  std::vector<int> ranks_on_node(int node) const;

  // "[4 node, 2 core]"; a non-uniform level as "3,2,1 rank", cut after 8 groups: "3,2,1,2,2,2,2,2,.. rank".
  // One rank: "[]".
  std::string describe() const;

 private:
  std::shared_ptr<const int> memory_;
  std::span<const int> image_;
  std::vector<Level> levels_;
  Numbering rank_at_;     // vrank -> rank
  Numbering vrank_of_;    // rank -> vrank
  Numbering node_of_;     // rank -> node index
  Numbering node_first_;  // node index -> first vrank; one more entry at the end: ranks()
};

}  // namespace plait::topo
