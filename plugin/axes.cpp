#include "plugin/axes.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "plugin/cooperation.h"
#include "plugin/errors.h"

namespace plait::plugin {
namespace {

// Consecutive dimensions that are all reduced over, or all not. Dimensions of one rank are left out, so that requests
// which mean the same groups are equal.
struct Run {
  std::int64_t size;
  bool reduced;
  bool operator==(const Run&) const = default;
};
using Grid = std::vector<Run>;

int check_dims(const AxesRequest& request, int ranks) {
  if (request.ndims < 1) return MPI_ERR_DIMS;
  if (request.dims == nullptr) return MPI_ERR_ARG;
  std::int64_t product = 1;
  for (int d = 0; d < request.ndims; ++d) {
    if (request.dims[d] < 1) return MPI_ERR_DIMS;
    product *= request.dims[d];
    if (product > ranks) return MPI_ERR_DIMS;
  }
  return product == ranks ? MPI_SUCCESS : MPI_ERR_DIMS;
}

// Marks the dimensions that are reduced over.
int check_axes(const AxesRequest& request, std::vector<bool>& reduced) {
  if (request.naxes < 0 || (request.naxes > 0 && request.axes == nullptr)) return MPI_ERR_ARG;
  reduced.assign(static_cast<std::size_t>(request.ndims), false);
  for (int a = 0; a < request.naxes; ++a) {
    const int axis = request.axes[a];
    if (axis < 0 || axis >= request.ndims || reduced[static_cast<std::size_t>(axis)]) return MPI_ERR_ARG;
    reduced[static_cast<std::size_t>(axis)] = true;
  }
  return MPI_SUCCESS;
}

Grid merged(const AxesRequest& request, const std::vector<bool>& reduced) {
  Grid grid;
  for (std::size_t d = 0; d < reduced.size(); ++d) {
    const int size = request.dims[d];
    if (size == 1) continue;
    if (!grid.empty() && grid.back().reduced == reduced[d])
      grid.back().size *= size;
    else
      grid.push_back({size, reduced[d]});
  }
  return grid;
}

// The same for the members of one group: the rank with its coordinates on the reduced dimensions set to 0.
int color_of(const Grid& grid, int rank) {
  std::int64_t rest = rank, stride = 1, color = 0;
  for (auto run = grid.rbegin(); run != grid.rend(); ++run) {
    if (!run->reduced) color += rest % run->size * stride;
    rest /= run->size;
    stride *= run->size;
  }
  return static_cast<int>(color);
}

struct Group {
  Grid grid;
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
  static auto* one = new Registry;  // never destroyed: communicators may be freed until the process ends
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

// Errors of the split are raised by the host.
int make_group(MPI_Comm comm, int rank, Groups& groups, Grid&& grid, MPI_Comm& group) {
  groups.list.reserve(groups.list.size() + 1);  // afterwards nothing throws
  if (meet_all(comm) != MPI_SUCCESS) return raise_error(comm, MPI_ERR_NO_MEM);
  // By name: the group is set up as any communicator that the program makes.
  if (const int error = PMPI_Comm_split(comm, color_of(grid, rank), rank, &group); error != MPI_SUCCESS) return error;
  PMPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN);
  groups.list.push_back({std::move(grid), group});
  return MPI_SUCCESS;
}

// Whether the ranks have made no group of this communicator yet.
bool is_first(MPI_Comm comm) {
  void* value = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, keyval(), &value, &found) != MPI_SUCCESS || found == 0) return true;
  return static_cast<const Groups*>(value)->list.empty();
}

int find_group(MPI_Comm comm, const AxesRequest& request, MPI_Comm& group) {
  int inter = 0, ranks = 0, rank = 0;
  if (const int error = PMPI_Comm_test_inter(comm, &inter); error != MPI_SUCCESS) return error;
  if (inter != 0) return raise_error(comm, MPI_ERR_COMM);
  PMPI_Comm_size(comm, &ranks);
  PMPI_Comm_rank(comm, &rank);
  std::vector<bool> reduced;
  if (const int error = check_dims(request, ranks); error != MPI_SUCCESS) return raise_error(comm, error);
  if (const int error = check_axes(request, reduced); error != MPI_SUCCESS) return raise_error(comm, error);
  Grid grid = merged(request, reduced);
  group = comm;
  if (grid.size() <= 1 && (grid.empty() || grid.front().reduced)) return MPI_SUCCESS;
  Groups* groups = groups_of(comm);
  if (groups == nullptr) return raise_error(comm, MPI_ERR_OTHER);
  for (const Group& known : groups->list) {
    if (known.grid != grid) continue;
    group = known.comm;
    return MPI_SUCCESS;
  }
  return make_group(comm, rank, *groups, std::move(grid), group);
}

}  // namespace

// Where it is not known whether the others make a group now, or have one, they cannot be told.
int axes_group(MPI_Comm comm, const AxesRequest& request, MPI_Comm& group) {
  try {
    return find_group(comm, request, group);
  } catch (const std::exception&) {
    if (is_first(comm)) withdraw(comm);
    return raise_error(comm, MPI_ERR_NO_MEM);
  }
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
