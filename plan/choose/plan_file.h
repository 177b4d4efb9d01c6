// A plan in a file, as `plait synth --save` writes it (docs/p2.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/algorithm/program.h"
#include "plan/model/collective.h"

namespace plait::plan {

struct PlanFile {
  Collective collective = Collective::allreduce;
  std::vector<int> hierarchy;  // cardinalities of the communicators that it is for, outermost first
  Program program;
  int chunks = 1;
};

// Fails with the member that is wrong and what was expected. Nothing is proven here.
Result<PlanFile> parse_plan_file(std::string_view json);
std::string plan_file_json(const PlanFile& plan);

// What PLAIT_PLAN's value says: the value itself, or the content of the file that it names (its name ends in ".json").
Result<std::string> read_plan(const std::string& value);

}  // namespace plait::plan
