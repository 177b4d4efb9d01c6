#include "plugin/held_types.h"

#include "plugin/types.h"

namespace plait {

int HeldTypes::hold(Request& request) {
  if (const int error = hold(request.input, pairs_[0]); error != MPI_SUCCESS) return error;
  return hold(request.output, pairs_[1]);
}

int HeldTypes::hold(Region& region, Pair& pair) {
  if (region.type == nullptr || region.type->predefined) return MPI_SUCCESS;
  MPI_Datatype duplicate = MPI_DATATYPE_NULL;
  if (const int error = PMPI_Type_dup(region.type->handle, &duplicate); error != MPI_SUCCESS) return error;
  pair = {.original = region.type->handle, .duplicate = duplicate};
  region.type = find_datatype(duplicate);
  return region.type != nullptr ? MPI_SUCCESS : MPI_ERR_OTHER;
}

void HeldTypes::release() {
  for (Pair& pair : pairs_)
    if (pair.duplicate != MPI_DATATYPE_NULL) PMPI_Type_free(&pair.duplicate);
  pairs_ = {};
}

MPI_Datatype HeldTypes::instead_of(MPI_Datatype type) const {
  for (const Pair& pair : pairs_)
    if (pair.duplicate != MPI_DATATYPE_NULL && pair.original == type) return pair.duplicate;
  return type;
}

}  // namespace plait
