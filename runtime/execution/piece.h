// What a rank gives to, or gets from, one other rank in a collective whose messages have lengths of their own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/layer.h"
#include "runtime/types/layout.h"

namespace plait::tl {
class DeviceDriver;
struct DeviceMemory;
}  // namespace plait::tl

namespace plait::runtime {

class DeviceView;

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

// Elements of those `bytes` that there is room for.
inline std::size_t whole_elements(const Piece& piece, std::uint64_t bytes) {
  return piece.bytes == 0 ? 0 : static_cast<std::size_t>(bytes < piece.bytes ? bytes : piece.bytes) / piece.type->size;
}
// What says where that many elements lie on the device. Precondition: piece.device. May throw std::bad_alloc.
void view(const Piece& piece, std::size_t elements, DeviceView& view);
tl::DeviceMemory memory_of(const Piece& piece);

// Both return a code of the caller's.
int pack_piece(const Piece& piece, std::byte* packed);
// As much of `bytes` that came as there is room for, in whole elements.
int unpack_piece(const Piece& piece, const std::byte* packed, std::uint64_t bytes);

}  // namespace plait::runtime
