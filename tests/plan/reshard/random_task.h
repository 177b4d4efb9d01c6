// Random reshardings for the tests: meshes, specs and shapes of up to six dimensions.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "plan/reshard/task.h"

namespace plait::plan::reshard {

using Random = std::mt19937;

inline int draw(Random& random, int from, int to) {
  return from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1));
}

inline Mesh random_mesh(Random& random, int ranks, bool from_the_end) {
  Mesh mesh;
  int places = 1;
  const int dimensions = draw(random, 1, 3);
  for (int d = 0; d < dimensions; ++d) {
    mesh.dims.push_back(draw(random, 1, std::max(1, std::min(4, ranks / places))));
    places *= mesh.dims.back();
  }
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  if (from_the_end) std::ranges::reverse(all);
  if (draw(random, 0, 2) == 0) std::ranges::shuffle(all, random);
  mesh.ranks.assign(all.begin(), all.begin() + places);
  return mesh;
}

inline ShardingSpec random_spec(Random& random, std::size_t dimensions, const Mesh& mesh) {
  ShardingSpec spec{std::vector<std::vector<int>>(dimensions)};
  std::vector<int> axes(mesh.dims.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::ranges::shuffle(axes, random);
  for (const int axis : axes)
    if (draw(random, 0, 3) > 0) spec.axes[random() % dimensions].push_back(axis);
  return spec;
}

// `longest`: of a dimension of the tensor.
inline Task random_task(Random& random, int ranks, int longest) {
  Task task;
  const int dimensions = draw(random, 1, 6);
  for (int d = 0; d < dimensions; ++d)
    task.shape.push_back(draw(random, 1, dimensions > 4 ? std::min(longest, 5) : longest));
  task.source = random_mesh(random, ranks, false);
  task.destination = random_mesh(random, ranks, true);
  task.source_spec = random_spec(random, task.shape.size(), task.source);
  task.destination_spec = random_spec(random, task.shape.size(), task.destination);
  task.element_bytes = static_cast<std::size_t>(1 << draw(random, 0, 3));
  return task;
}

// A tensor whose last dimensions are a few bytes and mostly split, so that what a rank gives and gets lies in runs of a
// byte or some more.
inline Task thin_task(Random& random, int ranks) {
  Task task;
  const int dimensions = draw(random, 2, 6), thin = draw(random, 1, std::min(dimensions - 1, 3));
  for (int d = 0; d < dimensions - thin; ++d) task.shape.push_back(draw(random, 1, dimensions - thin > 2 ? 7 : 60));
  for (int d = 0; d < thin; ++d) task.shape.push_back(draw(random, 1, 8));
  task.source = random_mesh(random, ranks, false);
  task.destination = random_mesh(random, ranks, true);
  const auto split = [&](const Mesh& mesh) {
    ShardingSpec spec{std::vector<std::vector<int>>(task.shape.size())};
    for (int axis = 0; axis < static_cast<int>(mesh.dims.size()); ++axis) {
      const int last = draw(random, 0, 5) > 0 ? dimensions - draw(random, 1, thin) : draw(random, 0, dimensions - 1);
      spec.axes[static_cast<std::size_t>(last)].push_back(axis);
    }
    return spec;
  };
  task.source_spec = draw(random, 0, 2) == 0 ? random_spec(random, task.shape.size(), task.source) : split(task.source);
  task.destination_spec = split(task.destination);
  task.element_bytes = static_cast<std::size_t>(draw(random, 0, 3) > 0 ? 1 : draw(random, 2, 5));
  return task;
}

// Ranks on hosts, in blocks or dealt out; every host has one at least.
inline std::vector<int> random_hosts(Random& random, int ranks) {
  const int hosts = draw(random, 1, std::min(ranks, 4));
  std::vector<int> host_of;
  for (int rank = 0; rank < ranks; ++rank) host_of.push_back(rank * hosts / ranks);
  if (draw(random, 0, 3) == 0) std::ranges::shuffle(host_of, random);
  return host_of;
}

inline std::string text(const std::vector<int>& dims) {
  std::string all;
  for (const int dim : dims) all += (all.empty() ? "" : "x") + std::to_string(dim);
  return all;
}

inline std::string text(const Task& task) {
  std::string all = text(task.source.dims) + " " + text(task.source_spec) + " to " + text(task.destination.dims) + " " +
                    text(task.destination_spec) + ", shape";
  for (const std::int64_t length : task.shape) all += " " + std::to_string(length);
  return all;
}

}  // namespace plait::plan::reshard
