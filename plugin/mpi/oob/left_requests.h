// Messages of a failure that were on their way when their rank went on: words and notices to ranks that did not look
// at the time. MPI must not end before they have gone out: Open MPI 4.1 crashes in MPI_Finalize where another rank's
// connection to it, made for such a message, has been accepted and not taken up yet (btl/tcp frees the endpoint and
// leaves its timer armed: 9 of 15 jobs of 12 busy ranks, none of 60 where the sender waits).
#pragma once

#include <mpi.h>

#include <cstdint>

#include "plugin/layer.h"

namespace plait::plugin {

// Takes the request over. What it works on is never freed. Needs no memory; thread-safe.
void leave_request(MPI_Request request) noexcept;
// A failure of this rank's or of another's: other ranks may be telling this one of it still.
void note_failure() noexcept;

// Before MPI ends: moves the host on until what this rank left has gone out, or for `longest_ns`; after a failure, for
// long enough besides that this rank takes up the connections that wait for it. At once where nothing has failed. True
// if all has gone out.
bool settle_left_requests(std::uint64_t longest_ns) noexcept;

}  // namespace plait::plugin
