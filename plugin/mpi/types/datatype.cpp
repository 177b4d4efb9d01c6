#include "plugin/mpi/types/datatype.h"

namespace plait::plugin {

void measure(Datatype& type) {
  MPI_Count size = 0;
  MPI_Aint lower_bound = 0, extent = 0, true_extent = 0, true_lower_bound = 0;
  PMPI_Type_size_x(type.handle, &size);
  PMPI_Type_get_extent(type.handle, &lower_bound, &extent);
  PMPI_Type_get_true_extent(type.handle, &true_lower_bound, &true_extent);
  type.size = size > 0 ? static_cast<std::size_t>(size) : 0;
  type.extent = extent;
  type.lower_bound = lower_bound;
  type.true_lower_bound = true_lower_bound;
  type.true_extent = true_extent > 0 ? static_cast<std::size_t>(true_extent) : 0;
}

}  // namespace plait::plugin
