#include "plugin/mpi/call/pieces.h"

#include <cstdint>

#include "plugin/mpi/types/types.h"
#include "runtime/execution/device_data.h"

namespace plait::plugin {

bool take_piece(Piece& piece, std::byte* address, int count, MPI_Datatype handle) {
  piece = {};
  if (count < 0) return false;
  if (count == 0) return true;
  const Datatype* type = find_datatype(handle);
  if (type == nullptr || address == MPI_IN_PLACE) return false;
  piece = {.address = address,
           .count = static_cast<std::size_t>(count),
           .type = type,
           .bytes = static_cast<std::size_t>(count) * type->size};
  if (address == nullptr && type->contiguous && piece.bytes != 0) return false;
  if (piece.bytes != 0) piece.device = device_under(address, *type);
  return true;
}

std::byte* displaced(const void* base, std::ptrdiff_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(base) + bytes);
}

bool take_pieces(std::vector<Piece>& pieces, const Pieces& side, int ranks) {
  if (side.counts == nullptr || side.displacements == nullptr) return false;
  const Datatype* common = side.types == nullptr ? find_datatype(side.type) : nullptr;
  if (side.types == nullptr && common == nullptr) return false;
  pieces.resize(static_cast<std::size_t>(ranks));
  const std::ptrdiff_t unit = common != nullptr ? common->extent : 1;
  for (int rank = 0; rank < ranks; ++rank) {
    const MPI_Datatype type = common != nullptr ? side.type : side.types[rank];
    std::byte* address = displaced(side.address, unit * side.displacements[rank]);
    if (!take_piece(pieces[static_cast<std::size_t>(rank)], address, side.counts[rank], type)) return false;
  }
  return true;
}

void count_pieces(Request& request) {
  request.call.count = 0;
  for (const std::vector<Piece>* pieces : {&request.lists->sends, &request.lists->receives})
    for (const Piece& piece : *pieces) request.call.count += piece.bytes;
}

}  // namespace plait::plugin
