#include "tuner/text/job_shape.h"

#include <algorithm>
#include <string>

#include "plan/choose/port_limit.h"
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
  return port_bytes(job.ranks_on_node, job.node_of[static_cast<std::size_t>(root)], collective, bytes);
}

}  // namespace plait::tuner
