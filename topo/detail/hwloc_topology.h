// hwloc behind RAII. Internal to topo/ and its tests.
#pragma once

#include <hwloc.h>

#include <memory>
#include <type_traits>

#include "core/status.h"
#include "topo/location.h"
#include "topo/topology_source.h"

namespace plait::topo::detail {

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, BitmapDeleter>;

// Packages, NUMA nodes, L3 caches, cores and PUs only: no I/O, distances or memory attributes, which cost most of the
// time of a load. Processors that this process may not use are included: only so do all processes of the machine
// number its objects alike.
Result<Topology> load_topology(const TopologySource& source);

// The same, and the PCI devices that matter to people with what the system calls them; takes tens of milliseconds.
Result<Topology> load_topology_with_devices(const TopologySource& source);

// Sets package, numa, l3 and core to what `binding` lies in, or -1 where it lies in none or spans several.
void locate(hwloc_topology_t topology, hwloc_const_cpuset_t binding, Location& location);

// The logical index of the NUMA node that the operating system numbers `os_index`; -1 when there is none.
int numa_logical_index(hwloc_topology_t topology, int os_index);

}  // namespace plait::topo::detail
