// What of a proof is about one rank's schedule alone: that every access stays within its space, and that no two steps
// which are not ordered touch the same bytes, one of them writing.
#pragma once

#include <array>
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
  // `keeps_cells`: for who asks for the cells of lists again and again. Else they are spelt out as they are asked for.
  RankProof(const Semantics& semantics, int rank, const Schedule& schedule, bool keeps_cells);

  const Schedule& schedule() const { return schedule_; }
  const Step& step(std::size_t index) const { return schedule_.steps[index]; }
  std::size_t cells() const { return inputs_ + outputs_ + schedule_.scratch.size(); }

  Status check_form();
  // Conflicting accesses must be ordered by `after`, directly or through other steps. Precondition: check_form() is ok.
  Status check_order();

  // Precondition: the list lies within the schedule. Where cells are not kept only the last three answers stay valid.
  std::span<const Cell> cells_of(RunList list) const {
    if (first_of_run_.empty()) return spelt_out(list);
    const std::size_t first = first_of_run_[list.first], end = first_of_run_[list.first + list.count];
    return std::span(cells_of_runs_).subspan(first, end - first);
  }
  BlockId block_of(Cell cell) const {
    if (cell.space == Space::scratch) return schedule_.scratch[cell.index];
    if (in_one_piece_) return (cell.space == Space::input ? first_input_ : first_output_) + cell.index;
    return cell.space == Space::input ? semantics_.input_block(rank_, cell.index)
                                      : semantics_.output_block(rank_, cell.index);
  }
  std::vector<BlockId> blocks_of(RunList list) const;

  // The memory behind a cell: with `in_place`, an input cell may be an output cell.
  std::size_t memory_of(Cell cell, bool in_place) const {
    if (cell.space == Space::scratch) return inputs_ + outputs_ + cell.index;
    if (cell.space == Space::output) return inputs_ + cell.index;
    if (!in_place || !aliases_) return cell.index;
    if (in_one_piece_) {
      const std::size_t behind = std::size_t{first_input_} + cell.index - first_output_;  // wraps where it is before
      return behind < outputs_ ? inputs_ + behind : cell.index;
    }
    const auto output = semantics_.aliased_output(rank_, cell.index);
    return output ? inputs_ + *output : cell.index;
  }
  // Whether input and output may share their memory.
  bool aliases() const { return aliases_; }

 private:
  // Who touched a piece of memory since it was written last.
  struct Access {
    std::int32_t writer = -1;
    std::int32_t readers = -1;  // head of a list in readers_
  };
  struct Reader {
    std::uint32_t step;
    std::int32_t next;
  };

  std::span<const Cell> spelt_out(RunList list) const;
  void append_cells(const CellRun& run, std::vector<Cell>& cells) const;
  Status check_step(std::size_t index);
  Status check_collective(std::size_t index, const Step& step) const;
  bool within_bounds(const CellRun& run) const;
  Status check_bounds(std::size_t index, RunList list) const;
  Status check_operands(std::size_t index, const Step& step);
  Status check_writes(std::size_t index, std::span<const Cell> destination);
  Status check_read(std::size_t index, std::span<const Cell> read, std::span<const Cell> destination) const;
  Status check_reads_in_order(std::size_t index, RunList list);
  Status check_writes_in_order(std::size_t index, RunList list);
  bool ordered(std::int32_t earlier, std::size_t later);
  Status unordered(std::size_t step, std::int32_t other, Cell cell) const;

  const Semantics& semantics_;
  int rank_;
  const Schedule& schedule_;
  std::size_t inputs_, outputs_;
  bool aliases_, in_one_piece_;
  BlockId first_input_ = 0, first_output_ = 0;  // where the blocks of each are in one piece
  std::vector<Cell> cells_of_runs_;
  std::vector<std::size_t> first_of_run_;  // in cells_of_runs_; and its size
  mutable std::array<std::vector<Cell>, 3> spelt_;
  mutable std::size_t next_spelt_ = 0;
  std::vector<std::uint32_t> position_;  // by memory: where in the step's destination, counted from 1; 0: not there
  std::vector<Access> accesses_;         // by memory
  std::vector<Reader> readers_;
  std::vector<std::uint32_t> known_after_;  // by step: the latest step that was found to come after it
};

}  // namespace plait::plan
