// What the ranks of a communicator of ours do together while it is set up, by the host's collectives. Each is a meeting
// of all ranks first, from which one may be missing that cannot go on: it withdraws, and the others' step fails with
// its rank (Code::peer_failed), instead of waiting for it for ever.
#pragma once

#include <mpi.h>

#include <string_view>

#include "core/status.h"
#include "plugin/layer.h"

namespace plait::plugin {

// `what` the ranks do by the step, for the failure: "exchange their locations".
Status meet_all(MPI_Comm comm, std::string_view what);
Status gather_all(const void* mine, int bytes, void* all, MPI_Comm comm, std::string_view what);
Status tell_all(void* text, int bytes, MPI_Comm comm, std::string_view what);  // what rank 0 has
Status reduce_all(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                  std::string_view what);

// This rank takes no further step: the others learn of it where they meet next, if they do: it does not wait for them.
// Needs no memory of ours. A communicator of ours is left, never freed, afterwards.
void withdraw(MPI_Comm comm) noexcept;
// Ok on all ranks or on none: after what each does by itself, before what they do together by other ways.
Status go_on_together(MPI_Comm comm, const Status& mine) noexcept;

}  // namespace plait::plugin
