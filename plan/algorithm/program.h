// Programs of the P² method (Xie et al., MLSys 2022, section 3): a collective as a list of smaller ones, each over all
// groups of ranks that agree on the coordinates outside a range of levels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/algorithm/registry.h"
#include "plan/model/instruct.h"

namespace plait::plan {

// One instruction over levels first..last (0-based, outermost is 0, both included).
struct Instruction {
  Instruct what = Instruct::all_reduce;
  int first = 0, last = 0;
  const Algorithm* algorithm = all_algorithms.front();
  bool algorithm_given = true;  // false: the text named none, and any may be taken
  bool operator==(const Instruction&) const = default;
};

struct Program {
  std::vector<Instruction> instructions;
  bool operator==(const Program&) const = default;
};

// "RS.2(ring) AR.1(ring) AG.2(ring)": levels are numbered from 1, outermost first; "AG.12" spans levels 1 and 2.
// An algorithm that is left out is the first that fits groups of any size (default_algorithm).
Result<Program> parse_program(std::string_view text);
std::string text(const Program& program);
std::string text_without_algorithms(const Program& program);  // "RS.2 AR.1 AG.2"

}  // namespace plait::plan
