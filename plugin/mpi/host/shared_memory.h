// Memory that the node's other ranks can map (docs/memory.md): what MPI_Alloc_mem and plait_alloc give, and what the
// report says of it.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/config.h"
#include "plugin/layer.h"
#include "tl/shm/shared_heap.h"

namespace plait::plugin {

// By whom the shared heap's handlers of fork() are registered, where it is not pthread_atfork(). Before the start.
void register_fork_by(ForkRegistration registration);

// Makes this process's shared heap, unless the settings want none. Without it everything stays private: one warning
// where the user asked for more. `ranks_on_node`: each of them may map the shared heaps of all others; 0: not known.
void start_shared_memory(const Config& config, int ranks_on_node);

namespace binding {

int alloc_mem(MPI_Aint size, MPI_Info info, void* base);
int free_mem(void* base);

}  // namespace binding
}  // namespace plait::plugin
