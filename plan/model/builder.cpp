#include "plan/model/builder.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace plait::plan {

Builder::Builder(const Semantics& semantics, Routes routes, int only) : BlockMoves(semantics, std::move(routes), only) {
  if (only != all_ranks) {
    ranks_.resize(1);
    put_input(only);
    return;
  }
  ranks_.resize(static_cast<std::size_t>(semantics_.ranks()));
  for (int rank = 0; rank < semantics_.ranks(); ++rank) put_input(rank);
}

void Builder::put_input(int rank) {
  RankState& state = state_of(rank);
  state.parts.resize(static_cast<std::size_t>(semantics_.chunks()));
  const bool aliases = semantics_.aliases(rank);
  std::uint32_t cell = 0;  // of the segment's first chunk
  for (const SegmentRun& run : semantics_.input_segments(rank))
    for (int first = run.first, count = 0; first < run.end(); first += count) {
      const Semantics::Stretch output = semantics_.output_stretch(rank, {0, first, run.end() - first});
      count = output.count;
      for (int chunk = 0; chunk < semantics_.chunks(); ++chunk)
        state.parts[static_cast<std::size_t>(chunk)][first] = {.count = count,
                                                               .present = true,
                                                               .aliased = aliases && output.cell,
                                                               .space = Space::input,
                                                               .cell = cell + static_cast<std::uint32_t>(chunk)};
      cell += static_cast<std::uint32_t>(count * semantics_.chunks());
    }
}

BlockRuns Builder::runs_of(std::span<const BlockId> blocks) const {
  BlockRuns runs;
  for (const BlockId block : blocks) {
    const int chunk = static_cast<int>(block) % semantics_.chunks(),
              segment = static_cast<int>(block) / semantics_.chunks();
    if (!runs.empty() && runs.back().chunk == chunk && runs.back().first + runs.back().count == segment)
      ++runs.back().count;
    else
      runs.push_back({chunk, segment, 1});
  }
  return runs;
}

void Builder::move(int from, int to, std::span<const BlockRun> blocks) {
  if (blocks.empty() || from == to) return;
  if (builds(from)) add_send(from, to, blocks);
  if (builds(to)) add_receive(to, from, blocks, {});
}

void Builder::combine(int from, int to, std::span<const BlockRun> blocks, bool on_the_left) {
  if (blocks.empty() || from == to) return;
  if (builds(from)) add_send(from, to, blocks);
  if (builds(to)) add_receive(to, from, blocks, {Arrival::combine, on_the_left});
}

void Builder::exchange(int left, int right, std::span<const BlockRun> blocks) {
  if (blocks.empty()) return;
  if (builds(left)) add_send(left, right, blocks);
  if (builds(right)) add_send(right, left, blocks);
  if (builds(left)) add_receive(left, right, blocks, {Arrival::combine_elsewhere, false});
  if (builds(right)) add_receive(right, left, blocks, {Arrival::combine_elsewhere, true});
}

void Builder::begin_part(int part) {
  part_ = part;
  parts_ = std::max(parts_, part + 1);
}

Result<LoweredPlan> Builder::finish() {
  assert(only() == all_ranks);
  if (!failure_.ok()) return failure_;
  if (part_ >= 0) part_ = parts_;
  for (int rank = 0; rank < semantics_.ranks(); ++rank)
    if (Status status = bring_results(rank); !status.ok()) return status;
  LoweredPlan plan{semantics_, {}};
  plan.schedules.reserve(ranks_.size());
  for (RankState& state : ranks_) plan.schedules.push_back(std::move(state.schedule));
  return plan;
}

Result<OwnPlan> Builder::finish_own() {
  assert(only() != all_ranks);
  if (!failure_.ok()) return failure_;
  if (part_ >= 0) part_ = parts_;
  if (Status status = bring_results(only()); !status.ok()) return status;
  return OwnPlan{semantics_, std::move(ranks_.front().schedule)};
}

// Chunk by chunk, so that the first need not wait for the last.
Status Builder::bring_results(int rank) {
  Status status;
  for (int chunk = 0; chunk < semantics_.chunks(); ++chunk) {
    BlockRuns elsewhere;
    for (const SegmentRun& run : semantics_.output_segments(rank))
      for_each_part(rank, {chunk, run.first, run.count}, [&](const BlockRun& at, const Part& part) {
        if (!part.present && status.ok())
          status = {Code::invalid, "plan: rank " + std::to_string(rank) + " never gets block " +
                                       std::to_string(semantics_.block(at.first, at.chunk))};
        if (part.space != Space::output) elsewhere.push_back(at);
      });
    if (!status.ok()) return status;
    add_copy(rank, elsewhere);
  }
  return status;
}

// ---- What a rank holds ----

Builder::Part Builder::second_half(const Part& whole, int from) const {
  Part half = whole;
  half.count = whole.count - from;
  half.cell += static_cast<std::uint32_t>(from) * cells_apart(whole.space);
  return half;
}

// The part that begins with this segment and has `most` of them at most: cut out of a larger one, or new.
Builder::Part& Builder::part_at(int rank, int chunk, int first, int most) {
  Parts& parts = state_of(rank).parts[static_cast<std::size_t>(chunk)];
  auto next = parts.upper_bound(first);
  if (next != parts.begin()) {
    auto found = std::prev(next);
    const int before = first - found->first;
    if (before > 0 && before < found->second.count) {
      const Part half = second_half(found->second, before);
      found->second.count = before;
      found = parts.emplace_hint(next, first, half);
    }
    if (found->first == first) {
      if (found->second.count > most) {
        parts.emplace_hint(next, first + most, second_half(found->second, most));
        found->second.count = most;
      }
      return found->second;
    }
  }
  const int count = next == parts.end() ? most : std::min(most, next->first - first);
  return parts.emplace_hint(next, first, Part{.count = count})->second;
}

void Builder::put_in_scratch(int rank, const BlockRun& at, Part& part) {
  std::vector<BlockId>& scratch = state_of(rank).schedule.scratch;
  part.space = Space::scratch;
  part.cell = static_cast<std::uint32_t>(scratch.size());
  part.of(Space::scratch) = {};
  for (int i = 0; i < at.count; ++i) scratch.push_back(semantics_.block(at.first + i, at.chunk));
}

// A rank puts a value that arrives in its output where the block belongs there, else in a scratch cell. Precondition:
// all of the part belongs there, or nothing of it.
void Builder::land(int rank, const BlockRun& at, Part& part) {
  if (const auto cell = semantics_.output_stretch(rank, at).cell) {
    part.space = Space::output;
    part.cell = *cell;
  } else if (!part.present || part.space != Space::scratch) {
    put_in_scratch(rank, at, part);
  }
  part.present = true;
}

// Where the combination of what a rank holds and what arrives is put. A value that was combined before stays where it
// is, an input is never overwritten, and in an exchange the result must not go where the rank's own value is still
// being sent from (in place, the output is the input): both sides would wait for each other if a send only completes
// with its receive.
void Builder::combine_in(int rank, const BlockRun& at, Part& part, Arrival arrival) {
  if (arrival.kind == Arrival::combine) {
    if (part.space == Space::input) land(rank, at, part);
    return;
  }
  const bool sent_from_output = part.space == Space::output || (part.space == Space::input && part.aliased);
  if (!sent_from_output && semantics_.output_stretch(rank, at).cell)
    land(rank, at, part);
  else
    put_in_scratch(rank, at, part);
}

// ---- Steps ----

// What follows at the same distance prolongs the last run.
void Builder::append_cells(std::vector<CellRun>& cells, Space space, std::uint32_t first, std::uint32_t count) const {
  std::uint32_t apart = count == 1 ? 1 : cells_apart(space);
  if (!cells.empty() && cells.back().space == space && first > cells.back().first) {
    CellRun& last = cells.back();
    if (last.count == 1 && (count == 1 || first - last.first == apart)) last.apart = first - last.first;
    if (last.cell(last.count) == first && (count == 1 || last.apart == apart)) {
      last.count += count;
      return;
    }
    if (last.count == 1) last.apart = 1;
  }
  cells.push_back({space, first, count, apart});
}

// Where a rank holds them now, in their order.
std::vector<CellRun> Builder::cells_of(int rank, std::span<const BlockRun> blocks) {
  std::vector<CellRun> cells;
  const Parts* parts = nullptr;
  Parts::const_iterator at;
  for (const BlockRun& run : blocks) {
    const Parts* of_chunk = &state_of(rank).parts[static_cast<std::size_t>(run.chunk)];
    // Mostly in the same part as those before.
    if (parts != of_chunk || run.first < at->first || run.first >= at->first + at->second.count)
      at = std::prev(of_chunk->upper_bound(run.first));
    parts = of_chunk;
    for (int first = run.first, end = run.first + run.count; first < end;) {
      if (first >= at->first + at->second.count) ++at;
      const Part& part = at->second;
      const int behind = first - at->first, count = std::min(part.count - behind, end - first);
      append_cells(cells, part.space, part.cell + static_cast<std::uint32_t>(behind) * cells_apart(part.space),
                   static_cast<std::uint32_t>(count));
      first += count;
    }
  }
  return cells;
}

RunList Builder::append_runs(int rank, const std::vector<CellRun>& cells) {
  std::vector<CellRun>& runs = state_of(rank).schedule.runs;
  const RunList list{static_cast<std::uint32_t>(runs.size()), static_cast<std::uint32_t>(cells.size())};
  runs.insert(runs.end(), cells.begin(), cells.end());
  return list;
}

void Builder::read_all(int rank, std::span<const BlockRun> blocks) {
  for (const BlockRun& run : blocks)
    for_each_part(rank, run, [&](const BlockRun& at, Part& part) { read(rank, at, part); });
}

void Builder::add_send(int rank, int to, std::span<const BlockRun> blocks) {
  Step step{.kind = StepKind::send, .channel = routes_.between(rank, to), .peer = to};
  step.rail = rail_of(step.channel, blocks.front().chunk);
  read_all(rank, merged({blocks.begin(), blocks.end()}));
  step.source = append_runs(rank, cells_of(rank, blocks));
  finish_step(rank, step);
}

void Builder::add_receive(int rank, int from, std::span<const BlockRun> blocks, Arrival arrival) {
  const bool reduce = arrival.kind != Arrival::overwrite;
  Step step{.kind = reduce ? StepKind::recv_reduce : StepKind::recv,
            .channel = routes_.between(rank, from),
            .incoming_left = arrival.on_the_left,
            .peer = from};
  step.rail = rail_of(step.channel, blocks.front().chunk);
  const BlockRuns ascending = merged({blocks.begin(), blocks.end()});
  if (reduce) {
    read_all(rank, ascending);
    step.operand = append_runs(rank, cells_of(rank, blocks));
  }
  write_all(rank, ascending, [&](const BlockRun& at, Part& part) {
    if (reduce)
      combine_in(rank, at, part, arrival);
    else
      land(rank, at, part);
  });
  step.destination = append_runs(rank, cells_of(rank, blocks));
  finish_step(rank, step);
}

void Builder::add_copy(int rank, std::span<const BlockRun> blocks) {
  if (blocks.empty()) return;
  Step step{.kind = StepKind::copy};
  const BlockRuns ascending = merged({blocks.begin(), blocks.end()});
  read_all(rank, ascending);
  step.source = append_runs(rank, cells_of(rank, blocks));
  write_all(rank, ascending, [&](const BlockRun& at, Part& part) {
    part.space = Space::output;
    part.cell = *semantics_.output_stretch(rank, at).cell;
  });
  step.destination = append_runs(rank, cells_of(rank, blocks));
  finish_step(rank, step);
}

// ---- Their order ----

void Builder::depend_on(std::int32_t step) {
  if (step >= 0) pending_after_.push_back(static_cast<std::uint32_t>(step));
}

void Builder::read(int rank, const BlockRun& at, Part& part) {
  if (!part.present && failure_.ok())
    failure_ = {Code::invalid, "plan: rank " + std::to_string(rank) + " gives block " +
                                   std::to_string(semantics_.block(at.first, at.chunk)) + " before it has it"};
  Storage& storage = part.of(part.space);
  depend_on(storage.writer);
  reader_pool_.push_back({next_step(rank), storage.readers});
  storage.readers = static_cast<std::int32_t>(reader_pool_.size() - 1);
}

void Builder::write(int rank, Part& part) {
  Storage& storage = part.of(part.space);
  depend_on(storage.writer);
  for (std::int32_t reader = storage.readers; reader >= 0; reader = reader_pool_[static_cast<std::size_t>(reader)].next)
    depend_on(static_cast<std::int32_t>(reader_pool_[static_cast<std::size_t>(reader)].step));
  storage = {static_cast<std::int32_t>(next_step(rank)), -1};
}

// Those to the same peer start in their order anyway.
void Builder::order_send(int rank, const Step& step) {
  LastSends& last = last_sends_[index_of(rank)];
  if (last.peer != step.peer) last = {step.peer, -1, last.step};
  depend_on(last.step_to_other);
  last.step = static_cast<std::int32_t>(next_step(rank));
}

void Builder::begin_round(int series) {
  series_ = series;
  std::vector<Round>& rounds = rounds_[series];
  rounds.resize(ranks_.size());
  for (Round& round : rounds)
    if (!round.now.empty()) round.before = std::exchange(round.now, {});
}

void Builder::keep_to_round(int rank, const Step& step) {
  Round& round = rounds_[series_][index_of(rank)];
  if (step.kind == StepKind::send)
    for (const std::int32_t before : round.before) depend_on(before);
  round.now.push_back(static_cast<std::int32_t>(next_step(rank)));
}

void Builder::finish_step(int rank, Step step) {
  if (!last_sends_.empty() && step.kind == StepKind::send && traits(step.channel).crosses_nodes) order_send(rank, step);
  if (series_ >= 0 && !is_local(step.kind) && traits(step.channel).crosses_nodes) keep_to_round(rank, step);
  std::sort(pending_after_.begin(), pending_after_.end());
  pending_after_.erase(std::unique(pending_after_.begin(), pending_after_.end()), pending_after_.end());
  // What a step reads and writes itself.
  if (!pending_after_.empty() && pending_after_.back() == next_step(rank)) pending_after_.pop_back();

  Schedule& schedule = state_of(rank).schedule;
  step.after = {static_cast<std::uint32_t>(schedule.after.size()), static_cast<std::uint32_t>(pending_after_.size())};
  schedule.after.insert(schedule.after.end(), pending_after_.begin(), pending_after_.end());
  schedule.steps.push_back(step);
  if (part_ >= 0) schedule.parts.push_back(static_cast<std::uint16_t>(part_));
  pending_after_.clear();
}

}  // namespace plait::plan
