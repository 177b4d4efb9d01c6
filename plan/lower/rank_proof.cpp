#include "plan/lower/rank_proof.h"

#include <algorithm>

#include "plan/model/shm_collective_view.h"

namespace plait::plan {

namespace {

bool is_message(StepKind kind) { return !is_local(kind) && kind != StepKind::shm_collective; }

template <class T>
bool lies_within(RunList list, const std::vector<T>& values) {
  return std::size_t{list.first} + list.count <= values.size();
}

}  // namespace

Status violation(int rank, std::size_t step, const std::string& what) {
  return {Code::invalid, "proof: rank " + std::to_string(rank) + " step " + std::to_string(step) + ": " + what};
}

RankProof::RankProof(const Semantics& semantics, int rank, const Schedule& schedule, bool keeps_cells)
    : semantics_(semantics),
      rank_(rank),
      schedule_(schedule),
      inputs_(semantics.input_cells(rank)),
      outputs_(semantics.output_cells(rank)),
      aliases_(semantics.aliases(rank)) {
  const Segments input = semantics.input_segments(rank), output = semantics.output_segments(rank);
  in_one_piece_ = input.size() <= 1 && output.size() <= 1;
  if (!input.empty()) first_input_ = semantics.block(input.front().first, 0);
  if (!output.empty()) first_output_ = semantics.block(output.front().first, 0);
  if (!keeps_cells) return;
  first_of_run_.reserve(schedule_.runs.size() + 1);
  for (const CellRun& run : schedule_.runs) {
    first_of_run_.push_back(cells_of_runs_.size());
    append_cells(run, cells_of_runs_);
  }
  first_of_run_.push_back(cells_of_runs_.size());
}

// None of a run that leaves its buffer.
void RankProof::append_cells(const CellRun& run, std::vector<Cell>& cells) const {
  for (std::uint32_t k = 0; k < run.count && within_bounds(run); ++k) cells.push_back({run.space, run.cell(k)});
}

std::span<const Cell> RankProof::spelt_out(RunList list) const {
  std::vector<Cell>& cells = spelt_[next_spelt_++ % spelt_.size()];
  cells.clear();
  for (std::uint32_t r = list.first; r < list.first + list.count; ++r) append_cells(schedule_.runs[r], cells);
  return cells;
}

Status RankProof::check_form() {
  position_.assign(cells(), 0);
  Status status;
  for (std::size_t i = 0; i < schedule_.steps.size() && status.ok(); ++i) status = check_step(i);
  position_ = {};
  return status;
}

Status RankProof::check_step(std::size_t index) {
  const Step& step = schedule_.steps[index];
  if (is_message(step.kind) && (step.peer < 0 || step.peer >= semantics_.ranks() || step.peer == rank_))
    return violation(rank_, index, "peer " + std::to_string(step.peer) + " is no other rank");
  if (std::size_t{step.after.first} + step.after.count > schedule_.after.size())
    return violation(rank_, index, "its order lies outside the schedule");
  for (std::uint32_t k = 0; k < step.after.count; ++k)
    if (schedule_.after[step.after.first + k] >= index)
      return violation(rank_, index, "waits for a step that is not earlier");
  for (const RunList list : {step.source, step.operand, step.destination})
    if (Status status = check_bounds(index, list); !status.ok()) return status;
  if (step.kind == StepKind::shm_collective)
    if (Status status = check_collective(index, step); !status.ok()) return status;
  return check_operands(index, step);
}

// Who takes part, and that the blocks it gives and gets are those of its kind.
Status RankProof::check_collective(std::size_t index, const Step& step) const {
  if (step.collective < 0 || static_cast<std::size_t>(step.collective) >= schedule_.collectives.size())
    return violation(rank_, index, "names no collective");
  const ShmCollective& collective = schedule_.collectives[static_cast<std::size_t>(step.collective)];
  if (!lies_within(collective.members, schedule_.collective_members) ||
      !lies_within(collective.blocks, schedule_.collective_blocks) ||
      !lies_within(collective.pieces, schedule_.collective_pieces))
    return violation(rank_, index, "its collective lies outside the schedule");
  const ShmCollectiveView view(schedule_, collective, rank_);
  if (!view.members_are_ranks(semantics_.ranks()))
    return violation(rank_, index, "its collective has no proper members");
  if (!view.pieces_fit()) return violation(rank_, index, "its collective's pieces are not its blocks");
  if (blocks_of(step.source) != view.given()) return violation(rank_, index, "does not give its collective's blocks");
  if (collective.kind != ShmCollectiveKind::all_to_all && blocks_of(step.destination) != view.taken())
    return violation(rank_, index, "does not get its collective's blocks");
  return {};
}

bool RankProof::within_bounds(const CellRun& run) const {
  const std::size_t limit = run.space == Space::input    ? inputs_
                            : run.space == Space::output ? outputs_
                                                         : schedule_.scratch.size();
  return run.count == 0 || (run.first < limit && run.apart > 0 && run.apart <= limit &&
                            run.first + std::size_t{run.count - 1} * run.apart < limit);
}

Status RankProof::check_bounds(std::size_t index, RunList list) const {
  if (std::size_t{list.first} + list.count > schedule_.runs.size())
    return violation(rank_, index, "its runs lie outside the schedule");
  for (std::uint32_t r = list.first; r < list.first + list.count; ++r) {
    if (!within_bounds(schedule_.runs[r])) return violation(rank_, index, "touches a cell beyond its buffer");
  }
  return {};
}

Status RankProof::check_operands(std::size_t index, const Step& step) {
  const std::span<const Cell> source = cells_of(step.source), operand = cells_of(step.operand),
                              destination = cells_of(step.destination);
  const bool has_source = step.kind == StepKind::send || step.kind == StepKind::copy || step.kind == StepKind::reduce;
  const bool has_operand = step.kind == StepKind::recv_reduce || step.kind == StepKind::reduce;
  const bool has_destination = step.kind != StepKind::send;
  const bool collective = step.kind == StepKind::shm_collective;
  if (!collective &&
      (has_source == source.empty() || has_operand == operand.empty() || has_destination == destination.empty()))
    return violation(rank_, index, "lacks an operand or has one too many");
  Status status = check_writes(index, destination);
  for (const auto* read : {&source, &operand})
    if (has_destination && !collective && !read->empty() && status.ok()) status = check_read(index, *read, destination);
  for (const Cell cell : destination) position_[memory_of(cell, true)] = 0;
  return status;
}

Status RankProof::check_writes(std::size_t index, std::span<const Cell> destination) {
  for (std::size_t i = 0; i < destination.size(); ++i) {
    if (destination[i].space == Space::input) return violation(rank_, index, "writes into the input");
    std::uint32_t& position = position_[memory_of(destination[i], true)];
    if (position != 0) return violation(rank_, index, "writes a cell twice");
    position = static_cast<std::uint32_t>(i) + 1;
  }
  return {};
}

// Precondition: the positions are the destination's.
Status RankProof::check_read(std::size_t index, std::span<const Cell> read, std::span<const Cell> destination) const {
  if (read.size() != destination.size()) return violation(rank_, index, "operands of different lengths");
  for (std::size_t i = 0; i < read.size(); ++i) {
    const std::uint32_t written = position_[memory_of(read[i], true)];
    if (written != 0 && written != i + 1) return violation(rank_, index, "writes over its own operand");
    if (block_of(read[i]) != block_of(destination[i]))
      return violation(rank_, index, "brings a block to the cell of another");
  }
  return {};
}

Status RankProof::check_order() {
  accesses_.assign(cells(), {});
  known_after_.assign(schedule_.steps.size(), 0);
  Status status;
  for (std::size_t i = 0; i < schedule_.steps.size() && status.ok(); ++i) {
    status = check_reads_in_order(i, step(i).source);
    if (status.ok()) status = check_reads_in_order(i, step(i).operand);
    if (status.ok()) status = check_writes_in_order(i, step(i).destination);
  }
  accesses_ = {};
  readers_ = {};
  return status;
}

// Cells that have had the same readers before share the list of them.
Status RankProof::check_reads_in_order(std::size_t index, RunList list) {
  std::int32_t before = -2, now = -1;
  for (const Cell cell : cells_of(list)) {
    Access& access = accesses_[memory_of(cell, true)];
    if (!ordered(access.writer, index)) return unordered(index, access.writer, cell);
    if (access.readers != before) {
      before = access.readers;
      now = static_cast<std::int32_t>(readers_.size());
      readers_.push_back({static_cast<std::uint32_t>(index), before});
    }
    access.readers = now;
  }
  return {};
}

Status RankProof::check_writes_in_order(std::size_t index, RunList list) {
  for (const Cell cell : cells_of(list)) {
    Access& access = accesses_[memory_of(cell, true)];
    if (!ordered(access.writer, index)) return unordered(index, access.writer, cell);
    for (std::int32_t reader = access.readers; reader >= 0; reader = readers_[static_cast<std::size_t>(reader)].next) {
      const auto before = static_cast<std::int32_t>(readers_[static_cast<std::size_t>(reader)].step);
      if (static_cast<std::size_t>(before) != index && !ordered(before, index)) return unordered(index, before, cell);
    }
    access = {static_cast<std::int32_t>(index), -1};
  }
  return {};
}

bool RankProof::ordered(std::int32_t earlier, std::size_t later) {
  if (earlier < 0) return true;
  const auto target = static_cast<std::uint32_t>(earlier);
  if (known_after_[target] == later) return true;
  std::vector<std::uint32_t> open = {static_cast<std::uint32_t>(later)};
  std::vector<bool> seen;
  while (!open.empty()) {
    const RunList after = schedule_.steps[open.back()].after;
    open.pop_back();
    for (std::uint32_t k = 0; k < after.count; ++k) {
      const std::uint32_t step = schedule_.after[after.first + k];
      if (step == target) {
        known_after_[target] = static_cast<std::uint32_t>(later);
        return true;
      }
      if (step < target) continue;
      if (seen.empty()) seen.resize(schedule_.steps.size());
      if (!seen[step]) open.push_back(step);
      seen[step] = true;
    }
  }
  return false;
}

Status RankProof::unordered(std::size_t step, std::int32_t other, Cell cell) const {
  constexpr const char* spaces[] = {"input", "output", "scratch"};
  return violation(rank_, step,
                   "not ordered after step " + std::to_string(other) + " although both touch " +
                       spaces[static_cast<std::size_t>(cell.space)] + " cell " + std::to_string(cell.index));
}

std::vector<BlockId> RankProof::blocks_of(RunList list) const {
  std::vector<BlockId> blocks;
  for (const Cell cell : cells_of(list)) blocks.push_back(block_of(cell));
  return blocks;
}

}  // namespace plait::plan
