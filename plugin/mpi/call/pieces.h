// Reads what a call has for, or wants from, others in pieces of lengths of their own.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "plugin/layer.h"
#include "runtime/execution/piece.h"
#include "runtime/execution/request.h"

namespace plait::plugin {

// What one rank has for, or wants from, another. False when the host must check it.
bool take_piece(Piece& piece, std::byte* address, int count, MPI_Datatype handle);

// MPI_BOTTOM is a null address, to which displacements may be added all the same.
std::byte* displaced(const void* base, std::ptrdiff_t bytes);

struct Pieces {
  const void* address;
  const int* counts;
  const int* displacements;
  MPI_Datatype type;
  const MPI_Datatype* types = nullptr;  // alltoallw: of each piece, whose displacements are in bytes
};
bool take_pieces(std::vector<Piece>& pieces, const Pieces& side, int ranks);

// For the report: the bytes that this rank gives and gets.
void count_pieces(Request& request);

}  // namespace plait::plugin
