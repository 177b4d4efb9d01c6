#include "plugin/mpi/types/held_types.h"

#include "plugin/mpi/types/datatype.h"
#include "plugin/mpi/types/types.h"

namespace plait::plugin {

int HeldTypes::hold(Request& request) {
  for (Region* region : {&request.input, &request.output})
    if (const int error = hold(region->type); error != MPI_SUCCESS) return error;
  if (!lies_in_pieces(request.call.collective)) return MPI_SUCCESS;
  for (std::vector<Piece>* pieces : {&request.lists->sends, &request.lists->receives})
    for (Piece& piece : *pieces)
      if (const int error = hold(piece.type); error != MPI_SUCCESS) return error;
  return MPI_SUCCESS;
}

// Not MPI_Type_dup: that calls the program's attribute copy functions.
int HeldTypes::hold(const Layout*& layout) {
  const auto* type = static_cast<const Datatype*>(layout);
  if (type == nullptr || type->predefined) return MPI_SUCCESS;
  for (const Held& held : held_)
    if (held.handle == type->handle) {
      layout = held.type;
      return MPI_SUCCESS;
    }
  held_.reserve(held_.size() + 1);  // so that no duplicate is lost
  MPI_Datatype duplicate = MPI_DATATYPE_NULL;
  int error = PMPI_Type_contiguous(1, type->handle, &duplicate);
  if (error == MPI_SUCCESS) error = PMPI_Type_commit(&duplicate);
  if (error != MPI_SUCCESS) return error;
  held_.push_back({type->handle, duplicate, nullptr});
  held_.back().type = find_datatype(duplicate);
  if (held_.back().type == nullptr) return MPI_ERR_OTHER;
  layout = held_.back().type;
  return MPI_SUCCESS;
}

void HeldTypes::release() {
  for (Held& held : held_) PMPI_Type_free(&held.duplicate);
  held_.clear();
}

}  // namespace plait::plugin
