// Which groups of ranks a reduction over some dimensions of a grid means.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/call/axes.h"

namespace plait::runtime {
namespace {

struct GridAndAxes {
  std::vector<int> dims, axes;
  AxesRequest request() const {
    return {static_cast<int>(dims.size()), dims.data(), static_cast<int>(axes.size()), axes.data()};
  }
};

std::vector<int> colors(const GridAndAxes& given, int ranks) {
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(color_of(grid_of(given.request()), rank));
  return all;
}

TEST(Axes, GroupsDifferInTheOtherDimensions) {
  EXPECT_EQ(colors({{2, 3}, {0}}, 6), (std::vector<int>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(colors({{2, 3}, {1}}, 6), (std::vector<int>{0, 0, 0, 3, 3, 3}));
  EXPECT_EQ(colors({{2, 2, 2}, {0, 2}}, 8), (std::vector<int>{0, 0, 2, 2, 0, 0, 2, 2}));
  EXPECT_EQ(colors({{2, 2}, {}}, 4), (std::vector<int>{0, 1, 2, 3}));
}

TEST(Axes, RequestsThatMeanTheSameGroupsAreEqual) {
  const AxesGrid grid = grid_of(GridAndAxes{{4, 6}, {1}}.request());
  EXPECT_TRUE(asks_for(GridAndAxes({{2, 2, 6}, {2}}).request(), grid));
  EXPECT_TRUE(asks_for(GridAndAxes({{4, 1, 2, 3}, {3, 2}}).request(), grid));
  EXPECT_FALSE(asks_for(GridAndAxes({{6, 4}, {1}}).request(), grid));
  EXPECT_FALSE(asks_for(GridAndAxes({{4, 6}, {0}}).request(), grid));
  EXPECT_FALSE(asks_for(GridAndAxes({{4, 2, 3}, {1}}).request(), grid));
}

TEST(Axes, AllRanksAreOneGroup) {
  EXPECT_TRUE(asks_for_all(GridAndAxes({{2, 3}, {0, 1}}).request()));
  EXPECT_TRUE(asks_for_all(GridAndAxes({{1, 6, 1}, {1}}).request()));
  EXPECT_TRUE(asks_for_all(GridAndAxes({{1}, {}}).request()));
  EXPECT_FALSE(asks_for_all(GridAndAxes({{2, 3}, {0}}).request()));
  EXPECT_FALSE(asks_for_all(GridAndAxes({{2}, {}}).request()));
}

TEST(Axes, FaultsAreTold) {
  const auto fault = [](const GridAndAxes& given) { return fault_of(given.request(), 6); };
  EXPECT_EQ(fault({{2, 3}, {1, 0}}), AxesFault::none);
  for (const std::vector<int>& dims : {std::vector<int>{}, {2}, {2, 4}, {-2, -3}, {0, 6}, {1 << 30, 1 << 30}})
    EXPECT_EQ(fault({dims, {}}), AxesFault::dimensions);
  for (const std::vector<int>& axes : {std::vector<int>{2}, {-1}, {0, 0}})
    EXPECT_EQ(fault({{2, 3}, axes}), AxesFault::argument);
  EXPECT_EQ(fault_of({.ndims = 1, .dims = nullptr, .naxes = 0, .axes = nullptr}, 6), AxesFault::argument);
  const int six = 6;
  EXPECT_EQ(fault_of({.ndims = 1, .dims = &six, .naxes = 1, .axes = nullptr}, 6), AxesFault::argument);
}

}  // namespace
}  // namespace plait::runtime
