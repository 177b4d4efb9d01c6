#include "runtime/execution/call_choice.h"

#include "runtime/job/job.h"

namespace plait::runtime {
namespace {

// By measurement (docs/performance.md).
FastLengths fast_lengths(Collective collective, const Hierarchy& hierarchy) {
  if (hierarchy.nodes() > 1) return {};
  if (collective == Collective::scatterv) return {.from = 512, .to = 16 * 1024};
  if (hierarchy.ranks() == 2) return {.from = 512, .to = 16 * 1024};
  return {.from = 0, .to = 4 * 1024};
}

}  // namespace

PairExchange::Problem pair_problem(const Communicator& communicator, const Request& request, std::size_t slot_bytes) {
  return {.collective = request.call.collective,
          .rank = communicator.rank,
          .ranks = communicator.ranks,
          .root = request.call.root,
          .sends = &request.lists->sends,
          .receives = &request.lists->receives,
          .slot_bytes = slot_bytes,
          .fast = fast_lengths(request.call.collective, communicator.team->planner.hierarchy())};
}

int candidate_of(const Request& request) {
  const bool rounds = request.reducer != nullptr && !request.reducer->exact;
  return rounds && job().config.trial == TrialMode::exact ? planners_candidate : settled_candidate;
}

// A chain of ranks lets the first ones run ahead: by measurement (docs/performance.md) it is left behind within a node
// only, and by vectors that are neither tiny nor long.
bool scan_is_hosts(const Team& team, const Request& request) {
  constexpr std::size_t shortest = 512, longest = 8 * 1024;
  if (!job().config.host_when_faster) return false;
  return team.planner.hierarchy().nodes() > 1 || request.input.bytes < shortest || request.input.bytes > longest;
}

}  // namespace plait::runtime
