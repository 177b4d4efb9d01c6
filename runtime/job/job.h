// What holds for the whole process: the settings, what the ranks of the job agreed on, and whether calls are taken.
// State alone; who changes it is lifecycle.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"
#include "plan/choose/planner.h"
#include "plan/overlap/overlap_plan.h"
#include "plan/step/schedule_file.h"
#include "runtime/layer.h"

namespace plait::runtime {

enum class Phase : std::uint8_t {
  before,    // MPI is not initialised, as far as we know
  starting,  // within the host's MPI_Init or ours: calls go to the host
  open,      // calls are taken
  off,       // disabled for good: calls go to the host, and the report still counts them
  over,      // MPI_Finalize has begun
};

struct Job {
  Config config;
  std::string mpi_library;  // what the host calls itself
  std::string mpi_release;  // of the host: "Open MPI v4.1.4"
  plan::HostKind host = plan::HostKind::mpi;
  bool reporting = false;         // some rank asked for the report: all take part in it
  bool tracing = false;           // likewise
  bool first_rank = false;        // of MPI_COMM_WORLD: the one that warns of what all ranks see
  int ranks_on_machine = 0;       // of MPI_COMM_WORLD, on this rank's machine; 0: not known
  int ranks_on_node = 0;          // likewise, on this rank's node: emulated nodes are several on a machine
  std::vector<int> world_nodes;   // node of each rank of MPI_COMM_WORLD, from 0 on by first ranks; empty: not known
  std::uint64_t machine = 0;      // discover_machine()
  bool concurrent = false;        // MPI_THREAD_MULTIPLE
  bool any_concurrent = false;    // of any rank of the job, as far as it is known
  bool main_thread_only = false;  // MPI_THREAD_SINGLE or MPI_THREAD_FUNNELED
  bool helped = false;  // a helper thread moves operations on: PLAIT_PROGRESS=thread, an overlap plan or a schedule
  std::uint64_t fingerprint = 0;                             // of the settings that must be equal on all ranks
  const char* off_reason = "";                               // in Phase::off
  std::shared_ptr<const TuningTable> table;                  // PLAIT_TABLE; nullptr: none, or not the same on all ranks
  std::shared_ptr<const OverlapPlan> overlap;                // PLAIT_OVERLAP; likewise
  bool learns_overlap = false;                               // PLAIT_OVERLAP=auto; likewise
  std::shared_ptr<const plan::step::StepSchedule> schedule;  // PLAIT_SCHEDULE; likewise
  mutable PlanStore plans;                                   // of all communicators

  bool makes_schedule = false;  // PLAIT_SCHEDULE=auto; likewise

  // By this process, of all communicators' segments: further ones are the host's.
  std::size_t most_mapped_bytes = std::size_t{512} << 20;

  // Whether non-blocking allreduces may be fused.
  bool overlaps() const { return overlap != nullptr || learns_overlap; }
  // Whether calls may be kept to a schedule.
  bool schedules() const { return schedule != nullptr || makes_schedule; }
  // Whether it matters when the program waits.
  bool watches_waits() const { return overlaps() || schedules(); }
};

namespace detail {
extern constinit Job* job;  // never destroyed: calls may come until the process ends
extern constinit std::atomic<Phase> phase;
extern constinit std::atomic<bool> enabled;  // plait_set_enabled()
extern constinit std::atomic<bool> reporting;
extern constinit std::atomic<bool> threaded;
}  // namespace detail

// The settings. Precondition: Plait has started (lifecycle.h).
inline const Job& job() { return *detail::job; }

inline Phase phase() { return detail::phase.load(std::memory_order_acquire); }
inline bool accepting() { return phase() == Phase::open && detail::enabled.load(std::memory_order_relaxed); }
// Whether calls are counted. False before the start.
inline bool reporting() { return detail::reporting.load(std::memory_order_relaxed); }

// Whether several threads of this process may be in here: the program's, or ours beside it.
inline bool threaded() { return detail::threaded.load(std::memory_order_relaxed); }

// Who has what Plait does not take, in what it says to the user.
inline std::string name_of_host(const Job& job) {
  return job.host == plan::HostKind::layers ? "UCC's next layer" : "the host MPI";
}

// What plait_last_plan() and plait_last_channels() answer: texts that live for ever.
struct LastCall {
  const char* plan = "";
  const char* channels = "";
};
namespace detail {
extern thread_local constinit LastCall last_call __attribute__((tls_model("initial-exec")));
}
inline void note_call(LastCall call) { detail::last_call = call; }
inline void note_host_call() { note_call({.plan = "host", .channels = ""}); }
inline LastCall last_call() { return detail::last_call; }

// What plait_trial_calls() answers.
namespace detail {
extern constinit std::atomic<unsigned long> trial_calls;
}
inline void note_trial_call() { detail::trial_calls.fetch_add(1, std::memory_order_relaxed); }
inline unsigned long trial_calls() { return detail::trial_calls.load(std::memory_order_relaxed); }

}  // namespace plait::runtime
