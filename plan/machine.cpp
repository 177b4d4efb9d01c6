#include "plan/machine.h"

namespace plait {

Machine default_machine() {
  Machine machine;
  machine.name = "default";
  // Slots stay in the second-level cache: the rates are the cache's, and a message costs most of a microsecond. These
  // figures put the change from exchanges to halves at 64 KiB between two ranks, where perf/tl_exchange finds it.
  machine.levels = {{.name = "node",
                     .latency = 15e-6,
                     .overhead = 5e-6,
                     .cpu_seconds_per_byte = 1 / 6e9,
                     .port_seconds_per_byte = 1 / 1.2e9,
                     .port_seconds_per_message = 1e-6,
                     .half_duplex = false,
                     .network = true},
                    {.name = "rank", .latency = 0.8e-6, .overhead = 0.05e-6, .cpu_seconds_per_byte = 1 / 80e9}};
  machine.reduce_seconds_per_byte = 1 / 80e9;
  machine.copy_seconds_per_byte = 1 / 80e9;
  return machine;
}

}  // namespace plait
