// Walking the bytes of a Memory: its spans one after the other, from any offset.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tl/channel.h"

namespace plait {

// One span after the other; a cursor at the end has no bytes.
class MemoryCursor {
 public:
  // Precondition: `offset` is at most the memory's bytes.
  MemoryCursor(const Memory& memory, std::uint64_t offset) : memory_(memory), within_(offset) { skip_finished(); }

  std::byte* data() const { return memory_.buffers->at(span().space) + span().offset + within_; }
  // Contiguous bytes from data() on; 0 at the end.
  std::uint64_t contiguous() const { return index_ < memory_.count ? span().bytes - within_ : 0; }
  // Precondition: `bytes` is at most contiguous().
  void advance(std::uint64_t bytes) {
    within_ += bytes;
    skip_finished();
  }

 private:
  const BoundSpan& span() const { return memory_.spans[index_]; }
  void skip_finished() {
    while (index_ < memory_.count && within_ >= span().bytes) within_ -= memory_.spans[index_++].bytes;
  }

  Memory memory_;
  std::uint32_t index_ = 0;
  std::uint64_t within_;
};

// All of these: [offset, offset + bytes) must lie inside each Memory named.
void copy_in(const Memory& to, std::uint64_t offset, const void* from, std::size_t bytes);
void copy_out(const Memory& from, std::uint64_t offset, void* to, std::size_t bytes);
void copy(const Memory& to, const Memory& from, std::uint64_t offset, std::size_t bytes);

// Between different offsets; a copy onto itself does nothing.
void copy_between(const Memory& to, std::uint64_t to_offset, const Memory& from, std::uint64_t from_offset,
                  std::size_t bytes);

// to = left op right. `bytes`, `offset` and all spans are multiples of the reducer's element.
void reduce(const Reducer& reducer, const Memory& to, const Memory& left, const Memory& right, std::uint64_t offset,
            std::size_t bytes);

// The receiving half of recv_reduce for the piece of the message that starts at `offset` and now lies at `incoming`.
void reduce_in(const Transfer& transfer, std::uint64_t offset, const std::byte* incoming, std::size_t bytes);

// The address of a message that is one piece of memory; nullptr when it is cut.
inline std::byte* contiguous_address(const Memory& memory) {
  return memory.count == 1 ? memory.buffers->at(memory.spans->space) + memory.spans->offset : nullptr;
}

}  // namespace plait
