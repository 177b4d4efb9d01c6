// How the ranks of a node reach each other's buffers without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace plait::tl {

// Neither function allocates, nor makes a system call for memory that was looked for lately.
class PeerBuffers {
 public:
  virtual ~PeerBuffers() = default;

  // The name by which peers find [address, address + bytes) of this process; nothing when they cannot.
  virtual std::optional<std::uint64_t> name(const std::byte* address, std::size_t bytes) const = 0;

  // Where the memory of that name of the local rank `peer` (an index in vrank order) is mapped here; nullptr when it is
  // no memory that the peer shares, or the system cannot map it. The last two answers for a peer stay valid.
  virtual std::byte* find(std::size_t peer, std::uint64_t name, std::size_t bytes) const = 0;
};

}  // namespace plait::tl
