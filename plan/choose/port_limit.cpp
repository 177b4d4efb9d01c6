#include "plan/choose/port_limit.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "plan/synthesis/group_model.h"

namespace plait::plan {
namespace {

// As port_bytes() counts a call's size.
std::size_t bytes_of(const Call& call, int ranks) {
  const std::size_t bytes = payload_bytes(call, ranks), all = static_cast<std::size_t>(ranks);
  if (call.collective == Collective::reduce_scatter_block) return bytes * all;
  return call.collective == Collective::allgatherv ? bytes / all : bytes;
}

// Whether as much leaves a port as enters it, in the mean over the ports.
bool fills_both_ways(std::span<const int> ranks_behind, Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return true;
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
    case Collective::alltoall:
      return std::ranges::all_of(ranks_behind, [&](int here) { return here == ranks_behind.front(); });
    default:
      return false;
  }
}

std::vector<int> ranks_behind_ports(const Level& level, int ranks) {
  std::vector<int> behind;
  for (std::size_t child = 0; child < level.group_first.size(); ++child)
    behind.push_back((child + 1 < level.group_first.size() ? level.group_first[child + 1] : ranks) -
                     level.group_first[child]);
  return behind;
}

// Behind rank 0's port, or behind the one whose root leaves the least to carry.
double bytes_through_port(const Call& call, std::span<const int> behind, std::size_t bytes, LimitsRoot root) {
  double least = port_bytes(behind, 0, call.collective, bytes);
  if (root == LimitsRoot::any && rooted(call.collective))
    for (int port = 1; port < static_cast<int>(behind.size()); ++port)
      least = std::min(least, port_bytes(behind, port, call.collective, bytes));
  return least;
}

PortLimit limit_at(const Call& call, const CandidateContext& context, std::size_t l, const LinkLevel& link,
                   LimitsRoot root) {
  const Hierarchy& hierarchy = context.hierarchy;
  const std::vector<int> behind = ranks_behind_ports(hierarchy.levels()[l], hierarchy.ranks());
  const double ways = link.half_duplex && fills_both_ways(behind, call.collective) ? 2 : 1;
  const double communicators = static_cast<int>(behind.size()) <= hierarchy.nodes() ? context.siblings : 1;
  const double bytes = ways * communicators * bytes_through_port(call, behind, bytes_of(call, hierarchy.ranks()), root);
  return {bytes * link.port_seconds_per_byte, bytes, link.name};
}

}  // namespace

double port_bytes(std::span<const int> ranks_behind, int root_port, Collective collective, std::size_t bytes) {
  if (ranks_behind.size() < 2) return 0;
  const double size = static_cast<double>(bytes), ports = static_cast<double>(ranks_behind.size());
  const double ranks = std::accumulate(ranks_behind.begin(), ranks_behind.end(), 0);
  const int fewest = *std::ranges::min_element(ranks_behind);
  switch (collective) {
    case Collective::bcast:
    case Collective::reduce:
      return size;
    case Collective::allreduce:
      return 2 * (ports - 1) / ports * size;
    case Collective::allgather:
    case Collective::allgatherv:
      return (ranks - fewest) * size;
    case Collective::gather:
    case Collective::scatter:
    case Collective::gatherv:
    case Collective::scatterv:
      return (ranks - ranks_behind[static_cast<std::size_t>(root_port)]) * size;
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::alltoallw: {
      double busiest = 0;
      for (const int here : ranks_behind) busiest = std::max(busiest, here * (ranks - here));
      return busiest * size;
    }
    case Collective::reduce_scatter_block:
    case Collective::reduce_scatter:
      return (1 - fewest / ranks) * size;
    case Collective::scan:
    case Collective::exscan:
      return size;
    default:
      return 0;
  }
}

PortLimit port_limit(const Call& call, const CandidateContext& context, LimitsRoot root) {
  PortLimit limit;
  if (context.hierarchy.nodes() < 2) return limit;
  const GroupModel model = group_model(context.machine, context.hierarchy, context.siblings);
  for (std::size_t l = 0; l < model.levels.size(); ++l) {
    if (l != 0 && !model.levels[l].link.network) continue;
    if (PortLimit here = limit_at(call, context, l, model.levels[l].link, root); here.seconds > limit.seconds)
      limit = std::move(here);
  }
  return limit;
}

}  // namespace plait::plan
