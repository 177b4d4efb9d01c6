// The public C API's functions for resharding (plait_mpi.h).
#include <algorithm>
#include <cstddef>
#include <memory>

#include "core/attempt.h"
#include "plait/plait_mpi.h"
#include "plugin/layer.h"
#include "plugin/mpi/call/lifecycle.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/request/reshard.h"
#include "runtime/job/job.h"

namespace {

plait::plugin::Resharding& of(plait_reshard plan) { return *reinterpret_cast<plait::plugin::Resharding*>(plan); }

// `arguments`: all but what the type says of the elements.
int create(MPI_Comm comm, plait::plugin::ReshardArguments& arguments, MPI_Datatype element, plait_reshard* plan) {
  using namespace plait;
  using namespace plait::plugin;
  if (phase() == Phase::before && host().allreduce != nullptr) start_late();
  if (phase() != Phase::open)
    return raise_error(comm, Status(Code::unavailable, "plait_reshard_create: Plait does not run in this job"));
  arguments.element = attempt([&] { return read_element(element, arguments.element_bytes); });
  Result<std::unique_ptr<Resharding>> made = make_resharding(comm, arguments);
  if (!made.ok()) return raise_error(comm, argument_error_code(made.status()));
  *plan = reinterpret_cast<plait_reshard>(made->release());
  return MPI_SUCCESS;
}

}  // namespace

extern "C" {

int plait_reshard_create(MPI_Comm comm, int src_ndims, const int src_dims[], const int src_ranks[],
                         const char* src_spec, int dst_ndims, const int dst_dims[], const int dst_ranks[],
                         const char* dst_spec, int ndims, const int64_t shape[], MPI_Datatype element,
                         const char* options, plait_reshard* plan) {
  if (comm == MPI_COMM_NULL) return plait::plugin::raise_error(MPI_COMM_WORLD, MPI_ERR_COMM);
  int inter = 0;
  if (const int error = PMPI_Comm_test_inter(comm, &inter); error != MPI_SUCCESS) return error;
  if (inter != 0) return plait::plugin::raise_error(comm, MPI_ERR_COMM);
  if (plan != nullptr) *plan = PLAIT_RESHARD_NULL;
  plait::plugin::ReshardArguments arguments{.source = {src_ndims, src_dims, src_ranks, src_spec},
                                            .destination = {dst_ndims, dst_dims, dst_ranks, dst_spec},
                                            .ndims = ndims,
                                            .shape = shape,
                                            .element = {},
                                            .element_bytes = 0,
                                            .options = options,
                                            .wants_plan = plan != nullptr};
  return plait::plugin::guarded(comm, [&] { return create(comm, arguments, element, plan); });
}

int plait_reshard_create_f(MPI_Fint comm, int src_ndims, const int src_dims[], const int src_ranks[],
                           const char* src_spec, int dst_ndims, const int dst_dims[], const int dst_ranks[],
                           const char* dst_spec, int ndims, const int64_t shape[], MPI_Fint element,
                           const char* options, plait_reshard* plan) {
  return plait_reshard_create(PMPI_Comm_f2c(comm), src_ndims, src_dims, src_ranks, src_spec, dst_ndims, dst_dims,
                              dst_ranks, dst_spec, ndims, shape, PMPI_Type_f2c(element), options, plan);
}

int plait_reshard_local(plait_reshard plan, int side, int64_t offset[], int64_t length[]) {
  if (plan == nullptr || side < PLAIT_RESHARD_SOURCE || side > PLAIT_RESHARD_DESTINATION) return MPI_ERR_ARG;
  const plait::plugin::reshard::Box& box =
      side == PLAIT_RESHARD_SOURCE ? of(plan).source_box() : of(plan).destination_box();
  for (int d = 0; d < box.dimensions; ++d) {
    if (offset != nullptr) offset[d] = box.extent[static_cast<std::size_t>(d)].begin;
    if (length != nullptr) length[d] = box.length(d);
  }
  return MPI_SUCCESS;
}

const char* plait_reshard_describe(plait_reshard plan) {
  return plan != nullptr ? of(plan).description().c_str() : "{}";
}

int plait_reshard_execute(plait_reshard plan, const void* source, void* destination) {
  if (plan == nullptr) return plait::plugin::raise_error(MPI_COMM_WORLD, MPI_ERR_ARG);
  return plait::plugin::guarded(plait::plugin::comm_of(of(plan)),
                                [&] { return plait::plugin::execute(of(plan), source, destination); });
}

int plait_reshard_start(plait_reshard plan, const void* source, void* destination, MPI_Request* request) {
  if (plan == nullptr || request == nullptr) return plait::plugin::raise_error(MPI_COMM_WORLD, MPI_ERR_ARG);
  return plait::plugin::guarded(plait::plugin::comm_of(of(plan)),
                                [&] { return plait::plugin::start(of(plan), source, destination, request); });
}

int plait_reshard_start_f(plait_reshard plan, const void* source, void* destination, MPI_Fint* request) {
  MPI_Request started = MPI_REQUEST_NULL;
  const int error = plait_reshard_start(plan, source, destination, &started);
  if (error == MPI_SUCCESS) *request = PMPI_Request_c2f(started);
  return error;
}

int plait_reshard_free(plait_reshard* plan) {
  if (plan == nullptr || *plan == nullptr) return plait::plugin::raise_error(MPI_COMM_WORLD, MPI_ERR_ARG);
  // MPI_Finalize has freed those that were left, whose owners may end after it.
  if (plait::plugin::phase() != plait::plugin::Phase::over) delete reinterpret_cast<plait::plugin::Resharding*>(*plan);
  *plan = PLAIT_RESHARD_NULL;
  return MPI_SUCCESS;
}

}  // extern "C"
