#include "plan/model/builder.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace plait::plan {

Builder::Builder(const Semantics& semantics, Routes routes)
    : semantics_(semantics), routes_(std::move(routes)), chunks_(semantics.chunks()) {
  ranks_.resize(static_cast<std::size_t>(semantics_.ranks()));
  for (int rank = 0; rank < semantics_.ranks(); ++rank) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    state.input_cells = semantics_.input_cells(rank);
    state.output_cells = semantics_.output_cells(rank);
    state.storage.resize(state.input_cells + state.output_cells);
    state.holdings.resize(semantics_.blocks());
    for (std::uint32_t cell = 0; cell < state.input_cells; ++cell)
      state.holdings[semantics_.input_block(rank, cell)] = {Space::input, true, cell, rank};
  }
}

std::int8_t Builder::rail_of(ChannelKind channel, BlockId block) const {
  if (rails_.empty() || !traits(channel).rails) return any_rail;
  return rails_[block % static_cast<BlockId>(semantics_.chunks()) % rails_.size()];
}

void Builder::move(int from, int to, std::span<const BlockId> blocks) {
  if (blocks.empty() || from == to) return;
  const int lowest = holding(from, blocks.front()).lowest;
  add_send(from, to, blocks, holdings_of(from, blocks));
  add_receive(to, from, blocks, lowest, Arrival::overwrite);
}

void Builder::combine(int from, int to, std::span<const BlockId> blocks) {
  if (blocks.empty() || from == to) return;
  const int lowest = holding(from, blocks.front()).lowest;
  add_send(from, to, blocks, holdings_of(from, blocks));
  add_receive(to, from, blocks, lowest, Arrival::combine);
}

void Builder::exchange(int one, int other, std::span<const BlockId> blocks) {
  if (blocks.empty()) return;
  const int lowest_one = holding(one, blocks.front()).lowest;
  const int lowest_other = holding(other, blocks.front()).lowest;
  add_send(one, other, blocks, holdings_of(one, blocks));
  add_send(other, one, blocks, holdings_of(other, blocks));
  add_receive(one, other, blocks, lowest_other, Arrival::combine_elsewhere);
  add_receive(other, one, blocks, lowest_one, Arrival::combine_elsewhere);
}

void Builder::begin_part(int part) {
  part_ = part;
  parts_ = std::max(parts_, part + 1);
}

Result<LoweredPlan> Builder::finish() {
  if (part_ >= 0) part_ = parts_;
  for (int rank = 0; rank < semantics_.ranks(); ++rank) {
    // Chunk by chunk, so that the first need not wait for the last.
    std::vector<std::vector<BlockId>> elsewhere(static_cast<std::size_t>(semantics_.chunks()));
    for (std::uint32_t cell = 0; cell < semantics_.output_cells(rank); ++cell) {
      const BlockId block = semantics_.output_block(rank, cell);
      const Holding& held = holding(rank, block);
      if (!held.present)
        return Status(Code::invalid,
                      "plan: rank " + std::to_string(rank) + " never gets block " + std::to_string(block));
      const BlockId chunk = block % static_cast<BlockId>(semantics_.chunks());
      if (held.space != Space::output) elsewhere[chunk].push_back(block);
    }
    for (const std::vector<BlockId>& blocks : elsewhere) add_copy(rank, blocks);
  }
  LoweredPlan plan{semantics_, {}};
  plan.schedules.reserve(ranks_.size());
  for (RankState& state : ranks_) plan.schedules.push_back(std::move(state.schedule));
  return plan;
}

std::vector<Builder::Holding> Builder::holdings_of(int rank, std::span<const BlockId> blocks) {
  std::vector<Holding> where;
  where.reserve(blocks.size());
  for (const BlockId block : blocks) {
    assert(holding(rank, block).present);
    where.push_back(holding(rank, block));
  }
  return where;
}

// Where a rank puts a value that arrives: its output where the block belongs there, else a scratch cell.
Builder::Holding Builder::landing_place(int rank, BlockId block) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (const auto cell = semantics_.output_cell(rank, block)) return {Space::output, true, *cell, 0};
  const Holding& held = state.holdings[block];
  return held.present && held.space == Space::scratch ? held : new_scratch(rank, block);
}

Builder::Holding Builder::new_scratch(int rank, BlockId block) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const Holding place{Space::scratch, true, static_cast<std::uint32_t>(state.schedule.scratch.size()), 0};
  state.schedule.scratch.push_back(block);
  state.storage.emplace_back();
  return place;
}

RunList Builder::append_runs(int rank, std::span<const BlockId> blocks, const std::vector<Holding>& where) {
  std::vector<CellRun>& runs = ranks_[static_cast<std::size_t>(rank)].schedule.runs;
  RunList list{static_cast<std::uint32_t>(runs.size()), 0};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Holding& place = where[i];
    if (list.count > 0 && runs.back().space == place.space && runs.back().first + runs.back().count == place.cell) {
      ++runs.back().count;
      continue;
    }
    runs.push_back({place.space, place.cell, 1});
    ++list.count;
  }
  return list;
}

void Builder::add_send(int rank, int to, std::span<const BlockId> blocks, const std::vector<Holding>& from) {
  Step step{.kind = StepKind::send, .channel = routes_.between(rank, to), .peer = to};
  step.rail = rail_of(step.channel, blocks.front());
  step.source = append_runs(rank, blocks, from);
  finish_step(rank, step, from, {});
}

// Where the combination of what a rank holds and what arrives is put. A value that was combined before stays where it
// is, an input is never overwritten, and in an exchange the result must not go where the rank's own value is still
// being sent from (in place, the output is the input): both sides would wait for each other if a send only completes
// with its receive.
Builder::Holding Builder::combining_place(int rank, BlockId block, Arrival arrival) {
  const Holding& held = holding(rank, block);
  if (arrival == Arrival::combine) return held.space == Space::input ? landing_place(rank, block) : held;
  if (const auto output = semantics_.output_cell(rank, block))
    if (storage_of(rank, held.space, held.cell) != storage_of(rank, Space::output, *output))
      return landing_place(rank, block);
  return new_scratch(rank, block);
}

void Builder::add_receive(int rank, int from, std::span<const BlockId> blocks, int lowest_incoming, Arrival arrival) {
  const bool reduce = arrival != Arrival::overwrite;
  Step step{
      .kind = reduce ? StepKind::recv_reduce : StepKind::recv, .channel = routes_.between(rank, from), .peer = from};
  step.rail = rail_of(step.channel, blocks.front());
  std::vector<Holding> operands, destinations;
  for (const BlockId block : blocks) {
    Holding& held = holding(rank, block);
    if (reduce) operands.push_back(held);
    Holding place = reduce ? combining_place(rank, block, arrival) : landing_place(rank, block);
    place.lowest = reduce ? std::min(held.lowest, lowest_incoming) : lowest_incoming;
    destinations.push_back(place);
    step.incoming_left = reduce && lowest_incoming < held.lowest;
    held = place;
  }
  if (reduce) step.operand = append_runs(rank, blocks, operands);
  step.destination = append_runs(rank, blocks, destinations);
  finish_step(rank, step, operands, destinations);
}

void Builder::add_copy(int rank, std::span<const BlockId> blocks) {
  if (blocks.empty()) return;
  Step step{.kind = StepKind::copy};
  const std::vector<Holding> from = holdings_of(rank, blocks);
  std::vector<Holding> to;
  for (const BlockId block : blocks) {
    Holding place = holding(rank, block);
    place.space = Space::output;
    place.cell = *semantics_.output_cell(rank, block);
    to.push_back(place);
    holding(rank, block) = place;
  }
  step.source = append_runs(rank, blocks, from);
  step.destination = append_runs(rank, blocks, to);
  finish_step(rank, step, from, to);
}

// Input cells that may be the same memory as an output cell (in place) are tracked as that output cell, so that the
// order holds in both cases.
std::uint32_t Builder::storage_of(int rank, Space space, std::uint32_t cell) const {
  const RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (space == Space::scratch) return state.input_cells + state.output_cells + cell;
  if (space == Space::output) return state.input_cells + cell;
  const auto output = semantics_.aliased_output(rank, cell);
  return output ? state.input_cells + *output : cell;
}

void Builder::depend_on(std::int32_t step) {
  if (step >= 0) pending_after_.push_back(static_cast<std::uint32_t>(step));
}

void Builder::reads(int rank, const Holding& where) {
  const RankState& state = ranks_[static_cast<std::size_t>(rank)];
  depend_on(state.storage[storage_of(rank, where.space, where.cell)].writer);
}

void Builder::writes(int rank, const Holding& where) {
  const RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const Storage& storage = state.storage[storage_of(rank, where.space, where.cell)];
  depend_on(storage.writer);
  for (std::int32_t reader = storage.readers; reader >= 0; reader = reader_pool_[static_cast<std::size_t>(reader)].next)
    depend_on(static_cast<std::int32_t>(reader_pool_[static_cast<std::size_t>(reader)].step));
}

// Those to the same peer start in their order anyway.
void Builder::order_send(int rank, const Step& step) {
  LastSends& last = last_sends_[static_cast<std::size_t>(rank)];
  if (last.peer != step.peer) last = {step.peer, -1, last.step};
  depend_on(last.step_to_other);
  last.step = static_cast<std::int32_t>(ranks_[static_cast<std::size_t>(rank)].schedule.steps.size());
}

void Builder::begin_round(int series) {
  series_ = series;
  std::vector<Round>& rounds = rounds_[series];
  rounds.resize(ranks_.size());
  for (Round& round : rounds)
    if (!round.now.empty()) round.before = std::exchange(round.now, {});
}

void Builder::keep_to_round(int rank, const Step& step) {
  Round& round = rounds_[series_][static_cast<std::size_t>(rank)];
  if (step.kind == StepKind::send)
    for (const std::int32_t before : round.before) depend_on(before);
  round.now.push_back(static_cast<std::int32_t>(ranks_[static_cast<std::size_t>(rank)].schedule.steps.size()));
}

void Builder::finish_step(int rank, Step step, const std::vector<Holding>& read, const std::vector<Holding>& written) {
  pending_after_.clear();
  for (const Holding& where : read) reads(rank, where);
  for (const Holding& where : written) writes(rank, where);
  if (!last_sends_.empty() && step.kind == StepKind::send && traits(step.channel).crosses_nodes) order_send(rank, step);
  if (series_ >= 0 && !is_local(step.kind) && traits(step.channel).crosses_nodes) keep_to_round(rank, step);
  std::sort(pending_after_.begin(), pending_after_.end());
  pending_after_.erase(std::unique(pending_after_.begin(), pending_after_.end()), pending_after_.end());

  Schedule& schedule = ranks_[static_cast<std::size_t>(rank)].schedule;
  step.after = {static_cast<std::uint32_t>(schedule.after.size()), static_cast<std::uint32_t>(pending_after_.size())};
  schedule.after.insert(schedule.after.end(), pending_after_.begin(), pending_after_.end());
  schedule.steps.push_back(step);
  if (part_ >= 0) schedule.parts.push_back(static_cast<std::uint16_t>(part_));
  record_accesses(rank, read, written);
}

void Builder::record_accesses(int rank, const std::vector<Holding>& read, const std::vector<Holding>& written) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const auto step = static_cast<std::uint32_t>(state.schedule.steps.size() - 1);
  for (const Holding& where : read) {
    Storage& storage = state.storage[storage_of(rank, where.space, where.cell)];
    reader_pool_.push_back({step, storage.readers});
    storage.readers = static_cast<std::int32_t>(reader_pool_.size() - 1);
  }
  for (const Holding& where : written) {
    Storage& storage = state.storage[storage_of(rank, where.space, where.cell)];
    storage.writer = static_cast<std::int32_t>(step);
    storage.readers = -1;
  }
}

}  // namespace plait::plan
