// The channel within a node: rings of slots in one shared segment, and single copies through the kernel where allowed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "core/status.h"
#include "tl/channel.h"
#include "tl/shm/peer_buffers.h"

namespace plait::tl {

// How the others find a segment. A process id may be another process's by then, and a descriptor another file.
struct SegmentOffer {
  std::int32_t process = 0;
  std::int32_t descriptor = -1;
  std::uint64_t bytes = 0;              // 0: there is none
  std::uint64_t device = 0, inode = 0;  // what the descriptor must be when it is opened
};
static_assert(std::is_trivially_copyable_v<SegmentOffer>);

// The segment: created by the node's first rank, unnamed, mapped by the others through /proc/<pid>/fd/<n>, so that a
// killed rank leaves nothing behind.
class SharedSegment {
 public:
  // Bytes for `ranks` local ranks: 2 MiB for two, at most 4 MiB + 64 KiB a rank (beyond some 170 ranks a node: what
  // make_shm_channel needs, 384 bytes for each ordered pair and 37 KiB for each rank).
  static std::size_t default_bytes(int ranks);
  // With all that the ranks can use for shared-memory collectives, which pays where each has a core: some 2 MiB a rank,
  // at most 64 MiB.
  static std::size_t roomy_bytes(int ranks);
  // Bytes that do as well where no message, and no rank's part of a shared-memory collective, is longer than `payload`;
  // never more.
  static std::size_t least_bytes(int ranks, std::size_t payload);

  // Unnamed, in /dev/shm, readable by this user only, all its pages reserved. `numa_of_rank`, by local index, are the
  // NUMA nodes that the ranks run on (logical indices; -1: not known): where they differ, what a rank writes lies in
  // its node's memory.
  static Result<SharedSegment> create(std::size_t bytes, std::span<const int> numa_of_rank = {});
  // Likewise, but of pages that are not reserved yet: not to be touched before reserve(), by whom it is offered to
  // either.
  static Result<SharedSegment> create_unreserved(std::size_t bytes);
  Status reserve();
  // Opens what another process made by create(), whose offer() this is. Fails (unavailable) where the offer leads to
  // anything else by now.
  static Result<SharedSegment> attach(const SegmentOffer& offer);
  // Memory of somebody else's (threads standing in for ranks); not unmapped here.
  static SharedSegment view(std::byte* data, std::size_t bytes);

  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }
  // Precondition: made by create(), and the descriptor is not closed.
  SegmentOffer offer() const;
  void close_descriptor();  // once everybody has attached

 private:
  static Result<SharedSegment> create_empty(std::size_t bytes);

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  int descriptor_ = -1;
  bool owned_ = false;
};

// Shared-memory collectives by the way that they took (tl/shm/node_collectives.h), over all channels of a process.
struct ShmCollectiveWays {
  std::atomic<std::uint64_t> at_once{0}, directly{0}, by_kernel{0}, in_stages{0}, on_devices{0};
};

struct ShmChannelOptions {
  bool single_copy = false;               // process_vm_readv works between all local ranks (agreed)
  std::size_t single_copy_threshold = 0;  // bytes from which on it is offered; 0: built-in, by the size of the slots
  bool crowded = false;                   // ranks outnumber cores (agreed)
  // Bytes that a member of a shared-memory collective copies from one other at a time (a piece, or its share of a
  // vector), from which on shared-memory collectives take the single copy; by default never.
  std::size_t collective_single_copy_from = ~std::size_t{0};
  // Likewise of what the two ranks of a node only move.
  std::size_t pair_single_copy_from = ~std::size_t{0};
  // How shared-memory collectives reach other ranks' buffers; nullptr: not at all, on all ranks. Not owned, outlives
  // the channel.
  const PeerBuffers* buffers = nullptr;
  ShmCollectiveWays* ways =
      nullptr;  // where shared-memory collectives are counted when the channel ends. Not owned, outlives the channel
};

struct ShmPeer {
  int rank;     // in the communicator
  int process;  // its process id, as seen from here
};

// `peers` are the node's ranks in vrank order, the same on all of them; `self` is this process's index among them.
// The segment's creator must have left it zeroed. Takes over the segment.
Result<std::unique_ptr<Channel>> make_shm_channel(SharedSegment segment, std::span<const ShmPeer> peers, int self,
                                                  ShmChannelOptions options);

// The memory of all of a rank's stages in a segment that has no channel yet: what is left there does no harm. Empty
// where the segment is too small for a channel. `self` is a local index.
std::span<std::byte> stage_memory(const SharedSegment& segment, int ranks, int self);

// Whether this process can read `address` of `process` with process_vm_readv and finds `expected` there.
bool can_read_process(int process, const void* address, std::uint64_t expected);

}  // namespace plait::tl
