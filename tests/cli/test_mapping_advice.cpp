#include <gtest/gtest.h>

#include "tuner/text/mapping_advice.h"

namespace plait::tuner {
namespace {

using Said = std::vector<std::string>;

// Ranks on nodes of these numbers of ranks, each on a core of its own.
std::vector<RankPlace> bound(std::initializer_list<int> nodes) {
  std::vector<RankPlace> ranks;
  int number = 0;
  for (const int count : nodes) {
    for (int core = 0; core < count; ++core) ranks.push_back({number, 0, 0, 0, core, 1});
    ++number;
  }
  return ranks;
}

Said say(const std::vector<RankPlace>& ranks) { return mapping_advice(ranks, Launcher::openmpi); }

TEST(MappingAdvice, SaysNothingOfEvenBoundRanks) {
  EXPECT_EQ(say(bound({4, 4})), Said());
  EXPECT_EQ(say(bound({1})), Said());
  EXPECT_EQ(say({}), Said());
}

TEST(MappingAdvice, RanksThatMayMove) {
  std::vector<RankPlace> ranks(4, RankPlace{.node = 0, .cores_allowed = 16});
  EXPECT_EQ(
      say(ranks),
      Said{"binding: 4 ranks may move between the cores of their node: mpirun --bind-to core keeps each on its own"});
  EXPECT_EQ(
      mapping_advice(ranks, Launcher::hydra),
      Said{"binding: 4 ranks may move between the cores of their node: mpiexec -bind-to core keeps each on its own"});
  ranks[3].node = 1;  // alone there: nobody is in its way
  ASSERT_EQ(say(ranks).size(), 2u);
  EXPECT_EQ(say(ranks)[0].substr(0, 16), "binding: 3 ranks");
}

TEST(MappingAdvice, NoBindingWhereCoresAreFew) {
  EXPECT_EQ(say(std::vector<RankPlace>(4, RankPlace{.node = 0, .cores_allowed = 2})), Said());
}

// Each package has ranks of its own: they are told apart, and stay near their memory.
TEST(MappingAdvice, NoBindingWherePackagesAreApart) {
  std::vector<RankPlace> ranks;
  for (int rank = 0; rank < 8; ++rank) ranks.push_back({0, rank % 2, rank % 2, -1, -1, 8});
  EXPECT_EQ(say(ranks), Said());
}

TEST(MappingAdvice, NodesOfDifferentSizes) {
  EXPECT_EQ(say(bound({3, 2, 1})),
            Said{"mapping: 1 to 3 ranks on a node, 2 on each would be even: mpirun --map-by ppr:2:node"});
  EXPECT_EQ(mapping_advice(bound({3, 1}), Launcher::hydra),
            Said{"mapping: 1 to 3 ranks on a node, 2 on each would be even: mpiexec -ppn 2"});
  EXPECT_EQ(say(bound({4, 3})), Said());  // seven ranks cannot be even
}

TEST(MappingAdvice, PartsOfANodeOfDifferentSizes) {
  std::vector<RankPlace> ranks;
  for (int rank = 0; rank < 8; ++rank) ranks.push_back({0, rank < 6 ? 0 : 1, rank < 6 ? 0 : 1, rank / 2, rank, 1});
  EXPECT_EQ(say(ranks), Said{"mapping: 2 to 6 ranks on a package of a node, 4 on each would be even: mpirun --map-by "
                             "socket --bind-to core"});
  EXPECT_EQ(mapping_advice(ranks, Launcher::hydra),
            Said{"mapping: 2 to 6 ranks on a package of a node, 4 on each would be even: mpiexec -bind-to core -map-by "
                 "socket"});
  for (RankPlace& rank : ranks) rank.package = rank.numa = 0;
  EXPECT_EQ(say(ranks), Said());
  for (int rank = 0; rank < 8; ++rank) ranks[static_cast<std::size_t>(rank)].l3 = rank < 5 ? 0 : 1;
  EXPECT_EQ(say(ranks), Said{"mapping: 3 to 5 ranks on an L3 cache of a node, 4 on each would be even: mpirun --map-by "
                             "l3cache --bind-to core"});
  ranks[0].l3 = -1;  // one is not known
  EXPECT_EQ(say(ranks), Said());
}

TEST(Launcher, IsKnownByTheLibrary) {
  EXPECT_EQ(launcher_of("Open MPI v4.1.4, package: Debian"), Launcher::openmpi);
  EXPECT_EQ(launcher_of("MPICH Version: 4.0.2"), Launcher::hydra);
}

}  // namespace
}  // namespace plait::tuner
