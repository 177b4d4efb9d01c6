// Copies between this process's memory and a peer's through the kernel (cross-memory attach).
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "tl/channel.h"
#include "tl/shm/remote_span.h"

namespace plait::tl::detail {

struct Ring;
struct Slot;

// The message's spans into the slot and out of it. False when the slot cannot hold so many.
bool write_spans(const Ring& ring, Slot& slot, const Memory& memory);
std::span<const RemoteSpan> spans_in(Slot& slot);  // as long as the slot is not written again

// How a single copy is cut; both sides compute it from the message alone.
class Pieces {
 public:
  explicit Pieces(const Transfer& transfer);
  std::uint32_t count() const { return static_cast<std::uint32_t>((total_ + piece_ - 1) / piece_); }
  std::uint64_t offset(std::uint32_t index) const { return std::uint64_t{index} * piece_; }
  std::size_t bytes(std::uint32_t index) const {
    const std::uint64_t left = total_ - offset(index);
    return left < piece_ ? static_cast<std::size_t>(left) : piece_;
  }

 private:
  std::uint64_t total_;
  std::size_t piece_;
};

// Bytes [offset, offset + bytes) of a message whose spans in the peer's memory are `remote`.
struct RemotePiece {
  const Ring* ring;
  std::span<const RemoteSpan> remote;
  std::uint64_t offset;
  std::size_t bytes;
};

// From the peer's memory into the same bytes of `local`, and from `local` to the peer.
Status pull(const RemotePiece& piece, const Memory& local);
Status push(const RemotePiece& piece, const Memory& local);

}  // namespace plait::tl::detail
