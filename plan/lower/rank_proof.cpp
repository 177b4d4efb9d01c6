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

RankProof::RankProof(const Semantics& semantics, int rank, const Schedule& schedule)
    : semantics_(semantics),
      rank_(rank),
      schedule_(schedule),
      inputs_(semantics.input_cells(rank)),
      outputs_(semantics.output_cells(rank)) {
  spell_out_runs();
}

Status RankProof::check_form() const {
  for (std::size_t i = 0; i < schedule_.steps.size(); ++i)
    if (Status status = check_step(i); !status.ok()) return status;
  return {};
}

Status RankProof::check_step(std::size_t index) const {
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
  return std::size_t{run.first} + run.count <= limit;
}

// The cells of all runs, one after the other; none of a run that leaves its buffer.
void RankProof::spell_out_runs() {
  first_of_run_.reserve(schedule_.runs.size() + 1);
  for (const CellRun& run : schedule_.runs) {
    first_of_run_.push_back(cells_of_runs_.size());
    for (std::uint32_t k = 0; k < run.count && within_bounds(run); ++k)
      cells_of_runs_.push_back({run.space, run.first + k});
  }
  first_of_run_.push_back(cells_of_runs_.size());
}

Status RankProof::check_bounds(std::size_t index, RunList list) const {
  if (std::size_t{list.first} + list.count > schedule_.runs.size())
    return violation(rank_, index, "its runs lie outside the schedule");
  for (std::uint32_t r = list.first; r < list.first + list.count; ++r) {
    if (!within_bounds(schedule_.runs[r])) return violation(rank_, index, "touches a cell beyond its buffer");
  }
  return {};
}

Status RankProof::check_operands(std::size_t index, const Step& step) const {
  const std::span<const Cell> source = cells_of(step.source), operand = cells_of(step.operand),
                              destination = cells_of(step.destination);
  const bool has_source = step.kind == StepKind::send || step.kind == StepKind::copy || step.kind == StepKind::reduce;
  const bool has_operand = step.kind == StepKind::recv_reduce || step.kind == StepKind::reduce;
  const bool has_destination = step.kind != StepKind::send;
  const bool collective = step.kind == StepKind::shm_collective;
  if (!collective &&
      (has_source == source.empty() || has_operand == operand.empty() || has_destination == destination.empty()))
    return violation(rank_, index, "lacks an operand or has one too many");
  std::vector<Position> written;
  written.reserve(destination.size());
  for (std::size_t i = 0; i < destination.size(); ++i) {
    if (destination[i].space == Space::input) return violation(rank_, index, "writes into the input");
    written.push_back({memory_of(destination[i], true), i});
  }
  std::ranges::sort(written, {}, &Position::memory);
  if (std::ranges::adjacent_find(written, {}, &Position::memory) != written.end())
    return violation(rank_, index, "writes a cell twice");
  for (const auto* read : {&source, &operand})
    if (has_destination && !collective && !read->empty())
      if (Status status = check_read(index, *read, destination, written); !status.ok()) return status;
  return {};
}

// `written`: the destination's, by memory.
Status RankProof::check_read(std::size_t index, std::span<const Cell> read, std::span<const Cell> destination,
                  std::span<const Position> written) const {
  if (read.size() != destination.size()) return violation(rank_, index, "operands of different lengths");
  for (std::size_t i = 0; i < read.size(); ++i) {
    const std::size_t memory = memory_of(read[i], true);
    const auto found = std::ranges::lower_bound(written, memory, {}, &Position::memory);
    if (found != written.end() && found->memory == memory && found->index != i)
      return violation(rank_, index, "writes over its own operand");
    if (block_of(read[i]) != block_of(destination[i]))
      return violation(rank_, index, "brings a block to the cell of another");
  }
  return {};
}

Status RankProof::check_order() const {
  struct Access {
    std::int64_t writer = -1;
    std::vector<std::size_t> readers;
  };
  std::vector<Access> accesses(cells());
  for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
    for (const RunList list : {step(i).source, step(i).operand})
      for (const Cell cell : cells_of(list)) {
        Access& access = accesses[memory_of(cell, true)];
        if (!ordered(access.writer, i)) return unordered(i, static_cast<std::size_t>(access.writer), cell);
        access.readers.push_back(i);
      }
    for (const Cell cell : cells_of(step(i).destination)) {
      Access& access = accesses[memory_of(cell, true)];
      if (!ordered(access.writer, i)) return unordered(i, static_cast<std::size_t>(access.writer), cell);
      for (const std::size_t reader : access.readers)
        if (reader != i && !ordered(static_cast<std::int64_t>(reader), i)) return unordered(i, reader, cell);
      access.writer = static_cast<std::int64_t>(i);
      access.readers.clear();
    }
  }
  return {};
}

bool RankProof::ordered(std::int64_t earlier, std::size_t later) const {
  if (earlier < 0) return true;
  const auto target = static_cast<std::uint32_t>(earlier);
  std::vector<std::uint32_t> open = {static_cast<std::uint32_t>(later)};
  std::vector<bool> seen;
  while (!open.empty()) {
    const RunList after = schedule_.steps[open.back()].after;
    open.pop_back();
    for (std::uint32_t k = 0; k < after.count; ++k) {
      const std::uint32_t step = schedule_.after[after.first + k];
      if (step == target) return true;
      if (step < target) continue;
      if (seen.empty()) seen.resize(schedule_.steps.size());
      if (!seen[step]) open.push_back(step);
      seen[step] = true;
    }
  }
  return false;
}

Status RankProof::unordered(std::size_t step, std::size_t other, Cell cell) const {
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
