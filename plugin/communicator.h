// What Plait knows of one of the program's communicators. It hangs on the communicator as an MPI attribute and dies
// with it: with MPI_Comm_free, MPI_Comm_disconnect or MPI_Finalize.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "plugin/lists.h"

namespace plait::runtime {
struct Team;        // team/team.h
struct TrialClass;  // trial/trials.h
}  // namespace plait::runtime

namespace plait::plugin {

using runtime::Team;

struct Communicator;
class PairExchange;     // pair_exchange.h
struct Operation;       // operation.h
class Fusion;           // fusion.h
class PersistentSpace;  // persistent_space.h

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

// A call that the host has, and that is timed.
struct TimedCall {
  runtime::TrialClass* tried = nullptr;  // nullptr: the call is not timed
  std::uint64_t begin_ns = 0;
};

struct Communicator {
  explicit Communicator(MPI_Comm comm);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  MPI_Comm handle;
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
  int error = MPI_SUCCESS;            // of a broken one
  std::unique_ptr<Team> team;         // once accelerated

  TimedCall timed;  // what the host is to take next

  // Of the blocking calls, of which one runs at a time.
  Lists lists;
  std::unique_ptr<PairExchange> pairs;  // nullptr: none yet
  OperationQueue operations;
  // Of its non-blocking allreduces; nullptr: none yet, or no overlap plan.
  std::unique_ptr<Fusion, void (*)(Fusion*)> fusion{nullptr, nullptr};

  std::shared_ptr<PersistentSpace>
      persistent;  // of its persistent collectives, which may outlive it; nullptr: none yet

  Communicator* next = nullptr;  // in the list of all
  Communicator* previous = nullptr;
};

}  // namespace plait::plugin
