#include "tuner/text/job_shape.h"

#include <algorithm>
#include <string>

#include "topo/hierarchy.h"

namespace plait::tuner {
namespace {

bool by_slot(const JobShape& job) { return std::is_sorted(job.node_of.begin(), job.node_of.end()); }

bool by_node(const JobShape& job) {
  for (int rank = 0; rank < job.ranks(); ++rank) {
    if (job.node_of[rank] != rank % job.nodes()) return false;
  }
  return true;
}

}  // namespace

JobShape shape_of(std::span<const Location> locations) {
  const Hierarchy hierarchy = Hierarchy::from_locations(locations);
  JobShape job;
  job.ranks_on_node.resize(static_cast<std::size_t>(hierarchy.nodes()));
  for (int rank = 0; rank < hierarchy.ranks(); ++rank) {
    job.node_of.push_back(hierarchy.node_of(rank));
    ++job.ranks_on_node[job.node_of.back()];
  }
  return job;
}

Result<JobShape> equal_nodes(int ranks, int nodes) {
  if (nodes < 1 || ranks % nodes != 0) {
    return {Code::invalid, "--nodes " + std::to_string(nodes) + ": expected a number that divides the " +
                               std::to_string(ranks) + " ranks"};
  }
  JobShape job;
  job.ranks_on_node.assign(static_cast<std::size_t>(nodes), ranks / nodes);
  for (int rank = 0; rank < ranks; ++rank) job.node_of.push_back(rank / (ranks / nodes));
  return job;
}

// Nodes are numbered by their first ranks, so that consecutive ones ascend.
std::string_view mapping(const JobShape& job) { return by_slot(job) ? "slot" : by_node(job) ? "node" : "other"; }

double nic_bytes(const JobShape& job, Collective collective, std::size_t bytes, int root) {
  if (job.nodes() < 2) return 0;
  const double size = static_cast<double>(bytes), nodes = job.nodes(), ranks = job.ranks();
  const int fewest = *std::min_element(job.ranks_on_node.begin(), job.ranks_on_node.end());
  switch (collective) {
    case Collective::bcast:
    case Collective::reduce:
      return size;
    case Collective::allreduce:
      return 2 * (nodes - 1) / nodes * size;
    case Collective::allgather:
    case Collective::allgatherv:
      return (ranks - fewest) * size;
    case Collective::gather:
    case Collective::scatter:
    case Collective::gatherv:
    case Collective::scatterv:
      return (ranks - job.ranks_on_node[job.node_of[root]]) * size;
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::alltoallw: {
      double busiest = 0;
      for (const int here : job.ranks_on_node) busiest = std::max(busiest, here * (ranks - here));
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

}  // namespace plait::tuner
