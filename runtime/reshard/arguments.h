// What a program gives for a resharding (plait_reshard_create), read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "plan/reshard/plan.h"
#include "plan/reshard/task.h"
#include "runtime/layer.h"
#include "runtime/reshard/agreement.h"

namespace plait::runtime {

// One mesh as the program gives it.
struct MeshArguments {
  int ndims;
  const int* dims;
  const int* ranks;  // nullptr: 0, 1, ..
  const char* spec;
};

struct ReshardArguments {
  MeshArguments source, destination;
  int ndims;
  const std::int64_t* shape;
  Status element;  // why the type of the elements cannot be used
  std::size_t element_bytes;
  const char* options;  // nullptr: none
  bool wants_plan;      // has a place for it
};

struct ReshardProblem {
  reshard::Task task;  // in the ranks of the communicator that the program names
  reshard::Options options;
};

// What the options say: "strategy=broadcast scheduler=search seed=1 chunks=0", any of them, in any order.
Result<reshard::Options> parse_reshard_options(const std::string& text);

// `ranks`: of the communicator. On a failure `problem` is what could be read until then. Throws where memory is short.
Status read_arguments(const ReshardArguments& arguments, int ranks, ReshardProblem& problem);

// What all ranks must give alike: all of the arguments. Throws where memory is short.
std::vector<Said> arguments_said(const ReshardProblem& problem);

}  // namespace plait::runtime
