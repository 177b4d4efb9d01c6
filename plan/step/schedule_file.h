// The joint plan of a program's step, as a file: what `plait schedule -o` writes and an enforcer keeps to.
#pragma once

#include <cstddef>
#include <cstdint>
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
  std::size_t bytes = 0;    // as payload_bytes()
  bool blocking = false;    // its pieces run while the program waits
  bool persistent = false;  // started: not in the order of the communicator's other calls
  std::string plan = {};    // "[segment:4,ring] @0,1": its rewriting and the rails that its parts take in turn
  int pieces = 1;           // motif::parts_of() the rewriting
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
// "blocking", "persistent", "plan", "pieces"}], "channels": [{"name", "order": [{"operation", "piece",
// "steps_ahead"}]}]}; what else stands there is for people. Fails (invalid) with the place and what was expected there.
// Each piece of an operation stands on some channel, on each once at most.
Result<StepSchedule> parse_schedule(std::string_view text);

// Who says in which order all ranks make a communicator's calls: MPI, of those that are posted, blocking or not; the
// ranks themselves, of starts of persistent ones.
enum class CallOrder : std::uint8_t { posted, started };

// Whether it has operations of that communicator and order.
bool has_part(const StepSchedule& schedule, int communicator, CallOrder order);
// These alone, with their places.
StepSchedule part_of(const StepSchedule& schedule, int communicator, CallOrder order);

}  // namespace plait::plan::step
