#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "topo/detail/hwloc_topology.h"
#include "topo/discovery.h"

namespace plait::topo {
namespace {

// The word for an object that people see; null for those that only group others and are left out.
const char* type_name(hwloc_obj_type_t type) {
  switch (type) {
    case HWLOC_OBJ_MACHINE:
      return "Machine";
    case HWLOC_OBJ_PACKAGE:
      return "Package";
    case HWLOC_OBJ_NUMANODE:
      return "NUMANode";
    case HWLOC_OBJ_L3CACHE:
      return "L3";
    case HWLOC_OBJ_CORE:
      return "Core";
    case HWLOC_OBJ_PU:
      return "PU";
    default:
      return nullptr;
  }
}

std::size_t bytes_of(hwloc_obj_t object) {
  if (object->attr == nullptr) return 0;
  switch (object->type) {
    case HWLOC_OBJ_NUMANODE:
      return object->attr->numanode.local_memory;
    case HWLOC_OBJ_L3CACHE:
      return object->attr->cache.size;
    case HWLOC_OBJ_MACHINE:
      return object->total_memory;
    default:
      return 0;
  }
}

MachineObject describe(hwloc_obj_t object) {
  MachineObject result;
  result.type = type_name(object->type);
  result.index = static_cast<int>(object->logical_index);
  result.bytes = bytes_of(object);
  return result;
}

// NUMA nodes attached to `object`, memory-side caches looked through.
void collect_numa(hwloc_obj_t object, std::vector<MachineObject>& found) {
  for (hwloc_obj_t child = object->memory_first_child; child != nullptr; child = child->next_sibling) {
    if (child->type == HWLOC_OBJ_NUMANODE) found.push_back(describe(child));
    collect_numa(child, found);
  }
}

void append_child(hwloc_obj_t child, std::vector<MachineObject>& children);

// What lies below `object`, without its memory.
std::vector<MachineObject> children_of(hwloc_obj_t object) {
  std::vector<MachineObject> children;
  for (hwloc_obj_t child = object->first_child; child != nullptr; child = child->next_sibling) {
    append_child(child, children);
  }
  return children;
}

// hwloc hangs memory beside the processors it is local to; here the first NUMA node of a place contains that place's
// processors, and further ones (high-bandwidth memory, say) stand beside it.
std::vector<MachineObject> around(std::vector<MachineObject> memory, std::vector<MachineObject> processors) {
  if (memory.empty()) return processors;
  memory.front().children = std::move(processors);
  return memory;
}

std::vector<MachineObject> memory_of(hwloc_obj_t object) {
  std::vector<MachineObject> memory;
  collect_numa(object, memory);
  return memory;
}

// A NUMA node is drawn inside a package or machine of its extent, and outside a cache or core of its extent.
void append_child(hwloc_obj_t child, std::vector<MachineObject>& children) {
  std::vector<MachineObject> appended;
  if (type_name(child->type) == nullptr) {
    appended = around(memory_of(child), children_of(child));
  } else {
    const bool inside = child->type == HWLOC_OBJ_PACKAGE;
    appended.push_back(describe(child));
    appended[0].children = inside ? around(memory_of(child), children_of(child)) : children_of(child);
    if (!inside) appended = around(memory_of(child), std::move(appended));
  }
  std::move(appended.begin(), appended.end(), std::back_inserter(children));
}

int count(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const int objects = hwloc_get_nbobjs_by_type(topology, type);
  return objects > 0 ? objects : 0;
}

}  // namespace

Result<MachineTopology> load_machine(const TopologySource& source) {
  const auto topology = detail::load_topology(source);
  if (!topology.ok()) return topology.status();
  const hwloc_topology_t raw = topology->get();
  MachineTopology machine;
  const hwloc_obj_t root = hwloc_get_root_obj(raw);
  machine.root = describe(root);
  machine.root.children = around(memory_of(root), children_of(root));
  machine.packages = count(raw, HWLOC_OBJ_PACKAGE);
  machine.numa_nodes = count(raw, HWLOC_OBJ_NUMANODE);
  machine.l3_caches = count(raw, HWLOC_OBJ_L3CACHE);
  machine.cores = count(raw, HWLOC_OBJ_CORE);
  machine.processing_units = count(raw, HWLOC_OBJ_PU);
  return machine;
}

}  // namespace plait::topo
