#include "fused/moe/combine.h"

#include <algorithm>
#include <array>
#include <limits>

namespace plait::fused {
namespace {

// Tokens of a task: long enough that what is between two of them does not count.
constexpr std::int64_t tokens_at_once = 64;
constexpr std::size_t most_choices = 64;

}  // namespace

// ---- Making ----

// Of blocks: as many rows as there may be.
Box MoeCombine::box() const {
  return {{0, blocks_of(problem_.capacity, block_.rows)}, {0, blocks_of(problem_.columns, block_.columns)}};
}

Pane MoeCombine::pane() const { return cut(box(), grain_); }

Box MoeCombine::elements_in(const Box& blocks) const {
  return {elements_of(blocks.rows, {0, problem_.capacity}, block_.rows),
          elements_of(blocks.columns, {0, problem_.columns}, block_.columns)};
}

Blocks MoeCombine::slices() const {
  Blocks blocks;
  for (const Slice& slice : pane().slices) {
    const auto [rows, columns] = elements_in(slice.box);
    blocks.push_back({.offset = 0,
                      .row_bytes = static_cast<std::uint64_t>(columns.length()) * sizeof(float),
                      .rows = static_cast<std::uint64_t>(rows.length()),
                      .kept = true,
                      .varies = true,
                      .first = static_cast<std::uint64_t>(rows.begin)});
  }
  return blocks;
}

Status MoeCombine::lay_out(ExchangeRequest& exchange, TileRunRequest& run) {
  lay_out_notes(exchange);
  const std::size_t asked = problem_.options.slice_bytes;
  block_ =
      block_shape(problem_.capacity, problem_.columns, asked != 0 ? asked : std::numeric_limits<std::size_t>::max());
  const auto cell = static_cast<std::size_t>(block_.rows * block_.columns) * sizeof(float);
  const std::uint64_t bytes = static_cast<std::uint64_t>(problem_.capacity * problem_.columns) * sizeof(float);
  grain_ = grain_of(box(), {.cell_bytes = cell, .slice_bytes = slice_bytes_for(bytes), .tile_bytes = cell});
  slice_rows_ = grain_.slice_rows * block_.rows;
  row_slices_ = blocks_of(box().rows.length(), grain_.slice_rows);
  slice_columns_ = grain_.slice_columns * block_.columns;
  column_slices_ = blocks_of(box().columns.length(), grain_.slice_columns);
  token_blocks_ = (problem_.tokens + tokens_at_once - 1) / tokens_at_once;
  for (int other = 0; other < ranks(); ++other) {
    const bool gives = problem_.experts() > 0;
    run.panes.push_back(gives ? pane() : Pane());
    exchange.outgoing.push_back(gives ? slices() : Blocks());
    exchange.incoming.push_back(routing_.experts(other) > 0 ? slices() : Blocks());
  }
  run.keeps = true;
  run.chains = 1;
  return {};
}

void MoeCombine::prepare() {
  MoePlan::prepare();
  sum_ = weighted_sum();
}

// ---- A run ----

Status MoeCombine::start(const Results& results) {
  if (Status status = may_begin(); !status.ok()) return status;
  results_ = results;
  Complaint complaint;
  bool bad = true;
  if (results.x == nullptr && problem_.experts() > 0)
    complaint = missing_list("x");
  else if (results.weights == nullptr && problem_.tokens > 0)
    complaint = missing_list("weights");
  else
    bad = route(results.experts, complaint);
  return begin(bad ? &complaint : nullptr);
}

void MoeCombine::heard(int rank) noexcept {
  read_note(rank);
  run().exchange().set_rows(rank, static_cast<std::uint64_t>(rows_from(rank)),
                            static_cast<std::uint64_t>(routing_.rows(rank)));
}

// Expert after expert: a tile's rows may be of several.
void MoeCombine::compute(const TilePlace& place) noexcept {
  const auto [rows, columns] = elements_in(place.tile.box);
  const Box slice = elements_in(place.slice.box);
  const std::int64_t* first = first_rows_of(place.owner);
  const float* from = results_.x + static_cast<std::int64_t>(place.owner) * problem_.capacity * problem_.depth;
  auto* to = reinterpret_cast<float*>(place.target.rows) + (columns.begin - slice.columns.begin);
  const auto pitch = static_cast<std::int64_t>(place.target.pitch / sizeof(float));
  for (std::int64_t expert = 0; expert < problem_.experts() && first[expert] < rows.end; ++expert) {
    const Range own{std::max(first[expert], rows.begin), std::min(first[expert + 1], rows.end)};
    if (own.length() <= 0) continue;
    multiply({.a = from + own.begin * problem_.depth,
              .a_pitch = problem_.depth,
              .b = problem_.weights[static_cast<std::size_t>(expert)] + columns.begin,
              .b_pitch = problem_.columns,
              .c = to + (own.begin - slice.rows.begin) * pitch,
              .c_pitch = pitch,
              .rows = own.length(),
              .columns = columns.length(),
              .depth = problem_.depth},
             place.worker);
  }
}

// ---- Sums ----

std::int64_t MoeCombine::tasks_of(int) const noexcept { return token_blocks_ * column_slices_; }

Range MoeCombine::tokens_in(const Task& task) const {
  const std::int64_t block = task.number % token_blocks_;
  return elements_of({block, block + 1}, {0, problem_.tokens}, tokens_at_once);
}

// Slices are cut column by column, each from its first row on.
std::uint32_t MoeCombine::slice_of(std::int64_t row, std::int64_t column_slice) const {
  return static_cast<std::uint32_t>(column_slice * row_slices_ + row / slice_rows_);
}

bool MoeCombine::is_ready(const Task& task) const noexcept {
  const Range tokens = tokens_in(task);
  for (std::int64_t entry = tokens.begin * problem_.choices; entry < tokens.end * problem_.choices; ++entry) {
    const Routing::Place place = routing_.place(entry);
    if (place.owner == Routing::dropped) continue;
    if (!run().exchange().has_come(place.owner, slice_of(place.row, column_block_in(task)))) return false;
  }
  return true;
}

const float* MoeCombine::result_of(const Routing::Place& place, std::int64_t column_slice) const {
  const std::int64_t columns = std::min(slice_columns_, problem_.columns - column_slice * slice_columns_);
  return reinterpret_cast<const float*>(run().exchange().kept(place.owner, slice_of(place.row, column_slice))) +
         place.row % slice_rows_ * columns;
}

void MoeCombine::follow(const Task& task, int) noexcept {
  std::array<const float*, most_choices> rows;
  std::array<float, most_choices> weights;
  const std::int64_t column_slice = column_block_in(task), first_column = column_slice * slice_columns_;
  const Range tokens = tokens_in(task);
  for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
    std::size_t count = 0;
    for (std::int64_t entry = token * problem_.choices; entry < (token + 1) * problem_.choices; ++entry) {
      const Routing::Place place = routing_.place(entry);
      if (place.owner == Routing::dropped) continue;
      rows[count] = result_of(place, column_slice);
      weights[count++] = results_.weights[entry];
    }
    sum_({.rows = rows.data(),
          .weights = weights.data(),
          .count = static_cast<int>(count),
          .columns = std::min(slice_columns_, problem_.columns - first_column),
          .sum = problem_.output + token * problem_.columns + first_column});
  }
}

}  // namespace plait::fused
