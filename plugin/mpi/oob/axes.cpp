#include "plugin/mpi/oob/axes.h"

#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/immortal.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/oob/mpi_oob.h"

namespace plait::plugin {
namespace {

struct Group {
  AxesGrid grid;
  MPI_Comm comm;
};
struct Groups {
  MPI_Comm owner;
  std::vector<Group> list;
};

// All that are alive, for the end of the job. The lock is never held across a call into MPI that could come back here.
struct Registry {
  std::mutex guard;
  int keyval = MPI_KEYVAL_INVALID;
  std::vector<Groups*> all;
};
Registry& registry() {
  static Immortal<Registry> one;  // never destroyed: communicators may be freed until the process ends
  return *one;
}

int destroy_groups(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<Groups> groups(static_cast<Groups*>(value));
  {
    const std::scoped_lock lock(registry().guard);
    std::erase(registry().all, groups.get());
  }
  for (Group& group : groups->list) PMPI_Comm_free(&group.comm);
  return MPI_SUCCESS;
}

int keyval() {
  const std::scoped_lock lock(registry().guard);
  if (registry().keyval == MPI_KEYVAL_INVALID)
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, destroy_groups, &registry().keyval, nullptr);
  return registry().keyval;
}

// nullptr when the host cannot keep an attribute on this communicator.
Groups* groups_of(MPI_Comm comm) {
  const int key = keyval();
  void* value = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, key, &value, &found) != MPI_SUCCESS) return nullptr;
  if (found != 0) return static_cast<Groups*>(value);
  auto made = std::make_unique<Groups>(Groups{comm, {}});
  {
    const std::scoped_lock lock(registry().guard);
    registry().all.push_back(made.get());
  }
  if (PMPI_Comm_set_attr(comm, key, made.get()) == MPI_SUCCESS) return made.release();
  const std::scoped_lock lock(registry().guard);
  std::erase(registry().all, made.get());
  return nullptr;
}

// nullptr: the ranks have made none of this kind yet. All of them know the same ones.
const Group* known_group(MPI_Comm comm, const AxesRequest& request) {
  void* value = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, keyval(), &value, &found) != MPI_SUCCESS || found == 0) return nullptr;
  for (const Group& group : static_cast<const Groups*>(value)->list)
    if (asks_for(request, group.grid)) return &group;
  return nullptr;
}

// What a new group needs; afterwards nothing throws. nullptr: there is no room for one.
Groups* prepare_group(MPI_Comm comm, const AxesRequest& request, AxesGrid& grid) noexcept {
  try {
    grid = grid_of(request);
    Groups* groups = groups_of(comm);
    if (groups != nullptr) groups->list.reserve(groups->list.size() + 1);
    return groups;
  } catch (const std::exception&) {
    return nullptr;
  }
}

// Errors of the split are raised by the host.
int make_group(MPI_Comm comm, int rank, const AxesRequest& request, MPI_Comm& group) {
  AxesGrid grid;
  Groups* groups = prepare_group(comm, request, grid);
  MpiOob oob = MpiOob::of_program(comm);
  if (groups == nullptr) oob.withdraw();
  if (groups == nullptr || !oob.meet("make a group").ok()) return raise_error(comm, MPI_ERR_NO_MEM);
  // By name: the group is set up as any communicator that the program makes.
  if (const int error = PMPI_Comm_split(comm, color_of(grid, rank), rank, &group); error != MPI_SUCCESS) return error;
  PMPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN);
  groups->list.push_back({std::move(grid), group});
  return MPI_SUCCESS;
}

}  // namespace

int axes_group(MPI_Comm comm, const AxesRequest& request, MPI_Comm& group) {
  int inter = 0, ranks = 0, rank = 0;
  if (const int error = PMPI_Comm_test_inter(comm, &inter); error != MPI_SUCCESS) return error;
  if (inter != 0) return raise_error(comm, MPI_ERR_COMM);
  PMPI_Comm_size(comm, &ranks);
  PMPI_Comm_rank(comm, &rank);
  if (const AxesFault fault = fault_of(request, ranks); fault != AxesFault::none)
    return raise_error(comm, fault == AxesFault::dimensions ? MPI_ERR_DIMS : MPI_ERR_ARG);
  group = comm;
  if (asks_for_all(request)) return MPI_SUCCESS;
  const Group* known = known_group(comm, request);
  if (known == nullptr) return make_group(comm, rank, request, group);
  group = known->comm;
  return MPI_SUCCESS;
}

// In the order in which each rank made them: an MPI may want MPI_Comm_free to be called in one order by all.
void free_axes_groups() {
  const auto owner = [] {
    const std::scoped_lock lock(registry().guard);
    return registry().all.empty() ? MPI_COMM_NULL : registry().all.front()->owner;
  };
  for (MPI_Comm comm = owner(); comm != MPI_COMM_NULL; comm = owner())
    if (PMPI_Comm_delete_attr(comm, keyval()) != MPI_SUCCESS) return;
}

}  // namespace plait::plugin
