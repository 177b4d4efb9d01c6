#include "fused/exchange/inbox.h"

namespace plait::fused {
namespace {

constexpr std::uint64_t page_bytes = 4096;

}  // namespace

InboxShape inbox_shape(std::span<const Blocks> incoming, std::span<const std::uint64_t> note_bytes,
                       std::span<const std::uint8_t> near, bool staged) {
  InboxShape shape;
  shape.parts.resize(incoming.size());
  shape.bytes = 2 * sizeof(PostedAnnouncement);
  for (std::size_t source = 0; source < incoming.size(); ++source) {
    if (near[source] == 0) continue;
    shape.parts[source].notes_at = shape.bytes;
    shape.bytes += 2 * aligned(note_bytes[source]);
    shape.parts[source].flags_at = shape.bytes;
    shape.bytes += aligned(incoming[source].size() * sizeof(std::atomic<std::uint32_t>));
  }
  for (std::size_t source = 0; source < incoming.size(); ++source) {
    const std::uint64_t bytes = packed(incoming[source], staged ? Packs::all : Packs::kept).back();
    if (near[source] == 0 || bytes == 0) continue;
    shape.bytes = (shape.bytes + page_bytes - 1) / page_bytes * page_bytes;
    shape.parts[source].slices_at = shape.bytes;
    shape.bytes += bytes;
  }
  shape.bytes = (shape.bytes + page_bytes - 1) / page_bytes * page_bytes;
  return shape;
}

}  // namespace plait::fused
