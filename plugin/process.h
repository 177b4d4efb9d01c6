// What holds for the whole process: the settings, what the ranks of MPI_COMM_WORLD agreed on, and whether calls are
// taken.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"
#include "plan/choose/planner.h"
#include "plan/overlap/overlap_plan.h"
#include "plugin/layer.h"

namespace plait::plugin {

enum class Phase : std::uint8_t {
  before,    // MPI is not initialised, as far as we know
  starting,  // within the host's MPI_Init or ours: calls go to the host
  open,      // calls are taken
  off,       // disabled for good: calls go to the host, and the report still counts them
  over,      // MPI_Finalize has begun
};

struct Process {
  Config config;
  bool reporting = false;         // some rank asked for the report: all take part in it
  bool tracing = false;           // likewise
  bool first_rank = false;        // of MPI_COMM_WORLD: the one that warns of what all ranks see
  int ranks_on_machine = 0;       // of MPI_COMM_WORLD, on this rank's machine; 0: not known
  int ranks_on_node = 0;          // likewise, on this rank's node: emulated nodes are several on a machine
  std::vector<int> world_nodes;   // node of each rank of MPI_COMM_WORLD, from 0 on by first ranks; empty: not known
  bool concurrent = false;        // MPI_THREAD_MULTIPLE
  bool any_concurrent = false;    // of any rank of the job, as far as it is known
  bool main_thread_only = false;  // MPI_THREAD_SINGLE or MPI_THREAD_FUNNELED
  bool helped = false;            // a helper thread moves operations on: PLAIT_PROGRESS=thread, or an overlap plan
  std::uint64_t fingerprint = 0;  // of the settings that must be equal on all ranks
  const char* off_reason = "";    // in Phase::off
  std::shared_ptr<const TuningTable> table;    // PLAIT_TABLE; nullptr: none, or not the same on all ranks
  std::shared_ptr<const OverlapPlan> overlap;  // PLAIT_OVERLAP; likewise
  bool learns_overlap = false;                 // PLAIT_OVERLAP=auto; likewise
  mutable PlanStore plans;                     // of all communicators

  // Whether non-blocking allreduces may be fused.
  bool overlaps() const { return overlap != nullptr || learns_overlap; }
};

namespace detail {
extern constinit std::atomic<Phase> phase;
extern constinit std::atomic<bool> enabled;  // plait_set_enabled()
extern constinit std::atomic<bool> reporting;
extern constinit std::atomic<bool> threaded;
}  // namespace detail

// The settings. Precondition: start_process() was called.
const Process& process();

inline Phase phase() { return detail::phase.load(std::memory_order_acquire); }
inline bool accepting() { return phase() == Phase::open && detail::enabled.load(std::memory_order_relaxed); }
// Whether calls are counted. False before the start.
inline bool reporting() { return detail::reporting.load(std::memory_order_relaxed); }

// Whether several threads of this process may be in here: the program's, or ours beside it.
inline bool threaded() { return detail::threaded.load(std::memory_order_relaxed); }

// Entries "PLAIT_X=value" of a door's own, which stand before the environment's. Before the start.
void prefer_settings(std::vector<std::string> entries);

// The frame of MPI's life. The host's MPI_Init lies between the first two, and a failed one is taken back. The second
// agrees on the settings with all ranks of MPI_COMM_WORLD: it communicates.
void begin_initialisation();
void end_initialisation(bool initialised);

// For a call that comes although no MPI_Init was seen (the library was loaded later): starts without an agreement,
// where MPI is running. Thread-safe. Throws where memory is short.
void start_late();

// Before the host's MPI_Finalize, on all ranks: frees all communicators' state, prints the report, writes the trace.
void finish();

// What plait_last_plan() and plait_last_channels() answer: texts that live for ever.
struct LastCall {
  const char* plan = "";
  const char* channels = "";
};
namespace detail {
extern thread_local constinit LastCall last_call __attribute__((tls_model("initial-exec")));
}
inline void note_host_call() { detail::last_call = {.plan = "host", .channels = ""}; }

// FNV-1a: the same on every machine.
std::uint64_t hash_text(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325u);

// The same for all processes of one running kernel, emulated nodes included: they share its cores and its clock.
std::uint64_t machine_identity();

// One copy of each text, which is never freed: for the few names of plans and reasons that outlive a communicator.
const char* intern(std::string_view text);

}  // namespace plait::plugin
