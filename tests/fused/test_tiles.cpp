// What is cut: every cell in just one tile, and in the slice of that tile; the order of owners; how long slices are.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "fused/tiles/blocks.h"
#include "fused/tiles/slice_size.h"
#include "fused/tiles/tiles.h"

namespace plait::fused {
namespace {

using Cell = std::pair<std::int64_t, std::int64_t>;

std::vector<Cell> cells_of(const Box& box) {
  std::vector<Cell> cells;
  for (std::int64_t row = box.rows.begin; row < box.rows.end; ++row)
    for (std::int64_t column = box.columns.begin; column < box.columns.end; ++column) cells.emplace_back(row, column);
  return cells;
}

void expect_whole(const Box& box, const Pane& pane) {
  std::map<Cell, int> times;
  for (std::size_t number = 0; number < pane.slices.size(); ++number) {
    const Slice& slice = pane.slices[number];
    std::vector<Cell> of_tiles;
    for (std::uint32_t tile = slice.first_tile; tile < slice.first_tile + slice.tiles; ++tile) {
      EXPECT_EQ(pane.tiles[tile].slice, number);
      EXPECT_EQ(pane.tiles[tile].box.columns.length(), 1);
      for (const Cell& cell : cells_of(pane.tiles[tile].box)) {
        ++times[cell];
        of_tiles.push_back(cell);
      }
    }
    std::vector<Cell> of_slice = cells_of(slice.box);
    std::ranges::sort(of_slice);
    std::ranges::sort(of_tiles);
    EXPECT_EQ(of_slice, of_tiles) << "slice " << number;
  }
  const std::vector<Cell> all = cells_of(box);
  EXPECT_EQ(times.size(), all.size());
  for (const Cell& cell : all) EXPECT_EQ(times[cell], 1) << cell.first << ", " << cell.second;
}

TEST(Tiles, HaveEveryCellOnce) {
  std::mt19937 random(7);
  const auto draw = [&](int most) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)); };
  for (int round = 0; round < 500; ++round) {
    const std::int64_t row = draw(5), column = draw(5);
    const Box box{{row, row + draw(40)}, {column, column + draw(12)}};
    const GrainRequest request{.cell_bytes = static_cast<std::size_t>(draw(300) + 1),
                               .slice_bytes = static_cast<std::size_t>(draw(9000) + 1),
                               .tile_bytes = static_cast<std::size_t>(draw(3000) + 1)};
    SCOPED_TRACE(round);
    expect_whole(box, cut(box, grain_of(box, request)));
  }
}

TEST(Tiles, OfNothingAreNone) {
  EXPECT_TRUE(cut({{0, 0}, {0, 5}}, grain_of({{0, 0}, {0, 5}}, {})).tiles.empty());
  EXPECT_TRUE(cut({{0, 5}, {2, 2}}, grain_of({{0, 5}, {2, 2}}, {})).slices.empty());
}

TEST(Tiles, SlicesAreAsLongAsAskedFor) {
  const Box box{{0, 2048}, {0, 16}};
  const Grain tall = grain_of(box, {.cell_bytes = 1024, .slice_bytes = 128 << 10, .tile_bytes = 8 << 10});
  EXPECT_EQ(tall.slice_rows, 128);
  EXPECT_EQ(tall.slice_columns, 1);
  EXPECT_EQ(tall.tile_rows, 8);
  const Grain wide =
      grain_of({{0, 16}, {0, 64}}, {.cell_bytes = 1024, .slice_bytes = 128 << 10, .tile_bytes = 8 << 10});
  EXPECT_EQ(wide.slice_rows, 16);
  EXPECT_EQ(wide.slice_columns, 8);
}

TEST(Tiles, SharesAreConsecutiveAndEven) {
  for (const int ranks : {1, 2, 3, 7, 8})
    for (const std::int64_t rows : {0, 1, 6, 7, 64, 65}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range share = share_of(rows, ranks, rank);
        EXPECT_EQ(share.begin, next);
        EXPECT_GE(share.length(), rows / ranks);
        EXPECT_LE(share.length(), rows / ranks + 1);
        next = share.end;
      }
      EXPECT_EQ(next, rows);
    }
}

TEST(Tiles, OwnersWithTheLongestWayComeFirst) {
  const std::vector<int> node_of = {0, 0, 1, 1, 2, 2};
  EXPECT_EQ(communication_order(node_of, 0), (std::vector<int>{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(communication_order(node_of, 3), (std::vector<int>{1, 0, 5, 4, 2, 3}));
  EXPECT_EQ(communication_order(std::vector<int>{0}, 0), (std::vector<int>{0}));
  EXPECT_EQ(plain_order(3), (std::vector<int>{0, 1, 2}));
}

TEST(Tiles, NoTwoRanksSendToOneAtOnceWhereAllAreAlike) {
  for (int ranks = 1; ranks <= 130; ++ranks)
    for (const bool one_node : {true, false}) {
      std::vector<int> node_of(static_cast<std::size_t>(ranks), 0);
      if (!one_node) std::iota(node_of.begin(), node_of.end(), 0);
      std::vector<std::set<int>> owners(static_cast<std::size_t>(ranks));  // by step
      for (int rank = 0; rank < ranks; ++rank) {
        const std::vector<int> order = communication_order(node_of, rank);
        EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), order.size());
        for (std::size_t step = 0; step < order.size(); ++step) owners[step].insert(order[step]);
      }
      for (const auto& at_once : owners) EXPECT_EQ(at_once.size(), owners.size()) << ranks;
    }
}

// Half of a step's way is with those whose numbers are far: on a torus, say.
TEST(Tiles, NearAndFarOwnersComeByTurns) {
  const std::vector<int> node_of = [] {
    std::vector<int> nodes(128);
    std::iota(nodes.begin(), nodes.end(), 0);
    return nodes;
  }();
  const std::vector<int> order = communication_order(node_of, 0);
  for (std::size_t begin = 0; begin + 16 < order.size(); begin += 16) {
    const auto far = std::count_if(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                   order.begin() + static_cast<std::ptrdiff_t>(begin + 16),
                                   [](int owner) { return owner > 32 && owner < 96; });
    EXPECT_GE(far, 6);
    EXPECT_LE(far, 10);
  }
}

TEST(Tiles, SourcesAreInTheOrderInWhichTheySend) {
  const std::vector<int> node_of = {0, 0, 1, 1, 2, 2};
  EXPECT_EQ(arrival_order(node_of, 0), (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(arrival_order(node_of, 3), (std::vector<int>{3, 2, 4, 5, 0, 1}));
  EXPECT_EQ(arrival_order(std::vector<int>{0}, 0), (std::vector<int>{0}));
  // The source at a place of the one has the rank at that place of its own order, where all are alike.
  const std::vector<int> nodes = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  for (int rank = 0; rank < 9; ++rank)
    for (std::size_t place = 1; place < 9; ++place) {
      const int source = arrival_order(nodes, rank)[place];
      EXPECT_EQ(communication_order(nodes, source)[place - 1], rank);
    }
}

TEST(Blocks, HaveEveryElementOnce) {
  std::mt19937 random(11);
  const auto draw = [&](int most) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)); };
  for (int round = 0; round < 500; ++round) {
    const Range whole{draw(50), 0};
    const std::int64_t length = draw(5000) + 1, columns = draw(5000) + 1;
    const BlockRequest request{.rows = length,
                               .columns = columns,
                               .enough = draw(12) + 1,
                               .most_bytes = draw(2) == 0 ? ~std::size_t{0} : static_cast<std::size_t>(draw(9000) + 1)};
    const BlockShape shape = block_shape(request);
    EXPECT_LE(shape.rows, 512);
    EXPECT_LE(shape.columns, 2048);
    EXPECT_LE(static_cast<std::size_t>(shape.rows * shape.columns) * sizeof(float),
              std::max(request.most_bytes, sizeof(float)));
    std::int64_t next = whole.begin;
    for (std::int64_t block = 0; block < blocks_of(length, shape.rows); ++block) {
      const Range rows = elements_of({block, block + 1}, {whole.begin, whole.begin + length}, shape.rows);
      EXPECT_EQ(rows.begin, next);
      EXPECT_GT(rows.length(), 0);
      next = rows.end;
    }
    EXPECT_EQ(next, whole.begin + length);
  }
}

TEST(Blocks, AreLargeWhereTheMatrixIs) {
  const auto expect = [](const BlockRequest& request, const BlockShape& shape) {
    EXPECT_EQ(block_shape(request).rows, shape.rows);
    EXPECT_EQ(block_shape(request).columns, shape.columns);
  };
  expect({.rows = 4096, .columns = 4096}, {512, 2048});
  expect({.rows = 1024, .columns = 1024}, {512, 1024});
  expect({.rows = 1024, .columns = 1024, .enough = 4}, {256, 1024});
  expect({.rows = 100, .columns = 70}, {50, 70});
  expect({.rows = 3, .columns = 5}, {3, 5});
}

TEST(Tiles, AreLinedUpColumnByColumnInTheOrderOfTheirOwners) {
  const Pane one = cut({{0, 9}, {0, 3}}, {.slice_rows = 4, .slice_columns = 1, .tile_rows = 2});
  const Pane other = cut({{0, 5}, {0, 3}}, {.slice_rows = 5, .slice_columns = 2, .tile_rows = 2});
  const std::vector<const Pane*> panes = {&one, &other};
  const Lineup lineup = line_up(panes, std::vector<int>{1, 0});
  ASSERT_EQ(lineup.size(), one.tiles.size() + other.tiles.size());
  std::set<std::pair<int, std::uint32_t>> turns;
  std::vector<std::pair<std::int64_t, int>> places;  // column, place of the owner
  for (const Turn& turn : lineup) {
    turns.emplace(turn.owner, turn.tile);
    const auto& tile = panes[static_cast<std::size_t>(turn.owner)]->tiles[turn.tile];
    places.emplace_back(tile.box.columns.begin, turn.owner == 1 ? 0 : 1);
  }
  EXPECT_EQ(turns.size(), lineup.size());
  EXPECT_TRUE(std::ranges::is_sorted(places));
}

TEST(SliceSize, IsWhereOverheadAndTheLastSlicesWayAreLeast) {
  const WayCost way{.overhead_s = 5e-6, .seconds_per_byte = 8e-9};
  constexpr std::uint64_t bytes = 32 << 20;
  const auto cost = [&](double slice) {
    return static_cast<double>(bytes) / slice * way.overhead_s + slice * way.seconds_per_byte;
  };
  const auto best = static_cast<double>(slice_bytes(way, bytes));
  EXPECT_LT(cost(best), cost(best * 1.2));
  EXPECT_LT(cost(best), cost(best / 1.2));
}

TEST(SliceSize, StaysWithinItsBounds) {
  EXPECT_EQ(slice_bytes({.overhead_s = 1e-6, .seconds_per_byte = 1e-9}, 1), 4096u);
  EXPECT_EQ(slice_bytes({.overhead_s = 1e-3, .seconds_per_byte = 1e-12}, std::uint64_t{1} << 40), std::size_t{1} << 20);
  EXPECT_EQ(slice_bytes({}, 1 << 20), std::size_t{1} << 20);
}

TEST(SliceSize, GrowsWithTheNetworksOverhead) {
  const Machine machine = default_machine();
  EXPECT_GT(slice_bytes(cost_between_nodes(machine), 1 << 26), 16u << 10);
  EXPECT_GT(cost_between_nodes(machine).overhead_s, cost_within_node(machine).overhead_s);
}

}  // namespace
}  // namespace plait::fused
