// What of a proof is about one rank's schedule alone: that every access stays within its space, and that no two steps
// which are not ordered touch the same bytes, one of them writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "plan/model/collective.h"
#include "plan/model/schedule.h"

namespace plait::plan {

// "proof: rank 1 step 2: ..."
Status violation(int rank, std::size_t step, const std::string& what);

struct Cell {
  Space space;
  std::uint32_t index;
};

// One rank's schedule with what a proof needs to know about it. Keeps references.
class RankProof {
 public:
  RankProof(const Semantics& semantics, int rank, const Schedule& schedule);

  const Schedule& schedule() const { return schedule_; }
  const Step& step(std::size_t index) const { return schedule_.steps[index]; }
  std::size_t cells() const { return inputs_ + outputs_ + schedule_.scratch.size(); }

  Status check_form() const;
  // Conflicting accesses must be ordered by `after`, directly or through other steps. Precondition: check_form() is ok.
  Status check_order() const;

  // Precondition: the list lies within the schedule.
  std::span<const Cell> cells_of(RunList list) const {
    const std::size_t first = first_of_run_[list.first], end = first_of_run_[list.first + list.count];
    return std::span(cells_of_runs_).subspan(first, end - first);
  }
  BlockId block_of(Cell cell) const {
    if (cell.space == Space::scratch) return schedule_.scratch[cell.index];
    return cell.space == Space::input ? semantics_.input_block(rank_, cell.index)
                                      : semantics_.output_block(rank_, cell.index);
  }
  std::vector<BlockId> blocks_of(RunList list) const;

  // The memory behind a cell: with `in_place`, an input cell may be an output cell.
  std::size_t memory_of(Cell cell, bool in_place) const {
    if (cell.space == Space::scratch) return inputs_ + outputs_ + cell.index;
    if (cell.space == Space::output) return inputs_ + cell.index;
    const auto output = in_place ? semantics_.aliased_output(rank_, cell.index) : std::nullopt;
    return output ? inputs_ + *output : cell.index;
  }

 private:
  // Where in a list of cells a piece of memory stands.
  struct Position {
    std::size_t memory, index;
  };

  Status check_step(std::size_t index) const;
  Status check_collective(std::size_t index, const Step& step) const;
  bool within_bounds(const CellRun& run) const;
  void spell_out_runs();
  Status check_bounds(std::size_t index, RunList list) const;
  Status check_operands(std::size_t index, const Step& step) const;
  Status check_read(std::size_t index, std::span<const Cell> read, std::span<const Cell> destination,
                    std::span<const Position> written) const;
  bool ordered(std::int64_t earlier, std::size_t later) const;
  Status unordered(std::size_t step, std::size_t other, Cell cell) const;

  const Semantics& semantics_;
  int rank_;
  const Schedule& schedule_;
  std::size_t inputs_, outputs_;
  std::vector<Cell> cells_of_runs_;
  std::vector<std::size_t> first_of_run_;  // in cells_of_runs_; and its size
};

}  // namespace plait::plan
