// What a rank gives to, or gets from, one other rank in a collective whose messages have lengths of their own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/layer.h"
#include "runtime/types/layout.h"

namespace plait::tl {
class DeviceDriver;
}

namespace plait::runtime {

struct Piece {
  std::byte* address = nullptr;
  std::size_t count = 0;  // elements of `type`
  const Layout* type = nullptr;
  std::size_t bytes = 0;                     // packed
  const tl::DeviceDriver* device = nullptr;  // as of a Region
};

// Whether the data can be used where it lies.
inline bool is_direct(const Piece& piece) {
  return piece.type != nullptr && piece.type->contiguous && piece.device == nullptr;
}

// Both return a code of the caller's.
int pack_piece(const Piece& piece, std::byte* packed);
// As much of `bytes` that came as there is room for, in whole elements.
int unpack_piece(const Piece& piece, const std::byte* packed, std::uint64_t bytes);

}  // namespace plait::runtime
