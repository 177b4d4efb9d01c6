#include "plan/synthesis/process_grid.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace plait::plan {
namespace {

// The members one by one from the first on, as far as they are equally far apart.
GridAxis first_run(std::span<const std::int64_t> members) {
  GridAxis run{.size = 2, .stride = members[1] - members[0]};
  while (run.size < std::ssize(members) &&
         members[static_cast<std::size_t>(run.size)] - members[static_cast<std::size_t>(run.size - 1)] == run.stride)
    ++run.size;
  return run;
}

// Whether the members are such runs one after the other.
bool all_runs(std::span<const std::int64_t> members, const GridAxis& run) {
  if (std::ssize(members) % run.size != 0) return false;
  for (std::int64_t i = 0; i < std::ssize(members); ++i)
    if (members[static_cast<std::size_t>(i)] !=
        members[static_cast<std::size_t>(i - i % run.size)] + i % run.size * run.stride)
      return false;
  return true;
}

std::vector<std::int64_t> heads(std::span<const std::int64_t> members, std::int64_t step) {
  std::vector<std::int64_t> first;
  for (std::int64_t i = 0; i < std::ssize(members); i += step) first.push_back(members[static_cast<std::size_t>(i)]);
  return first;
}

bool multiplies(std::int64_t a, std::int64_t b, std::int64_t limit) { return a <= limit / b; }

}  // namespace

std::optional<std::vector<GridAxis>> grid_axes(std::span<const int> members) {
  if (members.empty() || members.front() < 0) return std::nullopt;
  std::vector<GridAxis> axes;
  std::vector<std::int64_t> left(members.begin(), members.end());
  while (left.size() > 1) {
    const GridAxis run = first_run(left);
    if (run.stride < 1 || !all_runs(left, run)) return std::nullopt;
    if (members.front() / run.stride % run.size != 0) return std::nullopt;
    axes.insert(axes.begin(), run);
    left = heads(left, run.size);
  }
  return axes;
}

std::string text(std::span<const GridAxis> axes) {
  std::string list;
  for (const GridAxis& axis : axes)
    list += (list.empty() ? "" : ",") + std::to_string(axis.size) + "@" + std::to_string(axis.stride);
  return list;
}

std::optional<std::vector<GridAxis>> parse_grid_axes(std::string_view text) {
  std::vector<GridAxis> axes;
  const char* at = text.data();
  const char* end = at + text.size();
  const auto number = [&](std::int64_t& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc() && value > 0;
  };
  while (at != end) {
    if (!axes.empty() && *at++ != ',') return std::nullopt;
    GridAxis& axis = axes.emplace_back();
    if (!number(axis.size) || at == end || *at++ != '@' || !number(axis.stride)) return std::nullopt;
  }
  return axes;
}

// The strides of a row-major grid are a chain of divisors from 1 to the number of ranks; an axis of size n and stride s
// says that s and n * s are among them.
std::optional<std::vector<int>> grid_of(std::int64_t ranks, std::span<const GridAxis> axes) {
  if (ranks < 1 || ranks > std::numeric_limits<int>::max()) return std::nullopt;
  std::vector<std::int64_t> strides = {1, ranks};
  for (const GridAxis& axis : axes) {
    if (axis.size < 1 || axis.stride < 1 || !multiplies(axis.size, axis.stride, ranks)) return std::nullopt;
    strides.push_back(axis.stride);
    strides.push_back(axis.size * axis.stride);
  }
  std::ranges::sort(strides, std::greater<>());
  strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
  std::vector<int> dims;
  for (std::size_t i = 0; i + 1 < strides.size(); ++i) {
    if (strides[i] % strides[i + 1] != 0) return std::nullopt;
    dims.push_back(static_cast<int>(strides[i] / strides[i + 1]));
  }
  return dims;
}

std::vector<int> dimensions_of(std::span<const int> dims, const GridAxis& axis) {
  std::vector<int> covered;
  std::int64_t stride = 1;
  for (std::size_t d = dims.size(); d-- > 0; stride *= dims[d])
    if (stride >= axis.stride && stride < axis.stride * axis.size) covered.insert(covered.begin(), static_cast<int>(d));
  return covered;
}

}  // namespace plait::plan
