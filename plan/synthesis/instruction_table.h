// The instructions that a program may be made of on a system, with their algorithms and what they cost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/model/program.h"
#include "plan/synthesis/group_model.h"
#include "plan/synthesis/level_state.h"

namespace plait::plan {

// How an instruction's groups lie in the levels.
struct Extent {
  int members = 1;
  bool several_levels = false;
  bool whole_node = false;  // all ranks of a node, with shared memory among them
  bool aligned = true;      // all of one size, and within the outermost level of powers of two
};
Extent extent_of(const GroupModel& model, int first, int last);

// Whether the algorithm can carry out the instruction there.
bool possible(Instruct what, Algorithm algorithm, const Extent& extent);
// Of algorithms that are the same in such groups, one is enough; trees that cross levels without regard to them are
// never better than one tree a level.
bool worth_trying(Instruct what, Algorithm algorithm, const Extent& extent);
// Whether operands stay in the order of the ranks.
bool keeps_order(const Instruction& instruction);

// All instructions with their algorithms, by range of levels and kind. Ranges are numbered by first, then last level.
class InstructionTable {
 public:
  enum class Choice { worth_trying, all };
  // `algorithms`: bit set of those that may be used.
  InstructionTable(const SynthesisTask& task, const GroupModel& model, std::uint32_t algorithms, Choice choice);

  std::span<const InstructionShape> of(int range, Instruct what) const;
  std::span<const InstructionShape> all() const { return shapes_; }

 private:
  int levels_;
  std::vector<InstructionShape> shapes_;
  std::vector<std::uint32_t> first_;
};

}  // namespace plait::plan
