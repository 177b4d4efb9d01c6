#include "tl/memory.h"

#include <array>

#include "core/work_team.h"
#include "tl/grid_copy.h"

namespace plait::tl {

void MemoryCursor::take(std::byte* to, std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t piece = std::min<std::size_t>(span().bytes - within_, bytes);
    if (in_grid())
      gather(grid(), base(), position(), to, piece);
    else
      shared_copy(to, data(), piece);
    advance(piece);
    to += piece;
    bytes -= piece;
  }
}

void MemoryCursor::put(const std::byte* from, std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t piece = std::min<std::size_t>(span().bytes - within_, bytes);
    if (in_grid())
      scatter(grid(), base(), position(), from, piece);
    else
      shared_copy(data(), from, piece);
    advance(piece);
    from += piece;
    bytes -= piece;
  }
}

void copy_in(const Memory& to, std::uint64_t offset, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (std::byte* base = contiguous_address(to))
    shared_copy(base + offset, from, bytes);
  else
    MemoryCursor(to, offset).put(static_cast<const std::byte*>(from), bytes);
}

void copy_out(const Memory& from, std::uint64_t offset, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  if (const std::byte* base = contiguous_address(from))
    shared_copy(to, base + offset, bytes);
  else
    MemoryCursor(from, offset).take(static_cast<std::byte*>(to), bytes);
}

void copy(const Memory& to, const Memory& from, std::uint64_t offset, std::size_t bytes) {
  copy_between(to, offset, from, offset, bytes);
}

void copy_between(const Memory& to, std::uint64_t to_offset, const Memory& from, std::uint64_t from_offset,
                  std::size_t bytes) {
  if (bytes == 0) return;
  std::byte* const base = contiguous_address(to);
  if (const std::byte* other = contiguous_address(from); base != nullptr && other != nullptr) [[likely]] {
    if (base + to_offset != other + from_offset) shared_copy(base + to_offset, other + from_offset, bytes);
    return;
  }
  MemoryCursor source(from, from_offset), target(to, to_offset);
  while (bytes > 0) {
    std::size_t piece = bytes;
    if (source.in_short_runs() || target.in_short_runs()) {
      std::array<std::byte, 2048> between;
      piece = std::min(piece, between.size());
      source.take(between.data(), piece);
      target.put(between.data(), piece);
    } else {
      piece = static_cast<std::size_t>(std::min({source.contiguous(), target.contiguous(), std::uint64_t{piece}}));
      if (target.data() != source.data()) shared_copy(target.data(), source.data(), piece);
      source.advance(piece);
      target.advance(piece);
    }
    bytes -= piece;
  }
}

void reduce(const Reducer& reducer, const Memory& to, const Memory& left, const Memory& right, std::uint64_t offset,
            std::size_t bytes) {
  MemoryCursor result(to, offset), first(left, offset), second(right, offset);
  while (bytes > 0) {
    const std::size_t piece =
        std::min({result.contiguous(), first.contiguous(), second.contiguous(), std::uint64_t{bytes}});
    combine(reducer, result.data(), first.data(), second.data(), piece / reducer.element_bytes);
    result.advance(piece);
    first.advance(piece);
    second.advance(piece);
    bytes -= piece;
  }
}

void reduce_in(const Transfer& transfer, std::uint64_t offset, const std::byte* incoming, std::size_t bytes) {
  MemoryCursor result(transfer.memory, offset), local(transfer.operand, offset);
  while (bytes > 0) {
    const std::size_t piece = std::min({result.contiguous(), local.contiguous(), std::uint64_t{bytes}});
    const std::byte* left = transfer.incoming_left ? incoming : local.data();
    const std::byte* right = transfer.incoming_left ? local.data() : incoming;
    combine(*transfer.reducer, result.data(), left, right, piece / transfer.reducer->element_bytes);
    result.advance(piece);
    local.advance(piece);
    incoming += piece;
    bytes -= piece;
  }
}

}  // namespace plait::tl
