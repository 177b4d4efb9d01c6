// PLAIT_PROGRESS=thread: a helper thread that moves posted operations on while the program computes.
//
// It never calls MPI unless the program asked for MPI_THREAD_MULTIPLE: operations over the host's messages, or with
// data that the host must pack, wait for the program's own calls, and so does the last part of every operation, which
// tells the program.
//
// Workers help it with long copies and reductions (core/work_team.h), where a share of several threads is at hand:
// each on a processing unit of its own, as long as the program may use so many. They sleep while there are none.
//
// Each keeps to the share of its core that progress_share.h has at hand, whatever it does. While the program waits in
// MPI it moves operations on itself, and takes what it wants.
#pragma once

#include "core/config.h"
#include "plan/overlap/overlap_plan.h"
#include "runtime/layer.h"
#include "runtime/progress/progress.h"

namespace plait::runtime {

// Once, after MPI is initialised; does nothing unless it is wanted (job().helped). The thread sleeps while nothing
// is posted.
void start_progress_thread(Progress& progress, const Config& config);
// Before MPI ends. Waits for the end of the thread and of its workers.
void stop_progress_thread();

// Starts workers for shares of so many threads, the helper included, or of a plan, where there is a helper. Blocks
// while threads are made. Thread-safe; any thread.
void provide_helper_threads(int threads);
void provide_helper_threads(const OverlapPlan& plan);

}  // namespace plait::runtime
