// Data on a device may lie in several pieces of memory that are mapped one behind the other, as allocators map them
// that grow in place (PyTorch's expandable segments: 2 or 20 MiB each). A kernel sees no difference; who hands the
// memory on must name each piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "tl/device_driver.h"

namespace plait::tl {

// What goes with one message between processes, and is asked after at each call.
inline constexpr std::size_t most_pieces = 128;

struct OwnPiece {
  std::uint64_t allocation = 0;  // the driver's number
  std::uintptr_t begin = 0;
  std::uint64_t bytes = 0;
  bool operator==(const OwnPiece&) const = default;
};

// In which all of these bytes lie, on one device, in the order of their addresses. Fails where they do not, or there
// are more than most_pieces.
Result<std::vector<OwnPiece>> pieces_under(const DeviceDriver& driver, const std::byte* address, std::uint64_t bytes);
// Whether kernels of the device of `memory`, which lies at `address`, reach all of these bytes.
bool lies_whole(const DeviceDriver& driver, const DeviceMemory& memory, const std::byte* address, std::uint64_t bytes);
// Whether it is still there, and no other one in its place.
bool is_there(const DeviceDriver& driver, const OwnPiece& piece);
bool are_there(const DeviceDriver& driver, std::span<const OwnPiece> pieces);

}  // namespace plait::tl
