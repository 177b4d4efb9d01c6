#include "fused/moe/dispatch.h"

#include <algorithm>
#include <cstring>

namespace plait::fused {

// ---- Making ----

Pane MoeDispatch::pane() const {
  const Box box{{0, problem_.capacity}, {0, 1}};
  return cut(box, {.slice_rows = slice_rows_, .slice_columns = 1, .tile_rows = slice_rows_});
}

Blocks MoeDispatch::slices() const {
  Blocks blocks;
  for (const Slice& slice : pane().slices)
    blocks.push_back({.offset = 0,
                      .row_bytes = static_cast<std::uint64_t>(problem_.depth) * sizeof(float),
                      .rows = static_cast<std::uint64_t>(slice.box.rows.length()),
                      .kept = true});
  return blocks;
}

// All pairs alike: as many rows as there may be.
Status MoeDispatch::lay_out(ExchangeRequest& exchange, TileRunRequest& run) {
  block_ = block_shape({.rows = problem_.capacity, .columns = problem_.columns, .enough = enough_blocks()});
  column_blocks_ = blocks_of(problem_.columns, block_.columns);
  lay_out_notes(exchange, block_.rows);
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(problem_.depth) * sizeof(float);
  const std::size_t slice = slice_bytes_for(static_cast<std::uint64_t>(problem_.capacity) * row_bytes);
  slice_rows_ = rows_without_gaps(static_cast<std::int64_t>(slice / row_bytes));
  for (int other = 0; other < ranks(); ++other) {
    const bool takes = routing_.experts(other) > 0;
    run.panes.push_back(takes ? pane() : Pane());
    exchange.outgoing.push_back(takes ? slices() : Blocks());
    exchange.incoming.push_back(problem_.experts() > 0 ? slices() : Blocks());
    pairs_.push_back(std::make_unique<Pair>());
    pairs_.back()->rows_to.resize(exchange.outgoing.back().size());
    pairs_.back()->rows_from.resize(exchange.incoming.back().size());
  }
  order_ = arrival_order(run.node_of, rank());
  run.keeps = true;
  run.tiles_first = true;
  run.chains = ranks();
  return {};
}

// ---- A run ----

Status MoeDispatch::start(const Tokens& tokens) {
  if (Status status = may_begin(); !status.ok()) return status;
  tokens_ = {.x = brought().bring(tokens.x, problem_.tokens * problem_.depth),
             .experts = brought().bring(tokens.experts, problem_.entries())};
  for (const auto& pair : pairs_) pair->tasks.store(-1, std::memory_order_relaxed);
  Complaint complaint;
  bool bad = tokens_.x == nullptr && problem_.tokens > 0;
  if (bad)
    complaint = missing_list("x");
  else
    bad = route(tokens_.experts, complaint);
  return begin(bad ? &complaint : nullptr);
}

Status MoeDispatch::wait() {
  if (Status status = MoePlan::wait(); !status.ok()) return status;
  const std::size_t bytes = counts().size() * sizeof counts().front();
  if (bytes == 0) return {};
  if (const DeviceDriver* driver = device_of(problem_.counts))
    return driver->copy(problem_.counts, counts().data(), bytes);
  std::memcpy(problem_.counts, counts().data(), bytes);
  return {};
}

void MoeDispatch::heard(int rank) noexcept {
  read_note(rank);
  Pair& pair = *pairs_[static_cast<std::size_t>(rank)];
  const auto fill = [this](std::vector<SliceRows>& slices, std::int64_t rows) {
    for (SliceRows& of_slice : slices) {
      of_slice.count = std::clamp<std::int64_t>(rows, 0, slice_rows_);
      rows -= of_slice.count;
    }
  };
  fill(pair.rows_to, routing_.rows(rank));
  fill(pair.rows_from, pieces_from(rank).rows());
  run().exchange().set_rows(rank, pair.rows_to.data(), pair.rows_from.data());
  pair.tasks.store(static_cast<std::int64_t>(pieces_from(rank).all().size()) * column_blocks_,
                   std::memory_order_release);
}

// The tokens that the tile's rows are of.
void MoeDispatch::compute(const TilePlace& place) noexcept {
  const Range& rows = place.tile.box.rows;
  const std::int64_t end = std::min(rows.end, routing_.rows(place.owner));
  const std::size_t bytes = static_cast<std::size_t>(problem_.depth) * sizeof(float);
  std::byte* to = place.target.rows + static_cast<std::uint64_t>(rows.begin - place.slice.box.rows.begin) * bytes;
  for (std::int64_t row = rows.begin; row < end; ++row, to += bytes)
    std::memcpy(to, tokens_.x + routing_.entry(place.owner, row) / problem_.choices * problem_.depth, bytes);
}

std::int64_t MoeDispatch::tasks_of(int chain) const noexcept {
  return pairs_[static_cast<std::size_t>(source_of(chain))]->tasks.load(std::memory_order_acquire);
}

// All columns of the first piece, then those of the next one.
const Piece& MoeDispatch::piece_of(const Task& task) const {
  return pieces_from(source_of(task.chain)).all()[static_cast<std::size_t>(task.number / column_blocks_)];
}

bool MoeDispatch::is_ready(const Task& task) const noexcept {
  return have_come(source_of(task.chain), piece_of(task).rows, slice_rows_);
}

void MoeDispatch::follow(const Task& task, int worker) noexcept {
  const int source = source_of(task.chain);
  const auto& [expert, rows] = piece_of(task);
  const std::int64_t block = task.number % column_blocks_;
  const Range columns = elements_of({block, block + 1}, {0, problem_.columns}, block_.columns);
  const auto* from = reinterpret_cast<const float*>(run().exchange().kept(source, 0));
  const std::int64_t first = static_cast<std::int64_t>(source) * problem_.capacity + rows.begin;
  multiply({.a = from + rows.begin * problem_.depth,
            .a_pitch = problem_.depth,
            .b = problem_.weights[static_cast<std::size_t>(expert)] + columns.begin,
            .b_pitch = problem_.columns,
            .c = problem_.output + first * problem_.columns + columns.begin,
            .c_pitch = problem_.columns,
            .rows = rows.length(),
            .columns = columns.length(),
            .depth = problem_.depth},
           worker);
}

}  // namespace plait::fused
