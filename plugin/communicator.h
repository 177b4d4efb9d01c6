// What Plait knows of one of the program's communicators. It hangs on the communicator as an MPI attribute and dies
// with it: with MPI_Comm_free, MPI_Comm_disconnect or MPI_Finalize.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/aligned_bytes.h"
#include "core/status.h"
#include "plugin/piece.h"
#include "plugin/types.h"

namespace plait::plugin {

struct Communicator;
struct Machinery;       // bootstrap.h
struct Operation;       // operation.h
class Fusion;           // fusion.h
class PersistentSpace;  // persistent_space.h

// The lists of a call, in bytes: kept from call to call so that they keep their memory.
struct Lists {
  std::vector<std::size_t> counts, displacements;
  AlignedBytes operands;                 // of a user-defined operator
  std::vector<Piece> sends, receives;    // by rank, of an exchange by pairs
  std::vector<const std::byte*> prefix;  // what a scan combines
  Datatype input_type, output_type;      // of a single call
};

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

// How much is set up. UCX, the rates of the rails and the measurement of single copies take most of the time, and calls
// within short_call_bytes (schedule_cache.h) gain nothing by them.
enum class Extent { short_calls, all_calls };

struct TrialClass;  // trials.h

// A call that the host has, and that is timed.
struct TimedCall {
  TrialClass* tried = nullptr;  // nullptr: the call is not timed
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
  std::unique_ptr<Machinery> machinery;  // once accelerated

  TimedCall timed;  // what the host is to take next

  Lists lists;  // of the blocking calls, of which one runs at a time
  OperationQueue operations;
  std::unique_ptr<Fusion> fusion;  // of its non-blocking allreduces; nullptr: none yet, or no overlap plan

  std::shared_ptr<PersistentSpace>
      persistent;  // of its persistent collectives, which may outlive it; nullptr: none yet

  Communicator* next = nullptr;  // in the list of all
  Communicator* previous = nullptr;
};

// Once, before any other function here; and once all communicators were freed, before MPI ends.
void start_communicators();
void stop_communicators();

// Frees the state of every communicator that is still alive.
void free_all_communicators();

namespace detail {

// Communicators that this thread used lately. A handle may come to mean another communicator only after the first one's
// state was destroyed, which outdates all caches.
struct CommunicatorCache {
  struct Line {
    MPI_Comm handle;
    Communicator* communicator;
    std::uint64_t generation;
  };
  static constexpr std::size_t lines = 8;
  std::array<Line, lines> line{};
  static std::size_t index(MPI_Comm handle) {
    const auto bits = (std::uintptr_t)handle;  // a pointer or an integer, by MPI
    return (bits >> 6 ^ bits >> 10) % lines;
  }
};
extern thread_local constinit CommunicatorCache communicator_cache __attribute__((tls_model("initial-exec")));
extern constinit std::atomic<std::uint64_t> communicator_generation;

Communicator* find_communicator_slowly(MPI_Comm handle);

}  // namespace detail

// The state of a communicator, made at the first call; nullptr for MPI_COMM_NULL and for handles on which the host
// keeps no attribute: those calls are the host's. Throws where there is no memory for it. A few nanoseconds for
// communicators used lately.
inline Communicator* find_communicator(MPI_Comm handle) {
  const auto& line = detail::communicator_cache.line[detail::CommunicatorCache::index(handle)];
  if (line.handle == handle && line.generation == detail::communicator_generation.load(std::memory_order_acquire))
      [[likely]]
    return line.communicator;
  return detail::find_communicator_slowly(handle);
}

}  // namespace plait::plugin
