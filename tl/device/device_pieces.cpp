#include "tl/device/device_pieces.h"

#include <algorithm>

namespace plait::tl {

Result<std::vector<OwnPiece>> pieces_under(const DeviceDriver& driver, const std::byte* address, std::uint64_t bytes) {
  std::vector<OwnPiece> pieces;
  const void* context = nullptr;
  const std::uint64_t wanted = std::max<std::uint64_t>(bytes, 1);
  for (std::uint64_t seen = 0; seen < wanted;) {
    const std::byte* at = address + seen;
    const DeviceMemory memory = driver.memory_at(at);
    if (memory.kind != MemoryKind::device || memory.allocation == 0 || !memory.contains(at, 1))
      return {Code::unsupported, "device memory: an address is of no allocation"};
    if (!pieces.empty() && memory.context != context)
      return {Code::unsupported, "device memory: a buffer lies on several devices"};
    if (pieces.size() == most_pieces)
      return {Code::unsupported,
              "device memory: a buffer lies in more than " + std::to_string(most_pieces) + " pieces"};
    context = memory.context;
    pieces.push_back({memory.allocation, memory.begin, memory.bytes});
    seen = memory.begin + memory.bytes - reinterpret_cast<std::uintptr_t>(address);
  }
  return pieces;
}

bool lies_whole(const DeviceDriver& driver, const DeviceMemory& memory, const std::byte* address, std::uint64_t bytes) {
  return memory.contains(address, bytes) ||
         (memory.kind == MemoryKind::device && pieces_under(driver, address, bytes).ok());
}

bool is_there(const DeviceDriver& driver, const OwnPiece& piece) {
  const DeviceMemory memory = driver.memory_at(reinterpret_cast<const void*>(piece.begin));
  return memory.allocation == piece.allocation && memory.begin == piece.begin && memory.bytes == piece.bytes;
}

bool are_there(const DeviceDriver& driver, std::span<const OwnPiece> pieces) {
  return std::ranges::all_of(pieces, [&](const OwnPiece& piece) { return is_there(driver, piece); });
}

}  // namespace plait::tl
