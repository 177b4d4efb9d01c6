#include "runtime/execution/piece.h"

#include <algorithm>
#include <cstring>

#include "runtime/execution/device_data.h"
#include "runtime/execution/elements.h"

namespace plait::runtime {
namespace {

DeviceData device_data(const Piece& piece, std::size_t count) {
  return {.driver = piece.device, .address = piece.address, .count = count, .type = piece.type};
}

}  // namespace

void view(const Piece& piece, std::size_t elements, DeviceView& view) {
  start_view(view, device_data(piece, elements));
  view.add(piece.address, elements);
}

tl::DeviceMemory memory_of(const Piece& piece) { return memory_of(device_data(piece, piece.count)); }

int pack_piece(const Piece& piece, std::byte* packed) {
  if (piece.bytes == 0) return 0;
  if (piece.device != nullptr) return from_device(device_data(piece, piece.count), packed);
  if (!is_direct(piece)) return pack_elements(piece.address, piece.count, *piece.type, packed);
  std::memcpy(packed, piece.address, piece.bytes);
  return 0;
}

int unpack_piece(const Piece& piece, const std::byte* packed, std::uint64_t bytes) {
  const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, piece.bytes));
  if (room == 0) return 0;
  const std::size_t elements = whole_elements(piece, bytes);
  if (piece.device != nullptr) return to_device(device_data(piece, elements), packed);
  if (!is_direct(piece)) return unpack_elements(piece.address, elements, *piece.type, packed);
  std::memcpy(piece.address, packed, room);
  return 0;
}

}  // namespace plait::runtime
