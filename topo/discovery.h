// Finds where this process runs, through hwloc, and which HCAs the host has, through libibverbs.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "topo/location.h"
#include "topo/topology_source.h"

namespace plait::topo {

// One port of one HCA, as libibverbs reports it. Down ports are listed as well; so is a device that cannot be opened or
// asked, as one port that is not active and whose state says why.
struct VerbsPort {
  std::string device;  // "mlx5_0"
  int port = 1;
  bool active = false;          // state ACTIVE
  std::string state;            // "active", "down", "init", ...
  bool ethernet = false;        // link layer: RoCE rather than InfiniBand
  double bytes_per_second = 0;  // width x speed, data rate after encoding; 0 when down
  std::uint16_t lid = 0;
  std::string gid;  // GID 0 as text
  int numa = -1;    // nearest NUMA node (logical index), -1 unknown
};

// What discovery needs of libibverbs, so that ports can be fed that no machine here has.
class VerbsApi {
 public:
  virtual ~VerbsApi() = default;
  // Empty where there is no device; a Status (unavailable) where libibverbs is missing or says why it has none.
  virtual Result<std::vector<VerbsPort>> ports() = 0;
};
// The real one. Opens libibverbs.so.1 at the first call of ports(), for the life of the process; not thread-safe.
std::unique_ptr<VerbsApi> system_verbs();

// One object of the machine's tree, for printing.
struct MachineObject {
  std::string type;       // "Machine", "Package", "NUMANode", "L3", "Core", "PU"
  int index = 0;          // logical index
  std::size_t bytes = 0;  // memory or cache size, 0 where it has none
  std::vector<MachineObject> children;
};

struct MachineTopology {
  MachineObject root;
  int packages = 0, numa_nodes = 0, l3_caches = 0, cores = 0, processing_units = 0;
};

// Numbers include processors that this process may not use. Bad text or a bad file is `invalid`, with what is expected.
Result<MachineTopology> load_machine(const TopologySource& source);

// Of this process, without the rest of its location: takes microseconds.
HostId discover_host();
// Location::machine: the same for all processes of one running kernel, emulated nodes included, which share its cores
// and its clock. Takes microseconds.
std::uint64_t discover_machine();

// This machine's processing units and what the kernel calls them: "16 x AMD EPYC 9124 16-Core Processor". Reads a few
// lines of /proc.
std::string describe_processors();

// The location of this process, by the calling thread's binding. Never fails: what cannot be found stays unknown (-1).
// Takes milliseconds and keeps nothing: call it once and keep the result.
Location discover_location();

// The same in a fraction of the time where the thread may run on all of this machine's processors: its place within the
// machine stays unknown then, as that of its likes on the node does.
Location discover_rough_location();

}  // namespace plait::topo
