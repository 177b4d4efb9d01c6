// Which GPUs reach each other by links of their own, and what lies between GPUs and NICs on the PCI buses.
#include "topo/gpus.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "topo/detail/hwloc_topology.h"

namespace plait::topo {
namespace {

// Sets that grow together: each GPU begins as its own.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  int of(int member) const {
    while (parent_[static_cast<std::size_t>(member)] != member) member = parent_[static_cast<std::size_t>(member)];
    return member;
  }
  // The smaller one gives the name.
  void join(int a, int b) {
    const auto [first, second] = std::minmax({of(a), of(b)});
    parent_[static_cast<std::size_t>(second)] = first;
  }

 private:
  std::vector<int> parent_;
};

// What a GPU's link leads to, of other GPUs: itself for one of them, else the first that leads to the same switch. A
// switch that the driver does not name is taken to be everybody's: there is one system of switches on a board.
class Ends {
 public:
  explicit Ends(std::span<const GpuFacts> gpus) {
    for (std::size_t index = 0; index < gpus.size(); ++index)
      if (!gpus[index].pci.empty()) by_pci_.emplace(gpus[index].pci, static_cast<int>(index));
  }
  int of(const GpuLink& link, int gpu) {
    if (link.end == GpuLink::End::link_switch) return switches_.emplace(link.peer, gpu).first->second;
    const auto other = by_pci_.find(link.peer);
    return other != by_pci_.end() ? other->second : gpu;
  }

 private:
  std::map<std::string, int> by_pci_, switches_;
};

std::vector<Island> list_islands(std::span<const GpuFacts> gpus, std::span<const int> island_of) {
  std::vector<Island> islands(
      static_cast<std::size_t>(island_of.empty() ? 0 : *std::ranges::max_element(island_of) + 1));
  std::vector<std::vector<std::string>> switches(islands.size());
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    if (island_of[gpu] < 0) continue;
    const auto island = static_cast<std::size_t>(island_of[gpu]);
    islands[island].gpus.push_back(static_cast<int>(gpu));
    for (const GpuLink& link : gpus[gpu].links) {
      const bool seen = std::ranges::find(switches[island], link.peer) != switches[island].end();
      if (link.end == GpuLink::End::link_switch && !seen) switches[island].push_back(link.peer);
    }
  }
  for (std::size_t island = 0; island < islands.size(); ++island)
    islands[island].switches = static_cast<int>(switches[island].size());
  return islands;
}

// ---- Where devices are ----

hwloc_obj_t device_at(hwloc_topology_t topology, const std::string& pci) {
  return pci.empty() ? nullptr : hwloc_get_pcidev_by_busidstring(topology, pci.c_str());
}

int index_if_one(hwloc_topology_t topology, hwloc_obj_t place, hwloc_obj_type_t type) {
  if (place == nullptr || place->cpuset == nullptr) return -1;
  Location location;
  detail::locate(topology, place->cpuset, location);
  return type == HWLOC_OBJ_PACKAGE ? location.package : location.numa;
}

int numa_of(hwloc_topology_t topology, hwloc_obj_t device) {
  return device == nullptr
             ? -1
             : index_if_one(topology, hwloc_get_non_io_ancestor_obj(topology, device), HWLOC_OBJ_NUMANODE);
}

// A device's bridges and itself, then what they hang on.
hwloc_obj_t common_place(hwloc_obj_t a, hwloc_obj_t b) {
  for (hwloc_obj_t above_a = a; above_a != nullptr; above_a = above_a->parent)
    for (hwloc_obj_t above_b = b; above_b != nullptr; above_b = above_b->parent)
      if (above_a == above_b) return above_a;
  return nullptr;
}

Nearness nearness(hwloc_topology_t topology, hwloc_obj_t a, hwloc_obj_t b) {
  if (a == nullptr || b == nullptr) return Nearness::unknown;
  const hwloc_obj_t common = common_place(a, b);
  if (common == nullptr) return Nearness::unknown;
  if (common->type == HWLOC_OBJ_PCI_DEVICE) return Nearness::pcie_switch;
  if (common->type == HWLOC_OBJ_BRIDGE)
    return common->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI ? Nearness::pcie_switch : Nearness::host_bridge;
  const int numa = numa_of(topology, a);
  return numa >= 0 && numa == numa_of(topology, b) ? Nearness::numa : Nearness::machine;
}

// ---- NICs ----

bool is_network(hwloc_obj_t device) {
  return device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS || device->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK;
}

std::string address_of(hwloc_obj_t device) {
  std::array<char, 24> text = {};
  const auto& pci = device->attr->pcidev;
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", pci.domain, pci.bus, pci.dev, pci.func);
  return text.data();
}

// Of a PCI function with two names, "mlx5_0" and "ib0", the HCA's counts.
std::vector<Nic> list_nics(hwloc_topology_t topology) {
  std::vector<Nic> nics;
  for (const auto wanted : {HWLOC_OBJ_OSDEV_OPENFABRICS, HWLOC_OBJ_OSDEV_NETWORK}) {
    for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_osdev(topology, device)) != nullptr;) {
      const hwloc_obj_t pci = device->parent;
      if (!is_network(device) || device->attr->osdev.type != wanted || pci == nullptr ||
          pci->type != HWLOC_OBJ_PCI_DEVICE)
        continue;
      const std::string address = address_of(pci);
      if (std::ranges::find(nics, address, &Nic::pci) != nics.end()) continue;
      nics.push_back({.name = device->name, .pci = address, .numa = numa_of(topology, pci)});
    }
  }
  return nics;
}

}  // namespace

std::string_view name(Nearness nearness) {
  constexpr std::array<std::string_view, 5> names = {"pcie_switch", "host_bridge", "numa", "machine", "unknown"};
  return names[static_cast<std::size_t>(nearness)];
}

std::vector<int> islands_of(std::span<const GpuFacts> gpus) {
  Sets sets(gpus.size());
  Ends ends(gpus);
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu)
    for (const GpuLink& link : gpus[gpu].links) sets.join(static_cast<int>(gpu), ends.of(link, static_cast<int>(gpu)));
  std::vector<int> numbers, island_of;
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    const int set = sets.of(static_cast<int>(gpu));
    const auto known = std::ranges::find(numbers, set);
    island_of.push_back(gpus[gpu].links.empty() ? -1 : static_cast<int>(known - numbers.begin()));
    if (known == numbers.end() && !gpus[gpu].links.empty()) numbers.push_back(set);
  }
  return island_of;
}

Result<GpuTopology> locate_gpus(const TopologySource& machine, std::span<const GpuFacts> gpus) {
  const auto loaded = detail::load_topology_with_devices(machine);
  if (!loaded.ok()) return loaded.status();
  const hwloc_topology_t topology = loaded->get();
  const std::vector<int> island_of = islands_of(gpus);
  GpuTopology found{.gpus = {}, .nics = list_nics(topology), .islands = list_islands(gpus, island_of)};
  for (std::size_t index = 0; index < gpus.size(); ++index) {
    const hwloc_obj_t device = device_at(topology, gpus[index].pci);
    const hwloc_obj_t place = device != nullptr ? hwloc_get_non_io_ancestor_obj(topology, device) : nullptr;
    Gpu gpu{.facts = gpus[index],
            .package = index_if_one(topology, place, HWLOC_OBJ_PACKAGE),
            .numa = index_if_one(topology, place, HWLOC_OBJ_NUMANODE),
            .island = island_of[index],
            .nics = {}};
    for (const Nic& nic : found.nics) gpu.nics.push_back(nearness(topology, device, device_at(topology, nic.pci)));
    found.gpus.push_back(std::move(gpu));
  }
  return found;
}

std::vector<int> nearest_nics(const Gpu& gpu) {
  std::vector<int> nearest;
  const auto least = std::ranges::min_element(gpu.nics);
  if (least == gpu.nics.end() || *least == Nearness::unknown) return nearest;
  for (std::size_t nic = 0; nic < gpu.nics.size(); ++nic)
    if (gpu.nics[nic] == *least) nearest.push_back(static_cast<int>(nic));
  return nearest;
}

}  // namespace plait::topo
