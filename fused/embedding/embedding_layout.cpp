#include "fused/embedding/embedding_layout.h"

#include "core/attempt.h"
#include "fused/tiles/slice_size.h"

namespace plait::fused {
namespace {

// A worker's turn: long enough that what is between two of them does not count, short enough to even out workers.
constexpr std::size_t tile_bytes = 8 * 1024;

}  // namespace

Status EmbeddingLayout::agree(Ground& ground, const EmbeddingProblem& problem) {
  rank_ = ground.rank();
  ranks_ = ground.ranks();
  batch_ = problem.batch;
  cell_bytes_ = problem.cell_bytes();
  slice_bytes_ = problem.options.slice_bytes;
  if (Status status = exchange_tables(ground, static_cast<std::int64_t>(problem.tables.size())); !status.ok())
    return status;
  Result<PlanCosts> costs = agree_on_costs(ground.members().oob(), ground.team());
  if (!costs.ok()) return costs.status();
  costs_ = *costs;
  return {};
}

Status EmbeddingLayout::exchange_tables(Ground& ground, std::int64_t mine) {
  Oob& oob = ground.members().oob();
  std::vector<std::int64_t> tables;
  const Status room = attempt([&]() -> Status {
    tables.resize(static_cast<std::size_t>(ranks_));
    first_table_.assign(1, 0);
    first_table_.reserve(tables.size() + 1);
    node_of_.assign(tables.size(), 0);
    return {};
  });
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  if (Status met = oob.gather_all(&mine, sizeof mine, tables.data(), "exchange how many tables they have"); !met.ok())
    return met;
  for (const std::int64_t count : tables) first_table_.push_back(first_table_.back() + count);
  if (const Team* team = ground.team(); team != nullptr)
    for (int of = 0; of < ranks_; ++of) node_of_[static_cast<std::size_t>(of)] = team->planner.hierarchy().node_of(of);
  return {};
}

Pane EmbeddingLayout::pane_of(const Pair& pair) const {
  const Box box{{0, samples_of(pair.of_samples).length()}, {0, tables_of(pair.of_tables)}};
  const std::uint64_t bytes = static_cast<std::uint64_t>(box.cells()) * cell_bytes_;
  const auto node = [&](int of) { return node_of_[static_cast<std::size_t>(of)]; };
  const WayCost& way = node(pair.of_tables) == node(pair.of_samples) ? costs_.near : costs_.far;
  const std::size_t slice = slice_bytes_ != 0 ? slice_bytes_ : slice_bytes(way, bytes);
  return cut(box, grain_of(box, {.cell_bytes = cell_bytes_, .slice_bytes = slice, .tile_bytes = tile_bytes}));
}

std::uint64_t EmbeddingLayout::offset_of(const Box& box, const Pair& pair) const {
  const auto table = static_cast<std::uint64_t>(first_table(pair.of_tables) + box.columns.begin);
  return static_cast<std::uint64_t>(box.rows.begin) * pitch() + table * cell_bytes_;
}

}  // namespace plait::fused
