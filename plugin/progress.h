// Moves operations on: non-blocking collectives.
//
// An operation is posted by any thread, which hands it over without waiting. From then on it belongs to whoever runs
// progress(): one thread at a time, others go away at once. The operations of a communicator run one after the other in
// the order of posting, which MPI guarantees to be the same on all ranks; those of different communicators side by
// side, and so do its persistent ones, in the order on which the ranks agree (start_order.h).
#pragma once

#include <mpi.h>

#include "plugin/operation.h"

namespace plait::plugin {

// Whether the host moves operations on while the program waits in it. Without that no call may be taken: a rank that
// waits in a collective of the host's would keep others from the end of theirs.
bool host_drives_progress();

// Takes on an operation that is prepared. Wait-free.
void hand_over(Operation& operation);

// The same for a start of a persistent one: it runs once all ranks have started it.
void hand_over_start(Operation& operation);

// Persistent collectives whose operations progress() moves on, from then on and until then.
void add_space(PersistentSpace& space);
void remove_space(PersistentSpace& space);

// For a wait: moves everything on until this operation is complete, for a while. True when it is and its request has
// not been told and will not be, so that the host is not needed; only where there is one thread.
bool complete_untold(Operation& operation);

// This rank cannot run a call that the others run: the communicator is broken with that error, and they are told.
void leave_out(Communicator& communicator, int error);

// One turn of everything that is posted; 0 when nothing moved. Does not block. A few nanoseconds when there is nothing.
// `may_call_host`: false in a thread that must not call MPI.
int progress(bool may_call_host = true);

// The same for a wait that the host gave to us: the host makes progress, too, and where nothing moves another process
// gets the core.
void progress_of_both();

// Whether the operation is complete and its request knows.
bool told(const Operation& operation);

// Whether there are operations that are not complete.
bool anything_posted();

// Waits until a communicator has no operations: its blocking calls come after those that were posted before.
void drain(Communicator& communicator);

// The same, before its state is destroyed: nobody looks at it any more.
void retire(Communicator& communicator);

}  // namespace plait::plugin
