#include "runtime/execution/elements.h"

#include <algorithm>
#include <cstring>

#include "runtime/execution/caller.h"

namespace plait::runtime {
namespace {

// Calls `move` with the first element of each piece and how many it has, until one fails.
template <class Move>
int for_each_piece(std::size_t count, const Layout& layout, Move&& move) {
  const std::size_t most = std::max<std::size_t>(caller().most_bytes / layout.size, 1);
  for (std::size_t first = 0; first < count; first += most)
    if (const int code = move(first, std::min(most, count - first)); code != 0) return code;
  return 0;
}

std::ptrdiff_t place_of(std::size_t element, const Layout& layout) {
  return static_cast<std::ptrdiff_t>(element) * layout.extent;
}

}  // namespace

int pack_elements(const std::byte* address, std::size_t count, const Layout& layout, std::byte* packed) {
  if (layout.size == 0) return 0;
  if (!layout.gapless)
    return for_each_piece(count, layout, [&](std::size_t first, std::size_t some) {
      return caller().pack(address + place_of(first, layout), some, layout, packed + first * layout.size);
    });
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(packed + i * layout.size, address + layout.true_lower_bound + place_of(i, layout), layout.size);
  return 0;
}

int unpack_elements(std::byte* address, std::size_t count, const Layout& layout, const std::byte* packed) {
  if (layout.size == 0) return 0;
  if (!layout.gapless)
    return for_each_piece(count, layout, [&](std::size_t first, std::size_t some) {
      return caller().unpack(address + place_of(first, layout), some, layout, packed + first * layout.size);
    });
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(address + layout.true_lower_bound + place_of(i, layout), packed + i * layout.size, layout.size);
  return 0;
}

}  // namespace plait::runtime
