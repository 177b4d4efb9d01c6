// What this process counts for the report of the traffic within nodes (report/node_report.h). All of it is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/layer.h"
#include "tl/shm/shm_channel.h"

namespace plait::runtime {

ShmCollectiveWays& shm_collective_ways();

// A segment of this process's making, while it lives.
void note_segment(std::uint64_t bytes);
void forget_segment(std::uint64_t bytes);

// What a communicator of this process chose: bytes from which on copies go by the kernel, and through XPMEM.
void note_single_copy(std::uint64_t kernel_from, std::uint64_t mapped_from);

// Where large calls found their buffers: collectives of at least 64 KiB between ranks of one node.
struct BufferCounts {
  std::uint64_t shared_calls = 0, private_calls = 0;  // all of the call's buffers in the shared heap; not all
  std::uint64_t shared_bytes = 0, private_bytes = 0;  // as the report counts the bytes of a call
};
inline constexpr std::size_t large_call_bytes = std::size_t{64} << 10;

// Two additions. Calls below large_call_bytes are not counted.
void note_buffers(std::size_t call_bytes, bool shared);
BufferCounts buffer_counts();

// The rest of it.
struct NodeCounts {
  std::uint64_t segments_peak = 0, largest_segment = 0;  // bytes
  std::uint64_t kernel_from = 0, mapped_from = 0;        // the largest that a communicator chose; 0: none did
};
NodeCounts node_counts();

}  // namespace plait::runtime
