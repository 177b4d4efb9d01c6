// GPUs of a host: how they are linked to each other, and which NICs are near them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "topo/topology_source.h"

namespace plait::topo {

// Links of a GPU's own beside its bus (NVLink) that lead to one place.
struct GpuLink {
  enum class End : std::uint8_t { gpu, link_switch, other } end = End::other;
  std::string peer;             // PCI address of what is at the other end; "" where the driver does not tell
  int links = 1;                // to there
  double bytes_per_second = 0;  // of all of them together, in one direction; 0: unknown
};

// What the driver's library says of one GPU.
struct GpuFacts {
  std::string name;            // "NVIDIA H100 80GB HBM3"
  std::string uuid;            // the vendor's name for this very GPU; the same for all processes
  std::string pci;             // "0000:1b:00.0"
  std::size_t bytes = 0;       // of memory
  std::vector<GpuLink> links;  // those that are up, by end and peer
};

// What discovery needs of the driver's library, so that GPUs can be fed that no machine here has.
class GpuApi {
 public:
  virtual ~GpuApi() = default;
  // In the library's order. Empty where there is no GPU; a Status (unavailable) where the library is missing or
  // refuses.
  virtual Result<std::vector<GpuFacts>> gpus() = 0;
};
// The real one. Opens libnvidia-ml.so.1 at the first call of gpus(), for the life of the process; takes tens of
// milliseconds, and is not thread-safe. No context of a GPU is made.
std::unique_ptr<GpuApi> system_gpus();

// What lies between two devices of a host, the nearest first.
enum class Nearness : std::uint8_t { pcie_switch, host_bridge, numa, machine, unknown };
std::string_view name(Nearness nearness);  // "pcie_switch", ...

struct Nic {
  std::string name;  // "mlx5_0", "eth0": as UCX and PLAIT_RAILS name its device
  std::string pci;
  int numa = -1;  // logical index of the NUMA node that it is local to; -1 unknown
};

struct Gpu {
  GpuFacts facts;
  int package = -1, numa = -1;  // that it is local to; logical indices, -1 unknown or several
  int island = -1;              // of GpuTopology::islands; -1: no link of its own is up
  std::vector<Nearness> nics;   // how near each of GpuTopology::nics is
};

// GPUs that reach each other by links of their own, directly or through switches or other GPUs of the island.
struct Island {
  std::vector<int> gpus;  // ascending
  int switches = 0;       // of links, as far as the driver tells them apart
};

struct GpuTopology {
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;  // of hwloc's order; the only one of each PCI function
  std::vector<Island> islands;
};

// The island of each GPU, numbered by their first GPUs; -1 for one without links. Pure.
std::vector<int> islands_of(std::span<const GpuFacts> gpus);

// Where these GPUs are on the machine, with its NICs. Without PCI devices in the topology the places are unknown, and
// there is no NIC.
Result<GpuTopology> locate_gpus(const TopologySource& machine, std::span<const GpuFacts> gpus);

// Indices of the NICs that nothing else is nearer to that GPU than; none where no nearness is known.
std::vector<int> nearest_nics(const Gpu& gpu);

// Whether a driver of GPUs is loaded in this process, and the calling thread has a context of one. Takes a microsecond.
bool computes_on_gpu();

// The index of the GPU that this process computes on: that of the calling thread's context, where a driver is loaded,
// else `only` (its index or a beginning of its uuid, as CUDA_VISIBLE_DEVICES names it); -1 unknown.
int own_gpu(std::span<const GpuFacts> gpus, std::string_view only);

}  // namespace plait::topo
