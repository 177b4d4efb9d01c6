// MPI's arguments in the words of runtime/arguments.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <type_traits>

#include "plugin/layer.h"
#include "plugin/mpi/types/types.h"
#include "runtime/arguments/pieces.h"
#include "runtime/arguments/side.h"

namespace plait::plugin {

// Also where MPI forbids it: then the host must say so.
inline const void* place_of(const void* address) { return address == MPI_IN_PLACE ? in_place() : address; }
inline void* place_of(void* address) { return const_cast<void*>(place_of(static_cast<const void*>(address))); }

// A side whose data lie in the other one has no type that is significant.
inline const Layout* layout_of(const void* address, MPI_Datatype type) {
  return address != MPI_IN_PLACE ? find_datatype(type) : nullptr;
}

inline Pieces pieces_of(const void* address, const int counts[], const int displacements[], MPI_Datatype type) {
  return {place_of(address), counts, displacements, layout_of(address, type)};
}

// Of types by place.
inline LayoutList layouts_of(const MPI_Datatype types[]) {
  if (types == nullptr) return {};
  return {types, [](const void* list, int place) -> const Layout* {
            return find_datatype(static_cast<const MPI_Datatype*>(list)[place]);
          }};
}

inline Pieces pieces_of(const void* address, const int counts[], const int displacements[],
                        const MPI_Datatype types[]) {
  return {.address = place_of(address), .counts = counts, .displacements = displacements, .layouts = layouts_of(types)};
}

inline Pieces pieces_of(const void* address, const int counts[], const MPI_Aint displacements[],
                        const MPI_Datatype types[]) {
  return {.address = place_of(address),
          .counts = counts,
          .layouts = layouts_of(types),
          .byte_displacements = displacements};
}

// One piece. The type of one without data is not significant.
inline Elements own_of(const void* address, int count, MPI_Datatype type) {
  return {place_of(address), count, count > 0 ? layout_of(address, type) : nullptr};
}

static_assert(std::is_same_v<MPI_Aint, std::ptrdiff_t>);  // as Pieces has displacements

}  // namespace plait::plugin
