// What the ranks of a communicator of ours do together while it is set up, by the host's collectives. All return an MPI
// error code. Each is a meeting of all ranks first, from which one may be missing that cannot go on: it withdraws, and
// the others' step fails, instead of waiting for it for ever.
#pragma once

#include <mpi.h>

#include "core/status.h"
#include "plugin/layer.h"

namespace plait::plugin {

int meet_all(MPI_Comm comm);
int gather_all(const void* mine, int bytes, void* all, MPI_Comm comm);
int tell_all(void* text, int bytes, MPI_Comm comm);  // what rank 0 has
int reduce_all(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

// This rank takes no further step: the others learn of it where they meet next. Needs no memory.
void withdraw(MPI_Comm comm) noexcept;
// Ok on all ranks or on none: after what each does by itself, before what they do together by other ways.
Status go_on_together(MPI_Comm comm, const Status& mine) noexcept;

}  // namespace plait::plugin
