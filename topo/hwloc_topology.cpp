#include "topo/detail/hwloc_topology.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace plait::topo::detail {
namespace {

// hwloc takes minutes over descriptions with more processing units than any machine has.
constexpr double most_processing_units = 4096;

// The product of the description's counts: the numbers after a colon or alone, outside parentheses and brackets.
double synthetic_processing_units(const std::string& description) {
  double product = 1;
  int depth = 0;
  for (std::size_t at = 0; at < description.size(); ++at) {
    const char character = description[at], before = at > 0 ? description[at - 1] : ' ';
    if (character == '(' || character == '[') ++depth;
    if (character == ')' || character == ']') --depth;
    const bool number = character >= '0' && character <= '9' && (before == ':' || before == ' ');
    if (depth == 0 && number) product *= std::max(1.0, std::strtod(description.c_str() + at, nullptr));
  }
  return product;
}

Status select_synthetic(hwloc_topology_t topology, const std::string& description) {
  if (synthetic_processing_units(description) > most_processing_units) {
    return {Code::invalid, "'" + description + "' has too many processing units; expected at most 4096"};
  }
  if (hwloc_topology_set_synthetic(topology, description.c_str()) == 0) return {};
  return {Code::invalid, "'" + description + "' is not an hwloc synthetic description; expected one such as " +
                             "\"package:2 numa:2 l3:1 core:8 pu:2\""};
}

Status select_xml(hwloc_topology_t topology, const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || access(path.c_str(), R_OK) != 0) {
    return {Code::invalid, "cannot read '" + path + "': " + std::strerror(errno) + "; expected an hwloc XML file"};
  }
  if (S_ISDIR(status.st_mode)) return {Code::invalid, "'" + path + "' is a directory; expected an hwloc XML file"};
  if (hwloc_topology_set_xml(topology, path.c_str()) == 0) return {};
  return {Code::invalid, "'" + path + "' is not an hwloc XML file, as lstopo --of xml writes it"};
}

Status select(hwloc_topology_t topology, const TopologySource& source) {
  switch (source.kind) {
    case TopologySource::Kind::synthetic:
      return select_synthetic(topology, source.text);
    case TopologySource::Kind::xml_file:
      return select_xml(topology, source.text);
    case TopologySource::Kind::this_machine:
      break;
  }
  return {};
}

Status load_failure(const TopologySource& source, int error) {
  if (source.kind == TopologySource::Kind::xml_file) {
    return {Code::invalid, "'" + source.text + "' is not a usable hwloc XML file, as lstopo --of xml writes it"};
  }
  return {Code::unavailable, std::string("hwloc cannot load the topology: ") + std::strerror(error)};
}

void keep_only_what_is_used(hwloc_topology_t topology) {
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (const auto type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_CORE}) {
    hwloc_topology_set_type_filter(topology, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  }
  // Groups tie NUMA nodes to their processors where no package or cache has the same extent.
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#if HWLOC_API_VERSION >= 0x00020800
  flags |= HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
#endif
  hwloc_topology_set_flags(topology, flags);
}

bool intersects(hwloc_obj_t object, hwloc_const_cpuset_t binding) {
  return object->cpuset != nullptr && hwloc_bitmap_intersects(object->cpuset, binding);
}

// The object of `type` that holds the whole binding. NUMA nodes may share processors or contain each other (fast memory
// of a package, far memory of the whole machine): the smallest counts, and only if no smaller one touches the binding.
int index_around(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_cpuset_t binding) {
  hwloc_obj_t best = nullptr;
  int smallest_touching = 0;
  const int objects = hwloc_get_nbobjs_by_type(topology, type);
  for (int index = 0; index < objects; ++index) {
    const hwloc_obj_t object = hwloc_get_obj_by_type(topology, type, static_cast<unsigned>(index));
    if (!intersects(object, binding)) continue;
    const int size = hwloc_bitmap_weight(object->cpuset);
    if (smallest_touching == 0 || size < smallest_touching) smallest_touching = size;
    const bool covers = hwloc_bitmap_isincluded(binding, object->cpuset);
    if (covers && (best == nullptr || size < hwloc_bitmap_weight(best->cpuset))) best = object;
  }
  if (best == nullptr || hwloc_bitmap_weight(best->cpuset) > smallest_touching) return -1;
  return static_cast<int>(best->logical_index);
}

}  // namespace

namespace {

Result<Topology> load(const TopologySource& source, bool with_devices) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return Status(Code::unavailable, "hwloc cannot be initialised");
  Topology topology(raw);
  if (Status status = select(raw, source); !status.ok()) return status;
  keep_only_what_is_used(raw);
  if (with_devices) hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(raw) != 0) return load_failure(source, errno);
  return topology;
}

}  // namespace

Result<Topology> load_topology(const TopologySource& source) { return load(source, false); }

Result<Topology> load_topology_with_devices(const TopologySource& source) { return load(source, true); }

void locate(hwloc_topology_t topology, hwloc_const_cpuset_t binding, Location& location) {
  if (hwloc_bitmap_iszero(binding)) return;
  location.package = index_around(topology, HWLOC_OBJ_PACKAGE, binding);
  location.numa = index_around(topology, HWLOC_OBJ_NUMANODE, binding);
  location.l3 = index_around(topology, HWLOC_OBJ_L3CACHE, binding);
  location.core = index_around(topology, HWLOC_OBJ_CORE, binding);
}

int numa_logical_index(hwloc_topology_t topology, int os_index) {
  if (os_index < 0) return -1;
  const hwloc_obj_t object = hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(os_index));
  return object != nullptr ? static_cast<int>(object->logical_index) : -1;
}

}  // namespace plait::topo::detail
