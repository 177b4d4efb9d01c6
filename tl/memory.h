// Walking the bytes of a Memory: its spans one after the other, from any offset.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tl/channel.h"

namespace plait::tl {

// Runs of less than this are not worth a look at each.
inline constexpr std::uint64_t short_run = 64;

// One span after the other, those in grids run by run; a cursor at the end has no bytes.
class MemoryCursor {
 public:
  // Precondition: `offset` is at most the memory's bytes.
  MemoryCursor(const Memory& memory, std::uint64_t offset) : memory_(memory), within_(offset) { skip_finished(); }

  std::byte* data() const { return base() + (in_grid() ? grid().offset_of(position()) : position()); }
  // Contiguous bytes from data() on; 0 at the end.
  std::uint64_t contiguous() const {
    if (index_ == memory_.count) return 0;
    const std::uint64_t left = span().bytes - within_;
    return in_grid() ? std::min(left, grid().run - position() % grid().run) : left;
  }
  // Whether it is among runs so short that take() and put() of many are better than a piece each.
  bool in_short_runs() const { return index_ < memory_.count && in_grid() && grid().run < short_run; }
  // Precondition: the memory has so many bytes from here on.
  void advance(std::uint64_t bytes) {
    within_ += bytes;
    skip_finished();
  }

  // Copies the next bytes to and from dense memory and goes on behind them. Precondition as above.
  void take(std::byte* to, std::size_t bytes);
  void put(const std::byte* from, std::size_t bytes);

 private:
  const BoundSpan& span() const { return memory_.spans[index_]; }
  std::uint64_t position() const { return span().offset + within_; }
  std::byte* base() const { return memory_.buffers->at(span().space); }
  bool in_grid() const { return span().grid != no_grid; }
  const RunGrid& grid() const { return memory_.grids[span().grid]; }
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
  if (memory.count != 1 || memory.spans->grid != no_grid) return nullptr;
  return memory.buffers->at(memory.spans->space) + memory.spans->offset;
}

}  // namespace plait::tl
