#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "topo/hierarchy.h"
#include "topo/hierarchy_print.h"

namespace plait::topo {
namespace {

// A place within a node, in the order package, numa, l3, core.
Location at(std::uint64_t host, int package, int numa, int l3, int core) {
  Location location;
  location.host.low = host;
  location.package = package;
  location.numa = numa;
  location.l3 = l3;
  location.core = core;
  return location;
}

Location on_switch(std::uint64_t leaf_switch, Location location) {
  location.leaf_switch = leaf_switch;
  return location;
}

Location unbound(std::uint64_t host) { return at(host, -1, -1, -1, -1); }

Hierarchy of(const std::vector<Location>& locations) { return Hierarchy::from_locations(locations); }

std::vector<int> order_of(const Hierarchy& hierarchy) {
  std::vector<int> order;
  for (int vrank = 0; vrank < hierarchy.ranks(); ++vrank) order.push_back(hierarchy.rank_at(vrank));
  return order;
}

std::vector<LevelKind> kinds_of(const Hierarchy& hierarchy) {
  std::vector<LevelKind> kinds;
  for (const Level& level : hierarchy.levels()) kinds.push_back(level.kind);
  return kinds;
}

// `nodes` nodes of 2 packages of 2 L3 caches of 2 cores; package and NUMA node coincide.
std::vector<Location> regular_job(int nodes) {
  std::vector<Location> locations;
  for (int node = 0; node < nodes; ++node) {
    for (int core = 0; core < 8; ++core) locations.push_back(at(100 - node, core / 4, core / 4, core / 2, core));
  }
  return locations;
}

TEST(Hierarchy, OneRankHasNoLevel) {
  const auto hierarchy = of({unbound(7)});
  EXPECT_TRUE(hierarchy.levels().empty());
  EXPECT_EQ(hierarchy.ranks(), 1);
  EXPECT_EQ(hierarchy.nodes(), 1);
  EXPECT_TRUE(hierarchy.uniform());
  EXPECT_EQ(hierarchy.describe(), "[]");
}

TEST(Hierarchy, NoRankAtAll) {
  EXPECT_EQ(of({}).ranks(), 0);
  EXPECT_EQ(of({}).nodes(), 0);
  EXPECT_EQ(Hierarchy().nodes(), 0);
}

TEST(Hierarchy, CoincidingLevelsAreDropped) {
  const auto hierarchy = of(regular_job(4));
  EXPECT_EQ(hierarchy.describe(), "[4 node, 2 package, 2 l3, 2 core]");
  EXPECT_TRUE(hierarchy.uniform());
  EXPECT_EQ(hierarchy.levels()[1].group_first, (std::vector<int>{0, 4, 8, 12, 16, 20, 24, 28}));
}

TEST(Hierarchy, ByNodeNumberingIsPutInPlaceOrder) {
  const auto hierarchy = of({unbound(9), unbound(3), unbound(9), unbound(3), unbound(9), unbound(3)});
  EXPECT_EQ(order_of(hierarchy), (std::vector<int>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(hierarchy.describe(), "[2 node, 3 rank]");
  EXPECT_EQ(hierarchy.node_of(4), 0);
  EXPECT_EQ(hierarchy.node_of(3), 1);
  EXPECT_EQ(hierarchy.ranks_on_node(1), (std::vector<int>{1, 3, 5}));
}

TEST(Hierarchy, OneRankANodeEndsAtNodeLevel) {
  EXPECT_EQ(of({at(1, 0, 0, 0, 0), at(2, 0, 0, 0, 0), at(3, 0, 0, 0, 0)}).describe(), "[3 node]");
}

TEST(Hierarchy, AllRanksOnOneNodeHaveNoNodeLevel) {
  EXPECT_EQ(of({at(1, 0, 0, 0, 0), at(1, 0, 0, 0, 1), at(1, 1, 1, 1, 2), at(1, 1, 1, 1, 3)}).describe(),
            "[2 package, 2 core]");
}

TEST(Hierarchy, RanksOfOneCoreAreSplitByRank) {
  const auto hierarchy = of({at(1, 0, 0, 0, 0), at(1, 0, 0, 0, 0), at(1, 0, 0, 0, 1), at(1, 0, 0, 0, 1)});
  EXPECT_EQ(hierarchy.describe(), "[2 core, 2 rank]");
}

TEST(Hierarchy, UnboundRanksAreSplitByRankOnly) {
  EXPECT_EQ(of({unbound(1), unbound(1), unbound(2), unbound(2)}).describe(), "[2 node, 2 rank]");
}

TEST(Hierarchy, OneUnboundRankKeepsItsNodeWhole) {
  const auto hierarchy = of({at(1, 0, 0, 0, 0), at(1, 1, 1, 1, 1), at(2, 0, 0, 0, 0), unbound(2)});
  EXPECT_EQ(hierarchy.describe(), "[2 node, 2,1 package, 1,1,2 rank]");
  EXPECT_FALSE(hierarchy.uniform());
  EXPECT_EQ(hierarchy.levels()[1].group_first, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(hierarchy.levels()[2].group_first, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Hierarchy, PartlyBoundRanksAreSplitAsFarAsTheyAreKnown) {
  const auto hierarchy = of({at(1, 0, 0, -1, -1), at(1, 0, 0, 0, 0), at(1, 1, 1, 1, 1), at(1, 1, 1, -1, -1)});
  EXPECT_EQ(hierarchy.describe(), "[2 package, 2 rank]");
}

// ---- Switches ----

TEST(HierarchySwitch, SplitsOutermostAndTheNodesStayNodes) {
  std::vector<Location> locations;
  for (int rank = 0; rank < 8; ++rank) locations.push_back(on_switch(70 - rank / 4, unbound(rank / 2)));
  const auto hierarchy = of(locations);
  EXPECT_EQ(hierarchy.describe(), "[2 switch, 2 node, 2 rank]");
  EXPECT_EQ(hierarchy.nodes(), 4);
  EXPECT_EQ(hierarchy.node_of(5), 2);
  EXPECT_EQ(hierarchy.ranks_on_node(3), (std::vector<int>{6, 7}));
  EXPECT_EQ(std::vector<int>(hierarchy.node_first().begin(), hierarchy.node_first().end()),
            (std::vector<int>{0, 2, 4, 6}));
}

TEST(HierarchySwitch, RanksOfOneSwitchAreConsecutiveInPlaceOrder) {
  const auto hierarchy =
      of({on_switch(9, unbound(1)), on_switch(5, unbound(2)), on_switch(5, unbound(4)), on_switch(9, unbound(3))});
  EXPECT_EQ(hierarchy.describe(), "[2 switch, 2 node]");
  EXPECT_EQ(order_of(hierarchy), (std::vector<int>{0, 3, 1, 2}));
  EXPECT_EQ(hierarchy.nodes(), 4);
}

TEST(HierarchySwitch, UnevenSwitches) {
  const auto hierarchy =
      of({on_switch(1, unbound(1)), on_switch(1, unbound(2)), on_switch(2, unbound(3)), on_switch(2, unbound(3))});
  EXPECT_EQ(hierarchy.describe(), "[2 switch, 2,1 node, 1,1,2 rank]");
  EXPECT_EQ(hierarchy.nodes(), 3);
}

TEST(HierarchySwitch, SaysNothingWhereItIsUnknownForOneRank) {
  EXPECT_EQ(of({on_switch(1, unbound(1)), on_switch(1, unbound(2)), on_switch(2, unbound(3)), unbound(4)}).describe(),
            "[4 node]");
}

TEST(HierarchySwitch, SaysNothingWhereThereIsOneOrOneANode) {
  EXPECT_EQ(of({on_switch(1, unbound(1)), on_switch(1, unbound(2))}).describe(), "[2 node]");
  EXPECT_EQ(of({on_switch(1, unbound(1)), on_switch(2, unbound(2))}).describe(), "[2 node]");
  EXPECT_EQ(of({on_switch(1, unbound(1)), on_switch(1, unbound(1))}).describe(), "[2 rank]");
}

TEST(HierarchySwitch, IsNotBelievedWhereItSplitsANode) {
  const auto hierarchy =
      of({on_switch(1, unbound(1)), on_switch(2, unbound(1)), on_switch(2, unbound(2)), on_switch(1, unbound(3))});
  EXPECT_EQ(hierarchy.describe(), "[3 node, 2,1,1 rank]");
}

TEST(Hierarchy, UnevenNodes) {
  const auto hierarchy = Hierarchy::nodes_of(std::vector<int>{3, 2, 1});
  EXPECT_EQ(hierarchy.describe(), "[3 node, 3,2,1 rank]");
  EXPECT_EQ(hierarchy.nodes(), 3);
  EXPECT_EQ(hierarchy.node_of(4), 1);
  EXPECT_FALSE(hierarchy.uniform());
}

TEST(Hierarchy, NodesOfOneRankAndOfOneNode) {
  EXPECT_EQ(Hierarchy::nodes_of(std::vector<int>{1, 1}).describe(), "[2 node]");
  EXPECT_EQ(Hierarchy::nodes_of(std::vector<int>{4}).describe(), "[4 rank]");
}

TEST(Hierarchy, UniformOf) {
  const auto hierarchy = Hierarchy::uniform_of(std::vector<int>{4, 1, 2, 8});
  EXPECT_EQ(hierarchy.describe(), "[4 node, 2 package, 8 numa]");
  EXPECT_EQ(hierarchy.ranks(), 64);
  EXPECT_EQ(hierarchy.nodes(), 4);
  EXPECT_EQ(hierarchy.node_of(63), 3);
  EXPECT_EQ(hierarchy.rank_at(17), 17);
}

TEST(Hierarchy, UniformOfOneRankAndOfManyLevels) {
  EXPECT_EQ(Hierarchy::uniform_of(std::vector<int>{}).ranks(), 1);
  EXPECT_EQ(Hierarchy::uniform_of(std::vector<int>{1, 1}).describe(), "[]");
  EXPECT_EQ(Hierarchy::uniform_of(std::vector<int>(8, 2)).describe(),
            "[2 node, 2 package, 2 numa, 2 l3, 2 core, 2 rank, 2 rank, 2 rank]");
}

TEST(Hierarchy, LongUnevenLevelsAreCutInTheText) {
  std::vector<int> ranks_per_node(20, 2);
  ranks_per_node[0] = 1;
  EXPECT_EQ(Hierarchy::nodes_of(ranks_per_node).describe(), "[20 node, 1,2,2,2,2,2,2,2,.. rank]");
}

// ---- Properties over random jobs ----

// A job of a few nodes with random bindings, some unknown, numbered at random.
std::vector<Location> random_job(std::mt19937& random) {
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
  std::vector<Location> locations;
  const int nodes = pick(1, 5), cores_per_l3 = pick(1, 3), l3_per_numa = pick(1, 2), unknown_percent = pick(0, 2) * 10;
  const int switches = pick(0, 3);
  for (int node = 0; node < nodes; ++node) {
    for (int ranks = pick(1, 9); ranks > 0; --ranks) {
      const int core = pick(0, 11), l3 = core / cores_per_l3, numa = l3 / l3_per_numa;
      Location location = at(1000 - node, numa / 2, numa, l3, core);
      for (auto* index : {&location.core, &location.l3, &location.numa, &location.package}) {
        if (pick(0, 99) >= unknown_percent) break;
        *index = -1;
      }
      if (switches > 0) location.leaf_switch = 1 + node % switches;
      locations.push_back(location);
    }
  }
  std::shuffle(locations.begin(), locations.end(), random);
  return locations;
}

void expect_permutation(const Hierarchy& hierarchy) {
  std::vector<int> sorted = order_of(hierarchy), expected(sorted.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(sorted, expected);
  EXPECT_EQ(hierarchy.rank_at(0), 0);
  for (int vrank = 0; vrank < hierarchy.ranks(); ++vrank) {
    EXPECT_EQ(hierarchy.vrank_of(hierarchy.rank_at(vrank)), vrank);
  }
}

int smallest_rank(const Hierarchy& hierarchy, int begin, int end) {
  int smallest = hierarchy.ranks();
  for (int vrank = begin; vrank < end; ++vrank) smallest = std::min(smallest, hierarchy.rank_at(vrank));
  return smallest;
}

// Children of [begin, end) at `level`: first vranks, in order.
std::vector<int> children_of(const Level& level, int begin, int end) {
  const auto from = std::lower_bound(level.group_first.begin(), level.group_first.end(), begin);
  return {from, std::lower_bound(from, level.group_first.end(), end)};
}

void expect_children_by_smallest_rank(const Hierarchy& hierarchy, std::vector<int> children, int end) {
  children.push_back(end);
  int before = -1;
  for (std::size_t child = 0; child + 1 < children.size(); ++child) {
    const int smallest = smallest_rank(hierarchy, children[child], children[child + 1]);
    EXPECT_LT(before, smallest);
    before = smallest;
  }
}

void expect_level_splits(const Hierarchy& hierarchy, const std::vector<int>& parents, const Level& level) {
  std::set<std::size_t> counts;
  for (std::size_t parent = 0; parent < parents.size(); ++parent) {
    const int end = parent + 1 < parents.size() ? parents[parent + 1] : hierarchy.ranks();
    const auto children = children_of(level, parents[parent], end);
    ASSERT_FALSE(children.empty());
    EXPECT_EQ(children[0], parents[parent]) << "groups nest";
    expect_children_by_smallest_rank(hierarchy, children, end);
    counts.insert(children.size());
  }
  EXPECT_GE(*counts.rbegin(), 2u) << "every level splits something";
  EXPECT_EQ(level.cardinality, counts.size() == 1 ? static_cast<int>(*counts.begin()) : 0);
}

void expect_its_image_is_the_same(const Hierarchy& hierarchy) {
  const auto image = std::make_shared<const std::vector<int>>(hierarchy.image().begin(), hierarchy.image().end());
  const Hierarchy again = Hierarchy::of_image({image, image->data()});
  std::size_t outer_groups = 0;  // of levels that do not count each rank
  for (const Level& level : hierarchy.levels())
    if (static_cast<int>(level.group_first.size()) < hierarchy.ranks()) outer_groups += level.group_first.size();
  const std::size_t nodes = static_cast<std::size_t>(hierarchy.nodes()) + 1, levels = 3 * hierarchy.levels().size();
  EXPECT_LE(image->size(),
            4 * static_cast<std::size_t>(hierarchy.ranks()) + outer_groups + nodes + levels + 4 + print_numbers);
  EXPECT_TRUE(std::ranges::equal(print_of(again), print_of(hierarchy)));
  EXPECT_TRUE(std::ranges::equal(again.image(), hierarchy.image()));
  EXPECT_EQ(again.describe(), hierarchy.describe());
  EXPECT_EQ(again.nodes(), hierarchy.nodes());
  for (int rank = 0; rank < hierarchy.ranks(); ++rank) {
    EXPECT_EQ(again.vrank_of(rank), hierarchy.vrank_of(rank));
    EXPECT_EQ(again.rank_at(rank), hierarchy.rank_at(rank));
    EXPECT_EQ(again.node_of(rank), hierarchy.node_of(rank));
  }
}

void expect_well_formed(const Hierarchy& hierarchy) {
  expect_its_image_is_the_same(hierarchy);
  expect_permutation(hierarchy);
  std::vector<int> parents = {0};
  LevelKind before = LevelKind::leaf_switch;
  for (const Level& level : hierarchy.levels()) {
    EXPECT_TRUE(std::is_sorted(level.group_first.begin(), level.group_first.end(), std::less_equal<int>()) ||
                level.group_first.size() < 2);
    EXPECT_LE(before, level.kind);
    before = level.kind;
    expect_level_splits(hierarchy, parents, level);
    parents = level.group_first;
  }
  EXPECT_EQ(static_cast<int>(parents.size()), hierarchy.ranks()) << "at the innermost level each vrank is a group";
}

// Ranks of one group at a level agree on that level's index wherever the group above was split by it.
void expect_groups_match_locations(const Hierarchy& hierarchy, const std::vector<Location>& locations) {
  for (int a = 0; a < hierarchy.ranks(); ++a) {
    for (int b = 0; b < hierarchy.ranks(); ++b) {
      EXPECT_EQ(hierarchy.node_of(a) == hierarchy.node_of(b), locations[a].host == locations[b].host);
    }
  }
}

TEST(HierarchyProperty, RandomJobsAreWellFormed) {
  const unsigned base = 1 + static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed());
  for (unsigned seed = base; seed < base + 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto locations = random_job(random);
    const auto hierarchy = of(locations);
    expect_well_formed(hierarchy);
    expect_groups_match_locations(hierarchy, locations);
    if (testing::Test::HasFailure()) return;
  }
}

// The shape of the tree below each node, without its order.
std::multiset<std::string> node_shapes(const std::vector<Location>& locations) {
  std::map<HostId, std::vector<Location>> by_host;
  for (const auto& location : locations) by_host[location.host].push_back(location);
  std::multiset<std::string> shapes;
  for (const auto& [host, members] : by_host) {
    const auto hierarchy = of(members);
    std::string shape;
    for (const Level& level : hierarchy.levels()) {
      shape += std::string(name(level.kind)) + std::to_string(level.group_first.size()) + ' ';
    }
    shapes.insert(shape);
  }
  return shapes;
}

TEST(HierarchyProperty, NumberingDoesNotChangeTheTree) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto locations = random_job(random);
    auto renumbered = locations;
    std::shuffle(renumbered.begin(), renumbered.end(), random);
    const auto before = of(locations), after = of(renumbered);
    ASSERT_EQ(kinds_of(before), kinds_of(after));
    for (std::size_t level = 0; level < before.levels().size(); ++level) {
      EXPECT_EQ(before.levels()[level].group_first.size(), after.levels()[level].group_first.size());
      EXPECT_EQ(before.levels()[level].cardinality, after.levels()[level].cardinality);
    }
    EXPECT_EQ(node_shapes(locations), node_shapes(renumbered));
  }
}

TEST(HierarchyProperty, BySlotByNodeAndRandomNumberingGiveTheSameLevels) {
  const auto by_slot = regular_job(4);
  std::vector<Location> by_node;
  for (int rank = 0; rank < 32; ++rank) by_node.push_back(by_slot[rank % 4 * 8 + rank / 4]);
  auto shuffled = by_slot;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(42));
  const auto expected = of(by_slot);
  for (const auto& locations : {by_node, shuffled}) {
    const auto hierarchy = of(locations);
    expect_well_formed(hierarchy);
    ASSERT_EQ(hierarchy.describe(), expected.describe());
    for (std::size_t level = 0; level < expected.levels().size(); ++level) {
      EXPECT_EQ(hierarchy.levels()[level].group_first, expected.levels()[level].group_first);
    }
    // Place order puts the same cores side by side, whatever the ranks are called.
    for (int vrank = 0; vrank + 1 < 32; vrank += 2) {
      const Location &a = locations[hierarchy.rank_at(vrank)], &b = locations[hierarchy.rank_at(vrank + 1)];
      EXPECT_EQ(std::tuple(a.host, a.l3), std::tuple(b.host, b.l3));
    }
  }
}

TEST(HierarchyProperty, SubCommunicatorsAreHierarchiesOfTheirOwn) {
  const auto job = regular_job(4);
  std::vector<Location> even, one_a_node, last_node(job.end() - 8, job.end());
  for (std::size_t rank = 0; rank < job.size(); rank += 2) even.push_back(job[rank]);
  for (std::size_t rank = 0; rank < job.size(); rank += 8) one_a_node.push_back(job[rank]);
  EXPECT_EQ(of(even).describe(), "[4 node, 2 package, 2 l3]");
  EXPECT_EQ(of(one_a_node).describe(), "[4 node]");
  EXPECT_EQ(of(last_node).describe(), "[2 package, 2 l3, 2 core]");
}

TEST(Hierarchy, ThousandsOfRanks) {
  const auto hierarchy = of(regular_job(512));
  EXPECT_EQ(hierarchy.ranks(), 4096);
  EXPECT_EQ(hierarchy.describe(), "[512 node, 2 package, 2 l3, 2 core]");
}

TEST(Hierarchy, PrintsTellHierarchiesApart) {
  const std::array shapes = {std::array{2, 2, 2}, std::array{2, 2, 3}, std::array{2, 3, 2}, std::array{4, 2, 1},
                             std::array{1, 4, 2}};
  std::set<std::vector<int>> prints;
  for (const auto& shape : shapes)
    for (int again = 0; again < 2; ++again) {
      const Hierarchy hierarchy = Hierarchy::nodes_of(shape);
      const auto print = print_of(hierarchy);
      prints.emplace(print.begin(), print.end());
    }
  EXPECT_EQ(prints.size(), shapes.size());
  EXPECT_EQ(print_of(Hierarchy()).size(), print_numbers);
}

}  // namespace
}  // namespace plait::topo
