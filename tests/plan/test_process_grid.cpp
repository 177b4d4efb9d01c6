#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "plan/synthesis/process_grid.h"

namespace plait::plan {
namespace {

using Axes = std::vector<GridAxis>;

std::vector<int> shape(std::mt19937& random) {
  std::vector<int> dims(1 + random() % 5);
  for (int& dim : dims) dim = 1 + static_cast<int>(random() % 5);
  return dims;
}

std::int64_t stride_of(const std::vector<int>& dims, std::size_t d) {
  std::int64_t stride = 1;
  for (std::size_t inner = d + 1; inner < dims.size(); ++inner) stride *= dims[inner];
  return stride;
}

int ranks_of(const std::vector<int>& dims) { return std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>()); }

// The ranks that share `rank`'s coordinates on all dimensions outside `subset`, ascending: a communicator as
// MPI_Cart_sub makes it.
std::vector<int> members_of(const std::vector<int>& dims, unsigned subset, int rank) {
  std::vector<int> members;
  for (int other = 0; other < ranks_of(dims); ++other) {
    bool member = true;
    for (std::size_t d = 0; d < dims.size(); ++d)
      if ((subset >> d & 1) == 0) member &= rank / stride_of(dims, d) % dims[d] == other / stride_of(dims, d) % dims[d];
    if (member) members.push_back(other);
  }
  return members;
}

std::vector<int> members_from(int base, const Axes& axes) {
  std::vector<int> members = {base};
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const std::vector<int> block = members;
    for (int i = 1; i < axis->size; ++i)
      for (const int member : block) members.push_back(member + static_cast<int>(i * axis->stride));
  }
  return members;
}

TEST(ProcessGrid, KnownCommunicators) {
  const auto axes = [](std::vector<int> members) { return grid_axes(members); };
  EXPECT_EQ(axes({0, 1, 2, 3}), (Axes{{4, 1}}));
  EXPECT_EQ(axes({5}), Axes{});
  EXPECT_EQ(axes({1, 3, 5, 7}), (Axes{{4, 2}}));
  EXPECT_EQ(axes({2, 3, 6, 7}), (Axes{{2, 4}, {2, 1}}));
  EXPECT_EQ(axes({0, 4, 1, 5}), (Axes{{2, 1}, {2, 4}})) << "the first coordinate fastest";
  EXPECT_EQ(axes({0, 1 << 30}), (Axes{{2, 1 << 30}}));
}

TEST(ProcessGrid, Junk) {
  const auto recognised = [](std::vector<int> members) { return grid_axes(members).has_value(); };
  EXPECT_FALSE(recognised({}));
  EXPECT_FALSE(recognised({3, 2, 1, 0}));
  EXPECT_FALSE(recognised({0, 1, 3}));
  EXPECT_FALSE(recognised({0, 1, 2, 4}));
  EXPECT_FALSE(recognised({0, 1, 4, 6}));
  EXPECT_FALSE(recognised({0, 1, 4, 5, 9, 10})) << "blocks at different distances";
  EXPECT_FALSE(recognised({1, 2})) << "no row of a grid";
  EXPECT_FALSE(recognised({2, 4, 6, 8})) << "no row of a grid";
  EXPECT_FALSE(recognised({-32766, 1}));
}

TEST(ProcessGrid, EveryCommunicatorOfARandomGridIsRecognised) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 400; ++trial) {
    const std::vector<int> dims = shape(random);
    const unsigned subset = random() % (1u << dims.size());
    const int rank = static_cast<int>(random() % static_cast<unsigned>(ranks_of(dims)));
    const std::vector<int> members = members_of(dims, subset, rank);
    const auto axes = grid_axes(members);
    ASSERT_TRUE(axes.has_value());
    EXPECT_EQ(members_from(members.front(), *axes), members);
    for (std::size_t a = 0; a + 1 < axes->size(); ++a)
      EXPECT_GT((*axes)[a].stride, (*axes)[a + 1].stride * (*axes)[a + 1].size) << "axes that should be one";
    EXPECT_EQ(parse_grid_axes(text(*axes)), axes);
  }
}

TEST(ProcessGrid, AChangedMemberIsNoticed) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<int> members = members_from(0, {{3, 100}, {2 + static_cast<int>(random() % 3), 10}, {3, 1}});
    int& changed = members[1 + random() % (members.size() - 1)];
    changed += random() % 2 == 0 ? 3 : -1000;
    EXPECT_FALSE(grid_axes(members).has_value());
  }
}

// From the single axes the grid comes back, ones dropped.
TEST(ProcessGrid, TheGridOfRandomAxes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 400; ++trial) {
    const std::vector<int> dims = shape(random);
    Axes axes;
    std::vector<int> expected;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == 1) continue;
      expected.push_back(dims[d]);
      axes.push_back({dims[d], stride_of(dims, d)});
    }
    std::ranges::shuffle(axes, random);
    EXPECT_EQ(grid_of(ranks_of(dims), axes), expected);
    for (const GridAxis& axis : axes) {
      const std::vector<int> covered = dimensions_of(expected, axis);
      ASSERT_EQ(covered.size(), 1u);
      EXPECT_EQ(stride_of(expected, static_cast<std::size_t>(covered.front())), axis.stride);
    }
  }
}

TEST(ProcessGrid, GridsOfSeveralCommunicators) {
  EXPECT_EQ(grid_of(8, Axes{{4, 2}}), (std::vector<int>{4, 2}));
  EXPECT_EQ(grid_of(8, Axes{{4, 2}, {4, 1}}), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(grid_of(8, Axes{{8, 1}}), std::vector<int>{8});
  EXPECT_EQ(grid_of(1, {}), std::vector<int>{});
  EXPECT_EQ(grid_of(12, Axes{{2, 2}, {3, 2}}), std::nullopt) << "4 does not divide 6";
  EXPECT_EQ(grid_of(8, Axes{{2, 3}}), std::nullopt);
  EXPECT_EQ(grid_of(8, Axes{{3, 1}}), std::nullopt);
  EXPECT_EQ(grid_of(8, Axes{{16, 1}}), std::nullopt);
  EXPECT_EQ(grid_of(8, Axes{{std::int64_t{1} << 62, std::int64_t{1} << 62}}), std::nullopt);
  EXPECT_EQ(grid_of(0, {}), std::nullopt);
  EXPECT_EQ(grid_of(8, Axes{{0, 1}}), std::nullopt);
  EXPECT_EQ(dimensions_of(std::vector<int>{2, 2, 2}, {4, 1}), (std::vector<int>{1, 2}));
}

TEST(ProcessGrid, TextsThatAreNoAxes) {
  for (const char* text : {"4", "4@", "@2", "4@2,", ",4@2", "4@2 2@1", "4@-2", "0@1", "4@99999999999999999999"})
    EXPECT_EQ(parse_grid_axes(text), std::nullopt) << text;
  EXPECT_EQ(parse_grid_axes(""), Axes{});
}

}  // namespace
}  // namespace plait::plan
