#include "topo/core_order.h"

#include <algorithm>
#include <cstddef>

#include "topo/detail/hwloc_topology.h"

namespace plait::topo {

Result<std::vector<int>> processors_by_core(const cpu_set_t& usable, const TopologySource& source) {
  const Result<detail::Topology> topology = detail::load_topology(source);
  if (!topology.ok()) return topology.status();
  struct Place {
    std::size_t round;  // so many processors of its core come first
    unsigned core;
    int processor;
  };
  std::vector<Place> places;
  std::vector<std::size_t> taken;  // by core
  const int units = hwloc_get_nbobjs_by_type(topology.value().get(), HWLOC_OBJ_PU);
  for (int unit = 0; unit < units; ++unit) {
    const hwloc_obj_t object = hwloc_get_obj_by_type(topology.value().get(), HWLOC_OBJ_PU, static_cast<unsigned>(unit));
    const auto processor = static_cast<int>(object->os_index);
    if (processor >= CPU_SETSIZE || !CPU_ISSET(processor, &usable)) continue;
    // Where the system knows of no cores a processor is one.
    const hwloc_obj_t around = hwloc_get_ancestor_obj_by_type(topology.value().get(), HWLOC_OBJ_CORE, object);
    const unsigned core = around != nullptr ? around->logical_index : object->logical_index;
    if (taken.size() <= core) taken.resize(core + std::size_t{1});
    places.push_back({taken[core]++, core, processor});
  }
  std::ranges::stable_sort(
      places, [](const Place& a, const Place& b) { return a.round != b.round ? a.round < b.round : a.core < b.core; });
  std::vector<int> processors;
  for (const Place& place : places) processors.push_back(place.processor);
  return processors;
}

}  // namespace plait::topo
