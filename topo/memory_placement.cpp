#include "topo/memory_placement.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "topo/detail/memory_placement.h"

namespace plait::topo {

Status detail::place_memory(hwloc_topology_t topology, std::span<const PlacedRange> ranges, const BindArea& bind) {
  Status first;
  for (const PlacedRange& range : ranges) {
    if (range.numa < 0 || range.bytes == 0) continue;
    const std::string where = "NUMA node " + std::to_string(range.numa);
    const hwloc_obj_t node = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(range.numa));
    Status status;
    if (node == nullptr)
      status = {Code::invalid, "this machine has no " + where};
    else if (bind(range, node->nodeset) != 0)
      status = {Code::unavailable, "placing memory on " + where + ": " + std::strerror(errno)};
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Status place_memory(std::span<const PlacedRange> ranges) {
  const auto topology = detail::load_topology({});
  if (!topology.ok()) return topology.status();
  // Not strictly: a node without room is no reason to fail.
  return detail::place_memory(topology->get(), ranges, [&](const PlacedRange& range, hwloc_const_nodeset_t nodes) {
    return hwloc_set_area_membind(topology->get(), range.begin, range.bytes, nodes, HWLOC_MEMBIND_BIND,
                                  HWLOC_MEMBIND_BYNODESET);
  });
}

}  // namespace plait::topo
