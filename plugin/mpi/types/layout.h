// Between elements in a user's layout and the packed form in which data travels.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "plugin/mpi/types/datatype.h"

namespace plait::plugin {

// Whether MPI_Pack may not keep all bytes of a type: Open MPI 5.0 packs 16-byte reals as x87's long doubles, of which
// only ten bytes are a value. Its messages keep them.
bool loses_bytes_packed(MPI_Datatype type);
// Whether it does so of 16-byte reals.
bool packing_loses_reals();

// MPI_Pack counts bytes in an int.
inline constexpr std::size_t most_bytes_at_once = std::size_t{1} << 30;

// One element, or as many as have no more bytes than that. Both return an MPI error code. Not of gapless types: Open
// MPI packs elements one behind the other where their extent ends in a part without data.
int pack_some(const std::byte* address, std::size_t count, const Datatype& type, std::byte* packed);
int unpack_some(std::byte* address, std::size_t count, const Datatype& type, const std::byte* packed);

// A communicator for the functions that want one only for its error handler: errors are returned, and this process is
// its only rank, so that it needs no agreement. Made by start_layout(), once and before any use of types or layouts.
MPI_Comm quiet_communicator();
void start_layout();
void stop_layout();

}  // namespace plait::plugin
