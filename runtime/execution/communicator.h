// What the runtime keeps of the ranks that call collectives together, from their first call on: an MPI communicator's,
// later a UCC team's. State alone, but for what only its caller can do.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "runtime/execution/device_exchange.h"
#include "runtime/execution/grouping.h"
#include "runtime/execution/neighbor_exchange.h"
#include "runtime/execution/ordered_exchange.h"
#include "runtime/execution/pair_exchange.h"
#include "runtime/layer.h"
#include "runtime/team/extent.h"
#include "runtime/team/team.h"

namespace plait::runtime {

struct Communicator;
class Progress;         // progress/progress.h
class PersistentSpace;  // progress/persistent_space.h

// A communicator's non-blocking calls that are not complete. All but `pending` belongs to whoever runs progress().
struct OperationQueue {
  Operation* first = nullptr;  // one runs after the other, as messages meet in order; this one is running
  Operation* last = nullptr;
  std::atomic<int> pending{0};  // all of them, from their posting on
  Status failure;               // of the operation that broke the communicator
  std::uint32_t idle_turns = 0;
  bool listed = false;  // among those that progress() looks at
  Communicator* next_listed = nullptr;
};

// The same on all ranks of the communicator at every call: changes follow only from what MPI guarantees to be equal and
// from what the ranks agreed on.
enum class Road : std::uint8_t {
  waiting,  // not enough eligible calls yet to be worth the set-up
  accelerated,
  host,    // for ever, for `host_reason`
  broken,  // a transfer failed: the ranks may disagree on what was done, so that every call fails with that error
};

// A sample of a trial that the host has.
struct TimedCall {
  TrialClass* tried = nullptr;  // nullptr: the call is not timed
  std::uint64_t begin_ns = 0;
  std::size_t bytes = 0;  // payload_bytes()
};

struct Communicator {
  explicit Communicator(Progress& mover);
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Collective, with the same extent on all ranks; blocks. `before` is what the communicator has so far, or nullptr.
  // All ranks succeed or all fail.
  virtual Result<std::unique_ptr<Team>> connect(TeamExtent extent, std::unique_ptr<Team> before) noexcept = 0;
  // For a rank that cannot, while the others connect with nothing before: they fail at once. Needs no memory of ours.
  virtual void decline_set_up() noexcept = 0;
  // Tells the program of a call's failure, a code of the caller's; returns what the call is to return.
  virtual int raise(int code) = 0;

  Progress& progress;  // moves its operations on
  int rank = 0;
  int ranks = 1;  // of both groups of an inter-communicator
  bool inter = false;
  std::atomic<Road> road{Road::waiting};
  const char* host_reason = "";       // interned
  const char* grid = "";              // interned: ReportKey::grid; "" where nothing is reported as well
  std::vector<std::string> channels;  // that its set-up may use (plait_set_channels); empty: those of PLAIT_CHANNELS
  int eligible_calls = 0;             // while it waits to be set up
  int posted_calls = 0;               // of those, that do not block
  bool only_posts = false;            // it was set up, or made of one that was, because all of its calls were such
  int made_of_it = 0;                 // since the last call that does not block: communicators that were set up at once
  bool posts = false;                 // the program makes non-blocking calls: what is set up for them is for any length
  int error = 0;                      // of a broken one: a code of the caller's
  std::unique_ptr<Team> team;         // once accelerated

  // What a timed call was told (call/blocking.h), until it says that the host is through. Where an error handler of the
  // program's does not return, the next call ends it.
  TimedCall sample;

  std::unique_ptr<PairExchange> pairs;          // of the blocking calls, of which one runs at a time; nullptr: none yet
  std::unique_ptr<NeighborExchange> neighbors;  // likewise
  std::unique_ptr<OrderedExchange> ordered;     // likewise
  std::unique_ptr<DeviceExchange> on_devices;   // likewise
  OperationQueue operations;
  std::unique_ptr<Grouping> grouping;  // of its non-blocking calls; nullptr: they run one by one
  std::shared_ptr<PersistentSpace>
      persistent;  // of its persistent collectives, which may outlive it; nullptr: none yet
};

}  // namespace plait::runtime
