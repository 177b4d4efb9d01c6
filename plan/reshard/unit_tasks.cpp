#include "plan/reshard/unit_tasks.h"

#include <map>

namespace plait::plan::reshard {

namespace {

std::vector<Slice> slices_of(const Mesh& mesh, const ShardingSpec& spec, const std::vector<std::int64_t>& shape) {
  std::vector<Slice> slices;
  std::map<std::vector<std::int64_t>, std::size_t> known;
  for (std::size_t place = 0; place < mesh.ranks.size(); ++place) {
    const Box box = shard(mesh, spec, shape, static_cast<int>(place));
    if (box.elements() == 0) continue;
    std::vector<std::int64_t> corner;
    for (int d = 0; d < box.dimensions; ++d) corner.push_back(box.extent[static_cast<std::size_t>(d)].begin);
    const auto [entry, is_new] = known.try_emplace(corner, slices.size());
    if (is_new) slices.push_back({box, {}});
    slices[entry->second].ranks.push_back(mesh.ranks[place]);
  }
  return slices;
}

}  // namespace

UnitTasks cut(const Task& task) {
  UnitTasks all;
  all.sources = slices_of(task.source, task.source_spec, task.shape);
  all.destinations = slices_of(task.destination, task.destination_spec, task.shape);
  for (std::size_t from = 0; from < all.sources.size(); ++from)
    for (std::size_t to = 0; to < all.destinations.size(); ++to) {
      const Box box = intersection(all.sources[from].box, all.destinations[to].box);
      const std::int64_t elements = box.elements();
      if (elements == 0) continue;
      all.tasks.push_back({box, static_cast<int>(from), static_cast<int>(to),
                           static_cast<std::uint64_t>(elements) * task.element_bytes});
    }
  return all;
}

}  // namespace plait::plan::reshard
