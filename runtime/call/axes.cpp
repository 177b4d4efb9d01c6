#include "runtime/call/axes.h"

#include <algorithm>
#include <optional>

namespace plait::runtime {
namespace {

AxesFault check_dims(const AxesRequest& request, int ranks) {
  if (request.ndims < 1) return AxesFault::dimensions;
  if (request.dims == nullptr) return AxesFault::argument;
  std::int64_t product = 1;
  for (int d = 0; d < request.ndims; ++d) {
    if (request.dims[d] < 1) return AxesFault::dimensions;
    product *= request.dims[d];
    if (product > ranks) return AxesFault::dimensions;
  }
  return product == ranks ? AxesFault::none : AxesFault::dimensions;
}

AxesFault check_axes(const AxesRequest& request) {
  if (request.naxes < 0 || (request.naxes > 0 && request.axes == nullptr)) return AxesFault::argument;
  for (int a = 0; a < request.naxes; ++a) {
    const int axis = request.axes[a];
    if (axis < 0 || axis >= request.ndims) return AxesFault::argument;
    if (std::find(request.axes, request.axes + a, axis) != request.axes + a) return AxesFault::argument;
  }
  return AxesFault::none;
}

// From dimension `next` on, which becomes that after the run.
std::optional<AxesRun> next_run(const AxesRequest& request, int& next) {
  std::optional<AxesRun> run;
  for (; next < request.ndims; ++next) {
    if (request.dims[next] == 1) continue;
    const bool reduced = std::find(request.axes, request.axes + request.naxes, next) != request.axes + request.naxes;
    if (run && run->reduced != reduced) break;
    run = AxesRun{(run ? run->size : 1) * request.dims[next], reduced};
  }
  return run;
}

}  // namespace

AxesFault fault_of(const AxesRequest& request, int ranks) {
  const AxesFault fault = check_dims(request, ranks);
  return fault != AxesFault::none ? fault : check_axes(request);
}

bool asks_for_all(const AxesRequest& request) {
  int next = 0;
  const std::optional<AxesRun> run = next_run(request, next);
  return !run || (run->reduced && !next_run(request, next));
}

bool asks_for(const AxesRequest& request, const AxesGrid& grid) {
  int next = 0;
  for (const AxesRun& run : grid)
    if (next_run(request, next) != run) return false;
  return !next_run(request, next);
}

AxesGrid grid_of(const AxesRequest& request) {
  AxesGrid grid;
  int next = 0;
  while (const std::optional<AxesRun> run = next_run(request, next)) grid.push_back(*run);
  return grid;
}

int color_of(const AxesGrid& grid, int rank) {
  std::int64_t rest = rank, stride = 1, color = 0;
  for (auto run = grid.rbegin(); run != grid.rend(); ++run) {
    if (!run->reduced) color += rest % run->size * stride;
    rest /= run->size;
    stride *= run->size;
  }
  return static_cast<int>(color);
}

}  // namespace plait::runtime
