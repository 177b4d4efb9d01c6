#include "fused/tiles/tiles.h"

#include <algorithm>
#include <numeric>

namespace plait::fused {
namespace {

std::int64_t pieces_of(std::int64_t length, std::int64_t most) { return (length + most - 1) / most; }

// The longest piece, where a length is cut as evenly as possible into pieces of at most so much.
std::int64_t even_piece(std::int64_t length, std::int64_t most) {
  return pieces_of(length, pieces_of(length, std::max<std::int64_t>(most, 1)));
}

std::int64_t cells_in(std::size_t bytes, std::size_t cell_bytes) {
  return std::max<std::int64_t>(static_cast<std::int64_t>(bytes / cell_bytes), 1);
}

void cut_slice(const Box& box, std::int64_t tile_rows, Pane& pane) {
  Slice slice{.box = box, .first_tile = static_cast<std::uint32_t>(pane.tiles.size())};
  for (std::int64_t column = box.columns.begin; column < box.columns.end; ++column)
    for (std::int64_t row = box.rows.begin; row < box.rows.end; row += tile_rows) {
      const Range rows{row, std::min(row + tile_rows, box.rows.end)};
      pane.tiles.push_back(
          {.box = {rows, {column, column + 1}}, .slice = static_cast<std::uint32_t>(pane.slices.size())});
    }
  slice.tiles = static_cast<std::uint32_t>(pane.tiles.size()) - slice.first_tile;
  pane.slices.push_back(slice);
}

// About the golden section of the ranks, so that places that come one soon after the other are far apart; without a
// common divisor, so that all ranks come.
int stride_of(int ranks) {
  const int golden = static_cast<int>(0.618 * ranks + 0.5);
  for (int away = 0; away < ranks; ++away)
    for (const int stride : {golden + away, golden - away})
      if (stride > 0 && std::gcd(stride, ranks) == 1) return stride;
  return 1;
}

}  // namespace

Grain grain_of(const Box& box, const GrainRequest& request) {
  if (box.cells() == 0) return {};
  const std::int64_t rows = box.rows.length(), columns = box.columns.length();
  const std::int64_t cells = cells_in(request.slice_bytes, request.cell_bytes);
  Grain grain;
  grain.slice_rows = even_piece(rows, cells);
  grain.slice_columns = cells < 2 * rows ? 1 : even_piece(columns, cells / rows);
  grain.tile_rows = even_piece(grain.slice_rows, cells_in(request.tile_bytes, request.cell_bytes));
  return grain;
}

Pane cut(const Box& box, const Grain& grain) {
  Pane pane;
  for (std::int64_t column = box.columns.begin; column < box.columns.end; column += grain.slice_columns)
    for (std::int64_t row = box.rows.begin; row < box.rows.end; row += grain.slice_rows)
      cut_slice({{row, std::min(row + grain.slice_rows, box.rows.end)},
                 {column, std::min(column + grain.slice_columns, box.columns.end)}},
                grain.tile_rows, pane);
  return pane;
}

Range share_of(std::int64_t rows, int ranks, int rank) {
  const std::int64_t even = rows / ranks, more = rows % ranks;
  const auto begin = [&](std::int64_t of) { return even * of + std::min(of, more); };
  return {begin(rank), begin(rank + 1)};
}

std::vector<int> communication_order(std::span<const int> node_of, int rank) {
  const auto ranks = static_cast<int>(node_of.size());
  const int stride = stride_of(ranks);
  const auto node = [&](int of) { return node_of[static_cast<std::size_t>(of)]; };
  std::vector<int> order;
  order.reserve(node_of.size());
  for (const bool near : {false, true})
    for (int step = 1; step < ranks; ++step) {
      const int owner = static_cast<int>((rank + std::int64_t{step} * stride) % ranks);
      if ((node(owner) == node(rank)) == near) order.push_back(owner);
    }
  order.push_back(rank);
  return order;
}

std::vector<int> arrival_order(std::span<const int> node_of, int rank) {
  const auto ranks = static_cast<int>(node_of.size());
  const int stride = stride_of(ranks);
  const auto node = [&](int of) { return node_of[static_cast<std::size_t>(of)]; };
  std::vector<int> order = {rank};
  order.reserve(node_of.size());
  for (const bool near : {true, false})
    for (int step = 1; step < ranks; ++step) {
      const int source = static_cast<int>((rank + std::int64_t{ranks - step} * stride) % ranks);
      if ((node(source) == node(rank)) == near) order.push_back(source);
    }
  return order;
}

Lineup line_up(std::span<const Pane* const> panes, std::span<const int> owners) {
  Lineup lineup;
  for (const int owner : owners)
    for (std::uint32_t tile = 0; tile < panes[static_cast<std::size_t>(owner)]->tiles.size(); ++tile)
      lineup.push_back({owner, tile});
  const auto column = [&](const Turn& turn) {
    return panes[static_cast<std::size_t>(turn.owner)]->tiles[turn.tile].box.columns.begin;
  };
  std::ranges::stable_sort(lineup, {}, column);
  return lineup;
}

std::vector<int> plain_order(int ranks) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace plait::fused
