#include "fused/embedding/embedding.h"

#include <algorithm>
#include <utility>

#include "core/attempt.h"
#include "fused/run/plan_text.h"
#include "runtime/reshard/agreement.h"

namespace plait::fused {
namespace {

// A worker's turn: long enough that what is between two of them does not count, short enough to even out workers.
constexpr std::size_t tile_bytes = 8 * 1024;

Range all_of(std::int64_t length) { return {0, length}; }

}  // namespace

// ---- Making ----

Result<std::unique_ptr<Embedding>> Embedding::make(Oob& all, const EmbeddingArguments& arguments,
                                                   const MakeMembers& make_members) {
  return take_or_withdraw(all, [&] { return make_together(all, arguments, make_members); });
}

Result<std::unique_ptr<Embedding>> Embedding::make_together(Oob& all, const EmbeddingArguments& arguments,
                                                            const MakeMembers& make_members) {
  std::unique_ptr<Embedding> made(new Embedding);
  Status status = attempt([&] { return read_arguments(arguments, all.ranks(), all.rank(), made->problem_); });
  status = agree_if_possible(all, status, [&] { return arguments_said(made->problem_); });
  if (!status.ok()) return status;
  status = attempt([&] { return made->connect(all, make_members); });
  if (Status ready = all_prepared(all, status, "prepare the fused plan"); !ready.ok()) return ready;
  return made;
}

Status Embedding::connect(Oob& all, const MakeMembers& make_members) {
  Result<std::unique_ptr<Ground>> ground = Ground::make(all, make_members);
  if (!ground.ok()) return ground.status();
  ground_ = std::move(*ground);
  if (Status status = exchange_tables(); !status.ok()) return status;
  Result<PlanCosts> costs = agree_on_costs(ground_->members().oob(), ground_->team());
  if (!costs.ok()) return costs.status();
  costs_ = *costs;
  ExchangeRequest exchange;
  TileRunRequest run;
  const Status laid_out = attempt([&] { return lay_out(exchange, run); });
  if (Status status = ground_->members().oob().go_on_together(laid_out); !status.ok()) return status;
  Result<std::unique_ptr<Exchange>> made = Exchange::make(ground_->team(), std::move(exchange));
  if (!made.ok()) return made.status();
  return attempt([&]() -> Status {
    run_ = std::make_unique<TileRun>(static_cast<TileWork&>(*this), ground_->team(), std::move(*made), std::move(run));
    kernel_ = pooling_kernel(problem_.type, problem_.weighted);
    describe();
    return {};
  });
}

// How many each rank has.
Status Embedding::exchange_tables() {
  Oob& oob = ground_->members().oob();
  std::vector<std::int64_t> tables;
  const Status room = attempt([&]() -> Status {
    tables.resize(static_cast<std::size_t>(ranks()));
    first_table_.assign(1, 0);
    first_table_.reserve(tables.size() + 1);
    return {};
  });
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  const auto mine = static_cast<std::int64_t>(problem_.tables.size());
  if (Status met = oob.gather_all(&mine, sizeof mine, tables.data(), "exchange how many tables they have"); !met.ok())
    return met;
  for (const std::int64_t count : tables) first_table_.push_back(first_table_.back() + count);
  return {};
}

int Embedding::node_of(int rank) const {
  return ground_->team() != nullptr ? ground_->team()->planner.hierarchy().node_of(rank) : 0;
}

// The same on both of them.
Pane Embedding::pane_of(int producer, int owner) const {
  const Box box{all_of(share_of(problem_.batch, ranks(), owner).length()), all_of(tables_of(producer))};
  const std::uint64_t bytes = static_cast<std::uint64_t>(box.cells()) * problem_.cell_bytes();
  const WayCost& way = node_of(producer) == node_of(owner) ? costs_.near : costs_.far;
  const std::size_t slice = problem_.options.slice_bytes != 0 ? problem_.options.slice_bytes : slice_bytes(way, bytes);
  return cut(box, grain_of(box, {.cell_bytes = problem_.cell_bytes(), .slice_bytes = slice, .tile_bytes = tile_bytes}));
}

Blocks Embedding::blocks_of(const Pane& pane, int producer) const {
  const std::uint64_t cell = problem_.cell_bytes();
  const std::uint64_t pitch = static_cast<std::uint64_t>(first_table_.back()) * cell;
  Blocks blocks;
  blocks.reserve(pane.slices.size());
  for (const Slice& slice : pane.slices) {
    const auto first =
        static_cast<std::uint64_t>(first_table_[static_cast<std::size_t>(producer)] + slice.box.columns.begin);
    blocks.push_back({.offset = static_cast<std::uint64_t>(slice.box.rows.begin) * pitch + first * cell,
                      .row_bytes = static_cast<std::uint64_t>(slice.box.columns.length()) * cell,
                      .rows = static_cast<std::uint64_t>(slice.box.rows.length())});
  }
  return blocks;
}

Status Embedding::lay_out(ExchangeRequest& exchange, TileRunRequest& run) const {
  const std::uint64_t pitch = static_cast<std::uint64_t>(first_table_.back()) * problem_.cell_bytes();
  const Range own = share_of(problem_.batch, ranks(), rank());
  exchange.output = {
      .data = problem_.output, .pitch = pitch, .bytes = static_cast<std::uint64_t>(own.length()) * pitch};
  for (int other = 0; other < ranks(); ++other) {
    run.node_of.push_back(node_of(other));
    run.panes.push_back(pane_of(rank(), other));
    exchange.outgoing.push_back(blocks_of(run.panes.back(), rank()));
    exchange.incoming.push_back(other == rank() ? Blocks() : blocks_of(pane_of(other, rank()), other));
  }
  run.processors = costs_.processors;
  run.workers = problem_.options.workers;
  run.aware = problem_.options.aware;
  return {};
}

void Embedding::describe() {
  PlanNumbers numbers{.workers = run_->workers(), .ranks = ranks()};
  for (const Pane& pane : run_->panes()) {
    numbers.slices += pane.slices.size();
    numbers.tiles += pane.tiles.size();
  }
  description_ = plan_text("embedding", numbers, run_->exchange());
}

// ---- A run ----

Status Embedding::start(const Lookup& lookup) {
  Complaint complaint;
  const bool bad = complains(problem_, lookup, complaint);
  lookup_ = lookup;
  return run_->start(bad ? &complaint : nullptr);
}

Status Embedding::wait() {
  if (Status status = run_->wait(); !status.ok()) return status;
  const auto& refusal = run_->refusal();
  if (!refusal) return {};
  return attempt([&] {
    return Status(Code::invalid, text_of(refusal->complaint) + " (on rank " + std::to_string(refusal->rank) + ")");
  });
}

void Embedding::compute(const TilePlace& place) noexcept {
  const auto& [rows, columns] = place.tile.box;
  const Box& slice = place.slice.box;
  const Table& table = problem_.tables[static_cast<std::size_t>(columns.begin)];
  const std::int64_t first_bag = share_of(problem_.batch, ranks(), place.owner).begin + rows.begin;
  kernel_({.table = table.data,
           .scales = table.scales,
           .columns = problem_.dim,
           .indices = lookup_.indices,
           .weights = lookup_.weights,
           .offsets = lookup_.offsets + columns.begin * problem_.batch + first_bag,
           .bags = rows.length(),
           .next_end = lookup_.offsets[(columns.begin + 1) * problem_.batch],
           .sums = place.target.rows + static_cast<std::uint64_t>(rows.begin - slice.rows.begin) * place.target.pitch +
                   static_cast<std::size_t>(columns.begin - slice.columns.begin) * problem_.cell_bytes(),
           .pitch = static_cast<std::ptrdiff_t>(place.target.pitch),
           .mean = problem_.mean});
}

}  // namespace plait::fused
