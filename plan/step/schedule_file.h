// The joint plan of a program's step, as a file: what `plait schedule -o` writes and an enforcer keeps to.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/model/collective.h"
#include "plan/model/layer.h"

namespace plait::plan::step {

// A collective of the step, in the order in which the program issues them.
struct ScheduledOperation {
  std::string name = {};
  int communicator = 0;  // as recorded; 0: MPI_COMM_WORLD
  Collective collective = Collective::allreduce;
  std::size_t bytes = 0;  // as payload_bytes()
  bool blocking = false;  // its pieces run while the program waits
  std::string plan = {};  // "[segment:4,ring] @0,1": its rewriting and the rails that its parts take in turn
  int pieces = 1;         // motif::parts_of() the rewriting
};

// A place in a channel's order: `ahead`, so many steps the piece's operation is ahead of those with 0 at the same time.
struct ScheduledPiece {
  int operation = 0;
  int piece = 0;
  int ahead = 0;
  bool operator==(const ScheduledPiece&) const = default;
};

struct ScheduledChannel {
  std::string name = {};
  std::vector<ScheduledPiece> order = {};  // of a period, over and over
};

struct StepSchedule {
  std::string step = {};  // its name
  int ranks = 0;
  double seconds = 0, as_issued_seconds = 0;  // predicted, of an iteration
  std::vector<ScheduledOperation> operations = {};
  std::vector<ScheduledChannel> channels = {};
};

inline constexpr int most_steps_ahead = 6;
inline constexpr int most_scheduled_pieces = 64;  // of an operation

// {"plait_schedule": 1, "step": .., "ranks": .., "operations": [{"name", "communicator", "collective", "bytes",
// "blocking", "plan", "pieces"}], "channels": [{"name", "order": [{"operation", "piece", "steps_ahead"}]}]}; what else
// stands there is for people. Fails (invalid) with the place and what was expected there. Each piece of an operation
// stands on some channel, on each once at most.
Result<StepSchedule> parse_schedule(std::string_view text);

// Its operations on that communicator alone, with their places.
StepSchedule of_communicator(const StepSchedule& schedule, int communicator);

}  // namespace plait::plan::step
