#include "plugin/mpi/oob/axes.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/immortal.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/oob/mpi_oob.h"

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

int check_axes(const AxesRequest& request) {
  if (request.naxes < 0 || (request.naxes > 0 && request.axes == nullptr)) return MPI_ERR_ARG;
  for (int a = 0; a < request.naxes; ++a) {
    const int axis = request.axes[a];
    if (axis < 0 || axis >= request.ndims) return MPI_ERR_ARG;
    if (std::find(request.axes, request.axes + a, axis) != request.axes + a) return MPI_ERR_ARG;
  }
  return MPI_SUCCESS;
}

// From dimension `next` on, which becomes that after the run. Needs no memory, like all that comes before the ranks
// know whether they make a group.
std::optional<Run> next_run(const AxesRequest& request, int& next) {
  std::optional<Run> run;
  for (; next < request.ndims; ++next) {
    if (request.dims[next] == 1) continue;
    const bool reduced = std::find(request.axes, request.axes + request.naxes, next) != request.axes + request.naxes;
    if (run && run->reduced != reduced) break;
    run = Run{(run ? run->size : 1) * request.dims[next], reduced};
  }
  return run;
}

bool asks_for_all(const AxesRequest& request) {
  int next = 0;
  const std::optional<Run> run = next_run(request, next);
  return !run || (run->reduced && !next_run(request, next));
}

bool asks_for(const AxesRequest& request, const Grid& grid) {
  int next = 0;
  for (const Run& run : grid)
    if (next_run(request, next) != run) return false;
  return !next_run(request, next);
}

Grid grid_of(const AxesRequest& request) {
  Grid grid;
  int next = 0;
  while (const std::optional<Run> run = next_run(request, next)) grid.push_back(*run);
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
Groups* prepare_group(MPI_Comm comm, const AxesRequest& request, Grid& grid) noexcept {
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
  Grid grid;
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
  if (const int error = check_dims(request, ranks); error != MPI_SUCCESS) return raise_error(comm, error);
  if (const int error = check_axes(request); error != MPI_SUCCESS) return raise_error(comm, error);
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
