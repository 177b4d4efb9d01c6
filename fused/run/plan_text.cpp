#include "fused/run/plan_text.h"

#include <array>

namespace plait::fused {

std::string plan_text(std::string_view name, const PlanNumbers& numbers, const Exchange& exchange) {
  std::array<int, 4> owners{};
  for (int owner = 0; owner < numbers.ranks; ++owner) {
    const Reach reach = exchange.is_uncopied(owner) ? Reach::direct : exchange.reach(owner);
    ++owners[static_cast<std::size_t>(reach)];
  }
  const auto field = [](const char* key, auto value) {
    return ", \"" + std::string(key) + "\": " + std::to_string(value);
  };
  return "{\"operator\": \"" + std::string(name) + '"' + field("workers", numbers.workers) +
         field("slices", numbers.slices) + field("tiles", numbers.tiles) + field("direct", owners[1]) +
         field("staged", owners[2]) + field("messages", owners[3]) + field("memory", exchange.reserved_bytes()) + "}";
}

}  // namespace plait::fused
