// The channel over the host MPI's point-to-point messages, on a communicator of its own.
#pragma once

#include <mpi.h>

#include <memory>

#include "tl/channel.h"

namespace plait::tl {

struct MpiChannelOptions {
  std::size_t fragment_bytes = 60 * 1024;  // larger messages travel in pieces: below Open MPI's eager limit on TCP, so
                                           // that no hand-shake waits behind queued data
  int window = 8;                          // pieces under way to or from one peer
};

// `communicator` has the same ranks as the user's and is not used by anybody else; not owned. It must return errors.
std::unique_ptr<Channel> make_mpi_channel(MPI_Comm communicator, MpiChannelOptions options);

}  // namespace plait::tl
