// Finds where this process runs, through hwloc, and which HCAs the host has, through libibverbs.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "topo/location.h"

namespace plait {

// One port of one HCA, as libibverbs reports it.
struct VerbsPort {
  std::string device;       // "mlx5_0"
  int port = 1;
  bool active = false;      // state ACTIVE
  std::string state;        // "active", "down", "init", ...
  bool ethernet = false;    // link layer: RoCE rather than InfiniBand
  double bytes_per_second = 0;  // width x speed, data rate after encoding; 0 when down
  std::uint16_t lid = 0;
  std::string gid;          // GID 0 as text
  int numa = -1;            // nearest NUMA node (logical index), -1 unknown
};

// The few libibverbs calls that discovery needs, so that the tests can feed ports that no machine here has.
class VerbsApi {
 public:
  virtual ~VerbsApi() = default;
  virtual Result<std::vector<VerbsPort>> ports() = 0;
};
std::unique_ptr<VerbsApi> system_verbs();

// Where a topology comes from.
struct TopologySource {
  enum class Kind { this_machine, synthetic, xml_file } kind = Kind::this_machine;
  std::string text;  // hwloc synthetic description or the path of an XML file
};

// One object of the machine's tree, for printing.
struct MachineObject {
  std::string type;   // "Machine", "Package", "NUMANode", "L3", "Core", "PU"
  int index = 0;      // logical index
  std::size_t bytes = 0;  // memory or cache size, 0 where it has none
  std::vector<MachineObject> children;
};

struct MachineTopology {
  MachineObject root;
  int packages = 0, numa_nodes = 0, l3_caches = 0, cores = 0, processing_units = 0;
};

Result<MachineTopology> load_machine(const TopologySource& source);

// This process's location. Never fails: what cannot be found stays unknown (-1).
Location discover_location();

}  // namespace plait
