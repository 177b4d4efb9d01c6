// All programs of a task, counted or listed. A program ends where it first meets the goal.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/algorithm/program.h"
#include "plan/synthesis/level_state.h"

namespace plait::plan {

// Programs by size: element s is the number of programs of s instructions, s <= most_instructions. Dynamic programming
// over the level states. A reduction over n levels takes 2n instructions at the most, other tasks 3n; 64 bits hold the
// number of all.
std::vector<std::uint64_t> count_programs(const SynthesisTask& task, int most_instructions);

// Programs of up to `most_instructions`, without algorithms, in one array: sizes ascending, then in the order of
// instructions. At most `limit` of them.
class ProgramList {
 public:
  std::size_t size() const { return first_.size() - 1; }
  std::size_t length(std::size_t program) const { return first_[program + 1] - first_[program]; }
  Program program(std::size_t index) const;

 private:
  friend ProgramList list_programs(const SynthesisTask& task, int most_instructions, std::size_t limit);
  struct Code {
    std::uint8_t what, first, last;
  };
  std::vector<Code> codes_;
  std::vector<std::uint32_t> first_ = {0};
};
ProgramList list_programs(const SynthesisTask& task, int most_instructions, std::size_t limit);

}  // namespace plait::plan
