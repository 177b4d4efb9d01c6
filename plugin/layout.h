// Between a user's layout and the packed form in which data travels.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "plugin/datatype.h"

namespace plait::tl {
class DeviceDriver;
}

namespace plait::plugin {

// One side of a call in this rank's memory. Layout is a local matter: the other ranks never know it (design rule 1).
struct Region {
  std::byte* address = nullptr;    // as the caller gave it; may be MPI_BOTTOM
  std::size_t count = 0;           // elements of `type`, over all segments
  const Datatype* type = nullptr;  // nullptr: this rank has no such side
  // Segments that lie apart (allgatherv): elements, and first element in extents, by rank. Not owned.
  const int* segment_counts = nullptr;
  const int* segment_displacements = nullptr;
  int segments = 0;
  std::size_t bytes = 0;                     // in the form in which the data travels
  bool direct = false;                       // memory has that form already (but for the segments' displacements)
  const tl::DeviceDriver* device = nullptr;  // of memory that the processor must not touch

  // Whether the data must go through other memory.
  bool staged() const { return type != nullptr && (!direct || device != nullptr); }
};

// Whether MPI_Pack may not keep all bytes of a type: Open MPI 5.0 packs 16-byte reals as x87's long doubles, of which
// only ten bytes are a value. Its messages keep them.
bool loses_bytes_packed(MPI_Datatype type);
// Whether it does so of 16-byte reals.
bool packing_loses_reals();

// Between `region` and `packed`, which has region.bytes. Both return an MPI error code.
int pack(const Region& region, std::byte* packed);
int unpack(const Region& region, const std::byte* packed);

// `count` elements of one type at `address`; the building block of the two above.
int pack_elements(const std::byte* address, std::size_t count, const Datatype& type, std::byte* packed);
int unpack_elements(std::byte* address, std::size_t count, const Datatype& type, const std::byte* packed);

// A communicator for the functions that want one only for its error handler: errors are returned, and this process is
// its only rank, so that it needs no agreement. Made by start_layout(), once and before any use of types or layouts.
MPI_Comm quiet_communicator();
void start_layout();
void stop_layout();

}  // namespace plait::plugin
