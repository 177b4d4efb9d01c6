#include "fused/tiles/slice_size.h"

#include <algorithm>
#include <cmath>

namespace plait::fused {
namespace {

constexpr double least_bytes = 4 * 1024, most_bytes = 1024 * 1024;

// A flag: a line that another core has. Measured by perf/tl_exchange, as a round trip of 276 ns.
constexpr double flag_s = 0.15e-6;

}  // namespace

WayCost cost_between_nodes(const Machine& machine) {
  if (machine.levels.empty()) return {};
  const LinkLevel& link = machine.levels.front();
  return {.overhead_s = link.overhead,
          .seconds_per_byte = std::max(link.port_seconds_per_byte, link.cpu_seconds_per_byte)};
}

WayCost cost_within_node(const Machine& machine) {
  return {.overhead_s = flag_s, .seconds_per_byte = machine.copy_seconds_per_byte};
}

std::size_t slice_bytes(const WayCost& cost, std::uint64_t bytes) {
  if (cost.seconds_per_byte <= 0) return static_cast<std::size_t>(most_bytes);
  const double best = std::sqrt(static_cast<double>(bytes) * cost.overhead_s / cost.seconds_per_byte);
  return static_cast<std::size_t>(std::clamp(best, least_bytes, most_bytes));
}

}  // namespace plait::fused
