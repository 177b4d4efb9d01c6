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

// `count` elements of one type at `address`. Both return an MPI error code.
int pack_elements(const std::byte* address, std::size_t count, const Datatype& type, std::byte* packed);
int unpack_elements(std::byte* address, std::size_t count, const Datatype& type, const std::byte* packed);

// A communicator for the functions that want one only for its error handler: errors are returned, and this process is
// its only rank, so that it needs no agreement. Made by start_layout(), once and before any use of types or layouts.
MPI_Comm quiet_communicator();
void start_layout();
void stop_layout();

}  // namespace plait::plugin
