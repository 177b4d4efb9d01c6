// The instructions that a program may be made of on a system, with their algorithms and what they cost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/algorithm/program.h"
#include "plan/synthesis/group_model.h"
#include "plan/synthesis/level_state.h"

namespace plait::plan {

Extent extent_of(const GroupModel& model, int first, int last);

// Whether the algorithm can carry out the instruction there.
bool possible(Instruct what, const Algorithm& algorithm, const Extent& extent);
// Whether operands stay in the order of the ranks.
bool keeps_order(const Instruction& instruction);
// Those that may be used; none: the usual ones.
using Algorithms = std::span<const Algorithm* const>;
bool is_among(const Algorithm& algorithm, Algorithms allowed);

// All instructions with their algorithms, by range of levels and kind. Ranges are numbered by first, then last level.
class InstructionTable {
 public:
  enum class Choice { worth_trying, all };
  InstructionTable(const SynthesisTask& task, const GroupModel& model, Algorithms algorithms, Choice choice);

  std::span<const InstructionShape> of(int range, Instruct what) const;
  std::span<const InstructionShape> all() const { return shapes_; }

 private:
  int levels_;
  std::vector<InstructionShape> shapes_;
  std::vector<std::uint32_t> first_;
};

}  // namespace plait::plan
