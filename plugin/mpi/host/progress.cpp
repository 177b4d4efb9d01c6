#include "plugin/mpi/host/progress.h"

#include <mpi.h>
#include <sched.h>

#include "plugin/mpi/host/host.h"
#include "plugin/mpi/host/host_progress.h"
#include "runtime/fusion/overlap_counts.h"
#include "runtime/job/job.h"
#include "runtime/progress/helper_bell.h"
#include "tl/trace.h"

namespace plait::plugin {
namespace {

// The program is within MPI.
int turn_from_host(Progress& progress) {
  if (progress.anything_posted() && job().watches_waits() && !on_helper_thread()) {
    const std::uint64_t now_ns = monotonic_ns();
    progress.host_turns.note(now_ns);
    OverlapCounts::instance().time.note_turn(now_ns);
  }
  return progress.progress();
}

// MPICH makes no progress in a probe among one rank.
void turn_of_wait(Progress& progress) {
  if (turn_from_host(progress) != 0) return;
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  sched_yield();
}

constinit Progress own({.turn_from_host = [](Progress& progress) { turn_from_host(progress); },
                        .turn_of_wait = turn_of_wait,
                        .waits_come_here = waits_come_here});

int progress_from_host() { return turn_from_host(own); }

}  // namespace

Progress& own_progress() { return own; }

bool host_drives_progress() {
  static const bool joined = join_host_progress(progress_from_host);
  return joined;
}

bool waits_come_here() { return host().start_request == nullptr; }

void progress_of_both() { turn_of_wait(own); }

}  // namespace plait::plugin
