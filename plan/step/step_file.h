// One step of an iterative program, as a file: its computation and its collectives in the order in which it issues them
// (docs/schedule.md). What `plait schedule` reads.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/model/collective.h"
#include "plan/model/layer.h"

namespace plait::plan::step {

// Whether a step's file has such operations.
bool in_steps(Collective collective);

struct Task {
  std::string name;
  double seconds = 0;                            // of a computation
  std::optional<Collective> collective = {};     // of an operation
  std::size_t bytes = 0;                         // of an operation: as payload_bytes()
  std::vector<std::string> after = {};           // earlier tasks of the same step that it waits for
  std::vector<std::string> after_previous = {};  // tasks of the step before
  // What a recording knows beside them.
  int communicator = 0;     // of an operation: its place in the recording's list
  bool blocking = false;    // the program waited in the call itself, which `after` of what follows says as well
  bool persistent = false;  // a start of a persistent one: not in the order of the communicator's other calls
  std::string site = {};    // where the program made the call
  std::string type = {}, op = {};
};

struct Step {
  std::string name;
  std::string of = {};  // what it stands for: the program or the paper, and how it was scaled
  std::vector<Task> tasks;
};

// {"plait_step": 1, "name": .., "tasks": [{"name": .., "seconds": ..} or {"name": .., "collective": "alltoall",
// "bytes": ..}, with "after": [names], "after_previous": [names],
// "communicator": 0, "blocking": false, "persistent": false, "site": .., "type": .., "op": ..]}. Or a recording
// (docs/record.md), whose "step" is that. Fails (invalid) with the place and what was expected there; names are each
// given once, and `after` names earlier tasks.
Result<Step> parse_step(std::string_view text);
std::string step_json(const Step& step);

}  // namespace plait::plan::step
