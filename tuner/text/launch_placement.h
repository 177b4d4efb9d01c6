// How to make a launcher place a grid's ranks: Open MPI's rankfile, and the options of mpirun and srun.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace plait::tuner {

struct HostSlots {
  std::string name;
  int slots = 0;
};

// "a:16,b:16". Fails (invalid) with the entry that is wrong: no name, no positive number, a name twice.
Result<std::vector<HostSlots>> parse_hosts(std::string_view text);

// How many ranks each host takes when the hosts fill the system's outermost levels: as many hosts as these have groups,
// each with slots for all below. Fails (invalid) with what does not fit.
Result<int> ranks_per_host(std::span<const int> system, std::span<const HostSlots> hosts);

// "rank 0=a slot=0", a line a rank: device d is slot d % ranks_per_host of host d / ranks_per_host.
std::string rankfile(std::span<const int> devices, std::span<const HostSlots> hosts, int ranks_per_host);

// A placement as launchers are told of it. `mpirun` and `slurm` are options; "" where only a file can say it.
struct LaunchOptions {
  std::string mpirun;  // "--map-by slot"
  std::string slurm;   // "--distribution=block:block"
  std::string
      cpu_bind;  // Slurm with a host file: the slot of each rank of a host in turn, "0,4,8,12"; "" when ascending
};
LaunchOptions launch_options(std::span<const int> devices, int ranks_per_host);

// Host of each rank in turn: what Slurm's SLURM_HOSTFILE contains, a line a rank.
std::vector<std::string> host_of_ranks(std::span<const int> devices, std::span<const HostSlots> hosts,
                                       int ranks_per_host);

}  // namespace plait::tuner
