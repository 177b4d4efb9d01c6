#include "plugin/held_types.h"

#include "plugin/types.h"

namespace plait {

int HeldTypes::hold(Request& request) {
  if (const int error = hold(request.input, duplicates_[0]); error != MPI_SUCCESS) return error;
  return hold(request.output, duplicates_[1]);
}

// Not MPI_Type_dup: that calls the program's attribute copy functions.
int HeldTypes::hold(Region& region, MPI_Datatype& duplicate) {
  if (region.type == nullptr || region.type->predefined) return MPI_SUCCESS;
  int error = PMPI_Type_contiguous(1, region.type->handle, &duplicate);
  if (error == MPI_SUCCESS) error = PMPI_Type_commit(&duplicate);
  if (error != MPI_SUCCESS) return error;
  region.type = find_datatype(duplicate);
  return region.type != nullptr ? MPI_SUCCESS : MPI_ERR_OTHER;
}

void HeldTypes::release() {
  for (MPI_Datatype& duplicate : duplicates_)
    if (duplicate != MPI_DATATYPE_NULL) PMPI_Type_free(&duplicate);
}

}  // namespace plait
