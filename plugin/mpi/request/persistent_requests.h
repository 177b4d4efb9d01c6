// The requests of persistent collectives that the program holds, by handle. Thread-safe.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "plugin/mpi/request/operation.h"

namespace plait::plugin {

// Whether there are any: a look.
bool any_persistent();
// nullptr: it is none of these.
MpiOperation* find(MPI_Request handle);
// By `operation.persistence.handle`. Throws where memory is short.
void enlist(MpiOperation& operation);
// The host has started it under another handle. Needs no memory.
void rename(MpiOperation& operation, MPI_Request handle);
void strike_out(MPI_Request handle);
// Before MPI ends: all of them, which are nobody's afterwards.
std::vector<MpiOperation*> take_all();

// Gives the operation back; returns what it ran on.
std::shared_ptr<PersistentSpace> forget(MpiOperation& operation);
// Frees the spaces whose last request came to its end within progress(), which is no place for it.
void take_down_abandoned();

// Whether the binding has requests of its own for them.
bool of_binding();
// Whose error handler is told.
MPI_Comm raising(const Communicator& communicator);

// Called by progress() when the operation has come to an end: completes what the program holds.
void conclude_start(MpiOperation& operation);

}  // namespace plait::plugin
