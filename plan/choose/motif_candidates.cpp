#include "plan/choose/motif_candidates.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "plan/choose/motif_cost.h"

namespace plait::plan {
namespace {

constexpr int most_ranks = 64, fewest_nodes = 3;
// Below, a rewriting's messages and turns cost more than it can save (docs/schedule.md, a splined all-to-all).
constexpr std::size_t long_message = 256 * 1024, long_vector = 1024 * 1024;
constexpr std::size_t most_segments = 8, pipelined_segments = 4;

bool differ(const std::vector<double>& shares) {
  return shares.size() > 1 && std::ranges::max(shares) > 1.05 * std::ranges::min(shares);
}

// Of the rail that has the most for its share, in parts of what is dealt out; 1 where they fit exactly.
double longest(const std::vector<int>& rails, const std::vector<double>& shares) {
  double most = 0;
  for (std::size_t rail = 0; rail < shares.size(); ++rail) {
    const auto parts = static_cast<double>(std::ranges::count(rails, static_cast<int>(rail)));
    most = std::max(most, parts / (shares[rail] * static_cast<double>(rails.size())));
  }
  return most;
}

// The fewest segments that fit the rates best; "" where a rail would have none.
std::string by_rates(const std::vector<double>& shares) {
  std::vector<int> rails = deal(2, shares);
  for (std::size_t more = 3; more <= most_segments; ++more)
    if (std::vector<int> finer = deal(more, shares); longest(finer, shares) < 0.99 * longest(rails, shares))
      rails = std::move(finer);
  for (std::size_t rail = 0; rail < shares.size(); ++rail)
    if (std::ranges::find(rails, static_cast<int>(rail)) == rails.end()) return {};
  std::string name = "[segment:" + std::to_string(rails.size()) + "] @";
  for (std::size_t part = 0; part < rails.size(); ++part) name += (part == 0 ? "" : ",") + std::to_string(rails[part]);
  return name;
}

}  // namespace

std::vector<std::string> motif_names(const Call& call, const CandidateContext& context) {
  const Hierarchy& hierarchy = context.hierarchy;
  if (hierarchy.ranks() > most_ranks || hierarchy.nodes() < 2 || (!call.commutative && reduces(call.collective)))
    return {};
  const std::size_t bytes = payload_bytes(call, hierarchy.ranks());
  std::vector<std::string> names;
  if (call.collective == Collective::alltoall && bytes >= long_message && hierarchy.nodes() >= fewest_nodes &&
      hierarchy.ranks() % hierarchy.nodes() == 0)
    names.push_back("[spline:" + std::to_string(hierarchy.nodes()) + "]");
  if (call.collective == Collective::alltoall || bytes < long_vector) return names;
  if (const std::vector<double> shares = rail_shares(context.machine);
      differ(shares) && context.rails == static_cast<int>(shares.size()))
    if (std::string name = by_rates(shares); !name.empty()) names.push_back(std::move(name));
  if (call.collective == Collective::allreduce && hierarchy.uniform() && hierarchy.ranks() > hierarchy.nodes())
    names.push_back("[segment:" + std::to_string(pipelined_segments) +
                    ",tree:" + std::to_string(hierarchy.ranks() / hierarchy.nodes()) + "]");
  return names;
}

}  // namespace plait::plan
