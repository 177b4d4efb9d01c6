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
#include "tl/shm/arena.h"

namespace plait::plugin {

// By whom the arena's handlers of fork() are registered, where it is not pthread_atfork(). Before the start.
void register_fork_by(ForkRegistration registration);

// Makes this process's arena, unless the settings want none. Without it everything stays private: one warning where the
// user asked for more. `ranks_on_node`: each of them may map the arenas of all others; 0: not known.
void start_shared_memory(const Config& config, int ranks_on_node);

// Where large calls found their buffers: collectives of at least 64 KiB between ranks of one node.
struct BufferCounts {
  std::uint64_t shared_calls = 0, private_calls = 0;  // all of the call's buffers in the arena; not all
  std::uint64_t shared_bytes = 0, private_bytes = 0;  // as the report counts the bytes of a call
};
inline constexpr std::size_t large_call_bytes = std::size_t{64} << 10;

// Thread-safe; two additions. Calls below large_call_bytes are not counted.
void note_buffers(std::size_t call_bytes, bool shared);
BufferCounts buffer_counts();

// What the report says to a user most of whose large calls worked on private buffers; "" where there is nothing to
// say. `shared` is the setting PLAIT_SHARED.
std::string shared_memory_advice(const BufferCounts& counts, const std::string& shared);

namespace door {

int alloc_mem(MPI_Aint size, MPI_Info info, void* base);
int free_mem(void* base);

}  // namespace door
}  // namespace plait::plugin
