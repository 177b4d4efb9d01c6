// Communicators that are set up where they are made, for programs whose calls on them never block: a call that must
// return cannot wait for a set-up, but one that makes a communicator may (decision 011).
#pragma once

#include <functional>

#include "runtime/execution/communicator.h"
#include "runtime/layer.h"

namespace plait::runtime {

// A call that does not block, on a communicator that is not set up.
void note_waiting_post(Communicator& communicator);

// What is known of a communicator of the program's; nullptr: nothing, or it is none. May throw std::bad_alloc.
using FindCommunicator = std::function<Communicator*()>;

// After one was made of another by a call that all ranks of the latter have made: sets up both, where that follows from
// the calls on the old one, or from PLAIT_SETUP_CALLS. Either is looked for only where it matters. Blocks then. A rank
// that has no memory for a communicator's state says so when a call is made on it.
void set_up_made(const FindCommunicator& from, const FindCommunicator& made) noexcept;

// When the job has started, of the communicator of all ranks: sets it up where PLAIT_SETUP_CALLS is 0. Collective then;
// blocks.
void set_up_world(const FindCommunicator& world) noexcept;

// What the persistent collectives of MPI_COMM_WORLD run on is set up: keeps their starts to the job's schedule, if
// there is one. Collective then; blocks.
void keep_starts_to_schedule(Communicator& space) noexcept;

}  // namespace plait::runtime
