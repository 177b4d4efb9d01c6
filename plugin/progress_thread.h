// PLAIT_PROGRESS=thread: a helper thread that moves posted operations on while the program computes.
//
// It never calls MPI unless the program asked for MPI_THREAD_MULTIPLE: operations over the host's messages, or with
// data that the host must pack, wait for the program's own calls, and so does the last part of every operation, which
// tells the program.
//
// It keeps to the share of its core that progress_share.h has at hand, what it reduces and copies included. While the
// program waits in MPI it moves operations on itself, and takes what it wants.
#pragma once

#include "core/config.h"

namespace plait {

// Once, after MPI is initialised; does nothing unless it is wanted (process().helped). The thread sleeps while nothing
// is posted.
void start_progress_thread(const Config& config);
// Before MPI ends. Waits for the thread's end.
void stop_progress_thread();

// Something was posted. A few nanoseconds where there is no thread, or where it is awake.
void wake_progress_thread();

// Whether the caller is that thread: the host's progress may bring it back here.
bool on_helper_thread();

}  // namespace plait
