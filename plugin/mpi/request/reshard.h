// What plait_reshard_*() do with MPI's types; the rest is runtime/reshard.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

#include "core/status.h"
#include "plugin/layer.h"
#include "runtime/reshard/resharding.h"

namespace plait::plugin {

// Why `element` cannot be a tensor's; else its size. Throws where memory is short.
Status read_element(MPI_Datatype element, std::size_t& bytes);

// Resharding::make() among the ranks of a communicator of the program's.
Result<std::unique_ptr<Resharding>> make_resharding(MPI_Comm comm, const ReshardArguments& arguments);

// The communicator that it was made of.
MPI_Comm comm_of(Resharding& resharding);

// Both return an MPI error code, which was raised. Neither allocates, but for what the host's requests take.
int execute(Resharding& resharding, const void* source, void* destination);
int start(Resharding& resharding, const void* source, void* destination, MPI_Request* request);

}  // namespace plait::plugin
