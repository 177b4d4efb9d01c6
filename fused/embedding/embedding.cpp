#include "fused/embedding/embedding.h"

#include <utility>

#include "core/attempt.h"
#include "fused/run/plan_text.h"
#include "runtime/reshard/agreement.h"

namespace plait::fused {
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
  if (Status status = layout_.agree(*ground_, problem_); !status.ok()) return status;
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

Blocks Embedding::blocks_of(const Pane& pane, const EmbeddingLayout::Pair& pair) const {
  Blocks blocks;
  blocks.reserve(pane.slices.size());
  for (const Slice& slice : pane.slices)
    blocks.push_back({.offset = layout_.offset_of(slice.box, pair),
                      .row_bytes = static_cast<std::uint64_t>(slice.box.columns.length()) * layout_.cell_bytes(),
                      .rows = static_cast<std::uint64_t>(slice.box.rows.length())});
  return blocks;
}

Status Embedding::lay_out(ExchangeRequest& exchange, TileRunRequest& run) const {
  const int rank = layout_.rank();
  const std::uint64_t pitch = layout_.pitch();
  exchange.output = {.data = problem_.output,
                     .pitch = pitch,
                     .bytes = static_cast<std::uint64_t>(layout_.samples_of(rank).length()) * pitch};
  for (int other = 0; other < layout_.ranks(); ++other) {
    const EmbeddingLayout::Pair out{.of_tables = rank, .of_samples = other}, in{.of_tables = other, .of_samples = rank};
    run.panes.push_back(layout_.pane_of(out));
    exchange.outgoing.push_back(blocks_of(run.panes.back(), out));
    exchange.incoming.push_back(other == rank ? Blocks() : blocks_of(layout_.pane_of(in), in));
  }
  run.node_of = layout_.node_of();
  run.processors = layout_.processors();
  run.workers = problem_.options.workers;
  run.aware = problem_.options.aware;
  return {};
}

void Embedding::describe() {
  PlanNumbers numbers{.workers = run_->workers(), .ranks = layout_.ranks()};
  for (const Pane& pane : run_->panes()) {
    numbers.slices += pane.slices.size();
    numbers.tiles += pane.tiles.size();
  }
  description_ = plan_text("embedding", numbers, run_->exchange());
}

// ---- A run ----

Status Embedding::start(const Lookup& lookup) {
  if (run_->is_started()) return run_->start(nullptr);  // says what is wrong with that
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
  const std::int64_t first_bag = layout_.samples_of(place.owner).begin + rows.begin;
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
