// Between the caller's layout and the packed form in which data travels.
#pragma once

#include <cstddef>

#include "runtime/execution/number_list.h"
#include "runtime/layer.h"
#include "runtime/types/layout.h"

namespace plait::tl {
class DeviceDriver;
struct DeviceMemory;
}  // namespace plait::tl

namespace plait::runtime {

class DeviceView;

// One side of a call in this rank's memory.
struct Region {
  std::byte* address = nullptr;  // as the caller gave it; may be null, where the layout holds addresses itself
  std::size_t count = 0;         // elements of `type`, over all segments
  const Layout* type = nullptr;  // nullptr: this rank has no such side
  // Segments that lie apart (allgatherv): elements, and first element in extents, by rank. Not owned.
  const void* segment_counts = nullptr;
  const void* segment_displacements = nullptr;
  int segments = 0;
  NumberKind counts_kind = NumberKind::i32, displacements_kind = NumberKind::i32;
  std::size_t bytes = 0;                     // in the form in which the data travels
  bool direct = false;                       // memory has that form already (but for the segments' displacements)
  const tl::DeviceDriver* device = nullptr;  // of memory that the processor must not touch

  // Precondition: they lie apart.
  std::size_t segment_count(std::size_t segment) const {
    return static_cast<std::size_t>(number_at(segment_counts, counts_kind, segment));
  }
  std::ptrdiff_t segment_displacement(std::size_t segment) const {
    return number_at(segment_displacements, displacements_kind, segment);
  }
  // Whether the data must go through other memory.
  bool staged() const { return type != nullptr && (!direct || device != nullptr); }
};

// What says where its data lie on the device. Precondition: region.device. May throw std::bad_alloc.
void view(const Region& region, DeviceView& view);
tl::DeviceMemory memory_of(const Region& region);

// Between `region` and `packed`, which has region.bytes. Both return a code of the caller's, and may throw
// std::bad_alloc.
int pack(const Region& region, std::byte* packed);
int unpack(const Region& region, const std::byte* packed);

}  // namespace plait::runtime
