#include "fused/embedding/embedding_layout.h"

#include "core/attempt.h"

namespace plait::fused {
namespace {

// A worker's turn: long enough that what is between two of them does not count, short enough to even out workers.
constexpr std::size_t tile_bytes = 8 * 1024;

}  // namespace

Status EmbeddingLayout::meet(Oob& oob, const EmbeddingProblem& problem) {
  rank_ = oob.rank();
  ranks_ = oob.ranks();
  batch_ = problem.batch;
  cell_bytes_ = problem.cell_bytes();
  slice_bytes_ = problem.options.slice_bytes;
  std::vector<std::int64_t> tables;
  const Status room = attempt([&]() -> Status {
    tables.resize(static_cast<std::size_t>(ranks_));
    first_table_.assign(1, 0);
    first_table_.reserve(tables.size() + 1);
    return {};
  });
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  const auto mine = static_cast<std::int64_t>(problem.tables.size());
  if (Status met = oob.gather_all(&mine, sizeof mine, tables.data(), "exchange how many tables they have"); !met.ok())
    return met;
  for (const std::int64_t count : tables) first_table_.push_back(first_table_.back() + count);
  return {};
}

void EmbeddingLayout::place(const std::vector<int>& node_of, const PlanCosts& costs) {
  node_of_ = node_of;
  near_ = costs.near;
  far_ = costs.far;
}

Pane EmbeddingLayout::pane_of(const Pair& pair) const {
  const Box box{{0, samples_of(pair.of_samples).length()}, {0, tables_of(pair.of_tables)}};
  const std::uint64_t bytes = static_cast<std::uint64_t>(box.cells()) * cell_bytes_;
  const auto node = [&](int of) { return node_of_[static_cast<std::size_t>(of)]; };
  const WayCost& way = node(pair.of_tables) == node(pair.of_samples) ? near_ : far_;
  const std::size_t slice = slice_bytes_ != 0 ? slice_bytes_ : slice_bytes(way, bytes);
  return cut(box, grain_of(box, {.cell_bytes = cell_bytes_, .slice_bytes = slice, .tile_bytes = tile_bytes}));
}

std::uint64_t EmbeddingLayout::offset_of(const Box& box, const Pair& pair) const {
  const auto table = static_cast<std::uint64_t>(first_table(pair.of_tables) + box.columns.begin);
  return static_cast<std::uint64_t>(box.rows.begin) * pitch() + table * cell_bytes_;
}

}  // namespace plait::fused
