// The public C API's functions that take MPI's types.
#include "plait/plait_mpi.h"

#include "plugin/mpi/api/communicator_settings.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/oob/axes.h"

extern "C" {

int plait_set_plan(MPI_Comm comm, const char* plan) {
  if (comm == MPI_COMM_NULL) return plait::plugin::raise_error(MPI_COMM_WORLD, MPI_ERR_COMM);
  return plait::plugin::guarded(comm, [&] { return plait::plugin::force_plan(comm, plan != nullptr ? plan : ""); });
}

int plait_set_channels(MPI_Comm comm, const char* channels) {
  if (comm == MPI_COMM_NULL) return plait::plugin::raise_error(MPI_COMM_WORLD, MPI_ERR_COMM);
  return plait::plugin::guarded(
      comm, [&] { return plait::plugin::choose_channels(comm, channels != nullptr ? channels : ""); });
}

int plait_allreduce_axes(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                         int ndims, const int dims[], int naxes, const int axes[]) {
  if (comm == MPI_COMM_NULL) return plait::plugin::raise_error(MPI_COMM_WORLD, MPI_ERR_COMM);
  return plait::plugin::guarded(comm, [&] {
    MPI_Comm group = MPI_COMM_NULL;
    int error = plait::plugin::axes_group(comm, {ndims, dims, naxes, axes}, group);
    if (error != MPI_SUCCESS) return error;
    error = PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op,
                           group);  // by name: the binding's own, whatever the binding
    return error == MPI_SUCCESS || group == comm ? error : plait::plugin::raise_error(comm, error);
  });
}

}  // extern "C"
