// The links of a system: what moving and combining bytes costs, level by level.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "plan/model/fingerprint.h"

namespace plait::plan {

// What connects the children of a group at one level: the nodes of a cluster, the ranks of a node.
// Two ranks that a level parts, over one channel alone. Seconds.
struct ChannelLink {
  std::string channel;          // "ucx"
  double latency = 0;           // alpha
  double overhead = 0;          // of a message of many: the gap
  double seconds_per_byte = 0;  // beta
};

// Copies of a device (a GPU), one at a time. Seconds.
struct DeviceLink {
  double latency = 0;           // of a copy of nothing
  double seconds_per_byte = 0;  // 0: not known
  bool known() const { return seconds_per_byte > 0; }
  double at(double bytes) const { return latency + bytes * seconds_per_byte; }
};

// How many messages meet on a link of the network between a level's children, when each child sends one to the child so
// many places on. None meet in a full crossbar. In a torus a row's nodes are a ring, on which a message passes all
// links between; of a dragonfly's group `near` nodes are on one switch, which has one link to each other switch.
struct Meeting {
  int near = 0;         // children within which nothing meets
  double messages = 1;  // beyond
  int ring = 0;         // of so many children, then rings of those; 0: no ring

  double at(int distance, int children) const;
  // In the mean of an exchange between all children.
  double of_all(int children) const;
  bool operator==(const Meeting&) const = default;
};

struct LinkLevel {
  std::string name;                      // "node", "rank"
  double latency = 0;                    // alpha: seconds from the start of a send to the arrival of its first byte
  double overhead = 0;                   // processor seconds to post or to take one message, on either side
  double cpu_seconds_per_byte = 0;       // processor seconds a byte on either side
  double port_seconds_per_byte = 0;      // beta of a child's port (a node's NIC, a GPU's link), in each direction; all
                                         // ranks behind the port share it. 0: only the processors' time counts
  double port_seconds_per_message = 0;   // likewise: the limit of its message rate
  bool half_duplex = false;              // both directions share the port's rate
  bool port_shared = false;              // messages that are posted together share the port, as flows do, instead of
                                         // leaving one after the other
  bool network = false;                  // messages that cross an outer level pass these ports as well
  int rails = 1;                         // of a child, which share the port's rate
  std::vector<double> rail_shares = {};  // how, by rail: their sum is 1; empty: evenly
  Meeting meeting = {};
  DeviceLink devices = {};  // between the devices of two ranks that it parts: one stores into the other's memory
  std::vector<ChannelLink> channels = {};  // as they were measured one by one; no prediction is made from these

  // Rails of these shares; one where there are none.
  void take_rails(std::vector<double> shares) {
    rails = shares.empty() ? 1 : static_cast<int>(shares.size());
    rail_shares = std::move(shares);
  }
};

// What the host's own collective took.
struct HostPoint {
  std::size_t bytes = 0;  // as CallSpec::bytes (tuner/measure/collective_calls.h)
  double seconds = 0;
};

struct Machine {
  std::string name;
  std::vector<LinkLevel> levels;       // outermost first; a system of more levels repeats the innermost
  double reduce_seconds_per_byte = 0;  // gamma
  double copy_seconds_per_byte = 0;
  double start_seconds_per_byte = 0;  // before the first message: a pass over the payload that some runtimes make
  double ranks_per_core = 1;          // more than 1: ranks share cores, so that the work of all of them counts
  DeviceLink to_device = {}, from_device = {};  // a rank's, from and to the processor's memory
  // What the host's collectives took over all ranks, by name; ascending in bytes.
  std::map<std::string, std::vector<HostPoint>> host = {};
  Fingerprint fingerprint = {};  // of the system that was measured; empty: of none
};

// Two levels, node and rank: figures of an ordinary cluster of today (Ethernet or slower InfiniBand), used until a
// machine was measured.
Machine default_machine();

// "default"; "a100" and "v100": the two systems of P² (Xie et al., MLSys 2022, section 4 and figure 9), with the
// paper's rates; docs/p2.md says how they were read. Fails with the list of names.
Result<Machine> machine_named(std::string_view name);

// A machine file (docs/p2.md). Fails with what is wrong and where.
Result<Machine> parse_machine(std::string_view text);
std::string machine_json(const Machine& machine);

}  // namespace plait::plan
