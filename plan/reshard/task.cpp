#include "plan/reshard/task.h"

#include <charconv>
#include <limits>

namespace plait::plan::reshard {

namespace {

Status bad(std::string_view argument, const std::string& what) {
  return {Code::invalid, std::string(argument) + ": " + what};
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

// Positive numbers with `separator` between them.
template <class T>
Result<std::vector<T>> parse_list(std::string_view text, std::string_view argument, char separator,
                                  const char* example) {
  std::vector<T> values;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    T value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error == std::errc::result_out_of_range) return bad(argument, quoted(text) + " has a number that is too large");
    if (error != std::errc() || value < 1 || (next != end && *next != separator))
      return bad(argument, quoted(text) + ": expected positive numbers such as " + example);
    values.push_back(value);
    if (values.size() > most_dimensions)
      return bad(argument, quoted(text) + " has more than " + std::to_string(most_dimensions) + " dimensions");
    if (next == end) return values;
    at = next + 1;
  }
}

Status check_mesh(const Mesh& mesh, std::string_view argument, int ranks) {
  if (mesh.dims.empty() || mesh.dims.size() > most_dimensions)
    return bad(argument, "expected 1 to " + std::to_string(most_dimensions) + " dimensions");
  std::int64_t product = 1;
  for (const int dim : mesh.dims) {
    if (dim < 1) return bad(argument, "dimension " + std::to_string(dim) + " is not positive");
    product *= dim;
    if (product > most_mesh_ranks) return bad(argument, "more than " + std::to_string(most_mesh_ranks) + " ranks");
  }
  if (static_cast<std::int64_t>(mesh.ranks.size()) != product)
    return bad(argument, std::to_string(mesh.ranks.size()) + " ranks for a grid of " + std::to_string(product));
  std::vector<bool> seen(static_cast<std::size_t>(std::max(ranks, 0)));
  for (const int rank : mesh.ranks) {
    if (rank < 0 || rank >= ranks)
      return bad(argument,
                 "rank " + std::to_string(rank) + " is not in the communicator of " + std::to_string(ranks) + " ranks");
    if (seen[static_cast<std::size_t>(rank)]) return bad(argument, "rank " + std::to_string(rank) + " is named twice");
    seen[static_cast<std::size_t>(rank)] = true;
  }
  return {};
}

Status check_spec(const ShardingSpec& spec, std::string_view argument, const Mesh& mesh, std::size_t dimensions) {
  if (spec.axes.size() != dimensions)
    return bad(argument, quoted(text(spec)) + " has " + std::to_string(spec.axes.size()) +
                             " entries, but the tensor has " + std::to_string(dimensions) + " dimensions");
  std::vector<bool> used(mesh.dims.size());
  for (const std::vector<int>& axes : spec.axes)
    for (const int axis : axes) {
      if (axis < 0 || static_cast<std::size_t>(axis) >= mesh.dims.size())
        return bad(argument, quoted(text(spec)) + ": the mesh has no dimension " + std::to_string(axis));
      if (used[static_cast<std::size_t>(axis)])
        return bad(argument, quoted(text(spec)) + ": mesh dimension " + std::to_string(axis) + " is used twice");
      used[static_cast<std::size_t>(axis)] = true;
    }
  return {};
}

Status check_shape(const Task& task) {
  if (task.shape.empty() || task.shape.size() > most_dimensions)
    return bad("shape", "expected 1 to " + std::to_string(most_dimensions) + " dimensions");
  if (task.element_bytes == 0) return bad("element", "has no bytes");
  std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
  if (task.element_bytes > static_cast<std::size_t>(most)) return bad("element", "is too large");
  most /= static_cast<std::int64_t>(task.element_bytes);
  for (const std::int64_t length : task.shape) {
    if (length < 1) return bad("shape", "dimension " + std::to_string(length) + " is not positive");
    most /= length;
    if (most == 0) return bad("shape", "the tensor has too many bytes to count");
  }
  return {};
}

std::int64_t parts_of(const Mesh& mesh, const std::vector<int>& axes) {
  std::int64_t parts = 1;
  for (const int axis : axes) parts *= mesh.dims[static_cast<std::size_t>(axis)];
  return parts;
}

std::vector<int> coordinates_of(const Mesh& mesh, int place) {
  std::vector<int> coordinates(mesh.dims.size());
  for (std::size_t d = mesh.dims.size(); d-- > 0; place /= mesh.dims[d]) coordinates[d] = place % mesh.dims[d];
  return coordinates;
}

}  // namespace

Result<std::vector<int>> parse_dims(std::string_view text, std::string_view argument) {
  return parse_list<int>(text, argument, 'x', "2x4");
}

Result<std::vector<std::int64_t>> parse_shape(std::string_view text, std::string_view argument) {
  return parse_list<std::int64_t>(text, argument, ',', "1024,1024,512");
}

Result<ShardingSpec> parse_spec(std::string_view text, std::string_view argument) {
  ShardingSpec spec;
  bool sharded = false;  // the last entry is an S
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == 'R' || letter == 'S') {
      if (sharded && spec.axes.back().empty()) break;
      spec.axes.emplace_back();
      sharded = letter == 'S';
    } else if (letter >= '0' && letter <= '9' && sharded) {
      spec.axes.back().push_back(letter - '0');
    } else {
      return bad(argument, quoted(text) + ": unexpected character at " + std::to_string(i + 1) +
                               "; expected R or S with mesh dimensions, such as S01RS2");
    }
  }
  if (sharded && spec.axes.back().empty()) return bad(argument, quoted(text) + ": an S without a mesh dimension");
  if (spec.axes.empty()) return bad(argument, "is empty; expected R or S with mesh dimensions, such as S01RS2");
  if (spec.axes.size() > most_dimensions)
    return bad(argument, quoted(text) + " has more than " + std::to_string(most_dimensions) + " dimensions");
  return spec;
}

std::string text(const ShardingSpec& spec) {
  std::string all;
  for (const std::vector<int>& axes : spec.axes) {
    all += axes.empty() ? 'R' : 'S';
    for (const int axis : axes) all += std::to_string(axis);
  }
  return all;
}

Mesh consecutive_mesh(std::vector<int> dims, int first) {
  Mesh mesh{std::move(dims), {}};
  std::int64_t ranks = 1;
  for (const int dim : mesh.dims) ranks = std::min<std::int64_t>(ranks * dim, most_mesh_ranks + 1);
  for (std::int64_t i = 0; i < ranks; ++i) mesh.ranks.push_back(first + static_cast<int>(i));
  return mesh;
}

Status check(const Task& task, int ranks) {
  if (Status status = check_mesh(task.source, "src_mesh", ranks); !status.ok()) return status;
  if (Status status = check_mesh(task.destination, "dst_mesh", ranks); !status.ok()) return status;
  if (Status status = check_shape(task); !status.ok()) return status;
  if (Status status = check_spec(task.source_spec, "src_spec", task.source, task.shape.size()); !status.ok())
    return status;
  return check_spec(task.destination_spec, "dst_spec", task.destination, task.shape.size());
}

Box intersection(const Box& a, const Box& b) {
  Box both{a.dimensions, {}};
  for (std::size_t d = 0; d < static_cast<std::size_t>(a.dimensions); ++d) {
    both.extent[d].begin = std::max(a.extent[d].begin, b.extent[d].begin);
    both.extent[d].end = std::max(both.extent[d].begin, std::min(a.extent[d].end, b.extent[d].end));
  }
  return both;
}

Box shard(const Mesh& mesh, const ShardingSpec& spec, const std::vector<std::int64_t>& shape, int place) {
  const std::vector<int> coordinates = coordinates_of(mesh, place);
  Box box{static_cast<int>(shape.size()), {}};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t parts = parts_of(mesh, spec.axes[d]);
    std::int64_t index = 0;
    for (const int axis : spec.axes[d])
      index = index * mesh.dims[static_cast<std::size_t>(axis)] + coordinates[static_cast<std::size_t>(axis)];
    const std::int64_t part = (shape[d] - 1) / parts + 1;
    box.extent[d] = {std::min(index * part, shape[d]), std::min((index + 1) * part, shape[d])};
  }
  return box;
}

}  // namespace plait::plan::reshard
