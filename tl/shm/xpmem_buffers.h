// Private buffers of a node's ranks, reached through XPMEM.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "core/status.h"
#include "tl/shm/peer_buffers.h"
#include "tl/shm/xpmem_library.h"

namespace plait::tl {

// The name of a buffer is its address. Peers' memory is attached in windows, which are kept: a window is attached when
// a buffer is first looked for, which makes system calls, and given up when a peer has more than `most_windows` of
// them.
//
// That a window outlives the peer's free() is XPMEM's doing: its page tables follow the peer's, by the kernel's MMU
// notifiers. What the peer unmaps leaves the window, and what it maps at these addresses later is entered at the next
// access. Nothing here touches addresses that the peer has not just named.
class XpmemBuffers final : public PeerBuffers {
 public:
  // A step looks for two buffers of each peer, so that what it uses is never given up.
  static constexpr std::size_t most_windows = 8;
  static constexpr std::uint64_t window_bytes = std::uint64_t{64} << 20;  // and multiples, aligned

  // `segments` by local index, as own_xpmem_segment() gave them there; `self` is this process's. The library outlives
  // this.
  static Result<std::unique_ptr<XpmemBuffers>> connect(const XpmemLibrary& library,
                                                       std::span<const std::int64_t> segments, std::size_t self);
  ~XpmemBuffers() override;
  XpmemBuffers(const XpmemBuffers&) = delete;
  XpmemBuffers& operator=(const XpmemBuffers&) = delete;

  // Smaller buffers have no name.
  void set_least_bytes(std::uint64_t bytes) { least_bytes_ = bytes; }

  std::optional<std::uint64_t> name(const std::byte* address, std::size_t bytes) const override;
  // nullptr where the kernel does not attach it. Not thread-safe.
  std::byte* find(std::size_t peer, std::uint64_t name, std::size_t bytes) const override;

 private:
  struct Window {
    std::uint64_t begin = 0, end = 0;  // the peer's addresses; end 0: not attached
    std::byte* here = nullptr;
    std::uint64_t used = 0;  // when
  };
  struct Peer {
    std::int64_t access = -1;
    std::array<Window, most_windows> windows;
  };

  explicit XpmemBuffers(const XpmemLibrary& library) : library_(library) {}
  Window* attach(Peer& peer, std::uint64_t begin, std::uint64_t end) const;

  const XpmemLibrary& library_;
  mutable std::vector<Peer> peers_;
  mutable std::uint64_t clock_ = 0;
  std::uint64_t least_bytes_ = 0;
};

// Both together: what lies in a shared heap by way of the shared heap. `shared_heaps` may be nullptr.
std::unique_ptr<PeerBuffers> join_buffers(std::unique_ptr<PeerBuffers> shared_heaps,
                                          std::unique_ptr<XpmemBuffers> others);

}  // namespace plait::tl
