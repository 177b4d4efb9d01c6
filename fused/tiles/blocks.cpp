#include "fused/tiles/blocks.h"

#include <algorithm>

namespace plait::fused {
namespace {

constexpr std::int64_t best_side = 512, least_rows = 64, least_columns = 128;
constexpr std::int64_t enough_blocks = 8;

std::int64_t even(std::int64_t length, std::int64_t most) {
  return (length + blocks_of(length, most) - 1) / blocks_of(length, most);
}

}  // namespace

std::int64_t blocks_of(std::int64_t length, std::int64_t most) {
  return std::max<std::int64_t>((length + most - 1) / most, 1);
}

BlockShape block_shape(std::int64_t rows, std::int64_t columns, std::size_t most_bytes) {
  BlockShape shape{std::clamp<std::int64_t>(rows, 1, best_side), std::clamp<std::int64_t>(columns, 1, best_side)};
  const auto count = [&] { return blocks_of(rows, shape.rows) * blocks_of(columns, shape.columns); };
  while (count() < enough_blocks && (shape.rows > least_rows || shape.columns > least_columns)) {
    if (shape.columns > least_columns && shape.columns >= shape.rows)
      shape.columns = std::max(shape.columns / 2, least_columns);
    else if (shape.rows > least_rows)
      shape.rows = std::max(shape.rows / 2, least_rows);
    else
      break;
  }
  const auto most_cells = std::max<std::int64_t>(static_cast<std::int64_t>(most_bytes / sizeof(float)), 1);
  while (shape.rows * shape.columns > most_cells) {
    std::int64_t& longer = shape.rows > shape.columns ? shape.rows : shape.columns;
    longer = std::max<std::int64_t>(longer / 2, 1);
  }
  return {even(std::max<std::int64_t>(rows, 1), shape.rows), even(std::max<std::int64_t>(columns, 1), shape.columns)};
}

Range elements_of(const Range& blocks, const Range& whole, std::int64_t most) {
  return {std::min(whole.begin + blocks.begin * most, whole.end), std::min(whole.begin + blocks.end * most, whole.end)};
}

}  // namespace plait::fused
