#include "topo/crowding.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

namespace plait::topo {

double ranks_per_core(std::span<const Location> locations) {
  std::map<std::array<std::uint64_t, 5>, int> bound_alike;
  const auto binding = [](const Location& location) {
    return std::array{location.machine, static_cast<std::uint64_t>(location.package),
                      static_cast<std::uint64_t>(location.numa), static_cast<std::uint64_t>(location.l3),
                      static_cast<std::uint64_t>(location.core)};
  };
  for (const Location& location : locations) ++bound_alike[binding(location)];
  double most = 1;
  for (const Location& location : locations)
    most = std::max(most, static_cast<double>(bound_alike[binding(location)]) / std::max(location.cores_allowed, 1));
  return most;
}

}  // namespace plait::topo
