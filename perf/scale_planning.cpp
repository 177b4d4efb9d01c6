// What planning takes at 65,536 ranks, a (collective, size class), in processor time: the cheapest plans, then the
// lowering of one rank and its proof, by itself and when the algorithms' proofs are known; and the memory that it needs
// on the way and keeps. Table rows for docs/scale.md.
//
//   build/release/scale_planning [RANK]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "perf/counted_heap.h"
#include "plan/choose/proven_plan.h"

namespace {

using namespace plait;
using namespace plait::topo;
using namespace plait::plan;

// Ranks in the order of their places: [16 switch, 256 node, 16 core], or two packages in each node.
Hierarchy system_of(int switches, int nodes_each, int packages, int cores) {
  std::vector<Location> locations;
  for (int node = 0; node < switches * nodes_each; ++node)
    for (int core = 0; core < packages * cores; ++core) {
      Location location;
      location.leaf_switch = static_cast<std::uint64_t>(node / nodes_each) + 1;
      location.host.low = static_cast<std::uint64_t>(node) + 1;
      if (packages > 1) location.package = core / cores;
      location.core = core;
      locations.push_back(location);
    }
  return Hierarchy::from_locations(locations);
}

// Of this thread's processor: others may be busy as well.
double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The least of a few.
template <class Work>
double seconds_of(Work work) {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double begin = now();
    work();
    least = std::min(least, now() - begin);
  }
  return least;
}

struct Cost {
  double choose = 0, lower = 0, first = 0, again = 0;
  std::size_t peak = 0, kept = 0, steps = 0, runs = 0;
  std::string plan;
};

Cost measure(const Hierarchy& hierarchy, const Routes& routes, const Call& call, int rank) {
  const Machine machine = default_machine();
  const CandidateContext context{.hierarchy = hierarchy, .machine = machine, .must_be_proven = true};
  const LoweredCall wanted{call.collective, 0, call.commutative, hierarchy};
  Cost cost;
  std::vector<Candidate> found;
  cost.choose = seconds_of([&] { found = candidates(call, context, 3); });
  if (found.empty()) {
    cost.plan = "none";
    return cost;
  }
  const Candidate& best = found.front();
  cost.plan = best.name;
  cost.lower = seconds_of([&] { (void)lower_own(best, wanted, routes, rank); });
  cost.first = seconds_of([&] {
    GroupProofs proofs;
    (void)proven_plan(best, wanted, routes, rank, proofs);
  });
  GroupProofs proofs;
  const std::int64_t before = heap_now();
  forget_heap_peak();
  const auto own = proven_plan(best, wanted, routes, rank, proofs);
  cost.peak = static_cast<std::size_t>(heap_peak() - before);
  cost.kept = static_cast<std::size_t>(heap_now() - before);
  cost.again = seconds_of([&] { (void)proven_plan(best, wanted, routes, rank, proofs); });
  if (!own.ok()) {
    cost.plan += ": " + own.status().message();
  } else {
    cost.steps = own->schedule.steps.size();
    cost.runs = own->schedule.runs.size();
  }
  return cost;
}

void table(const Hierarchy& hierarchy, int rank) {
  const Routes routes = usual_routes(hierarchy);
  std::printf("\n%s, rank %d\n\n", hierarchy.describe().c_str(), rank);
  std::printf(
      "| collective | bytes | choose ms | lower ms | lower, prove first ms | again ms | peak KiB | kept KiB | steps | "
      "runs | plan |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n");
  for (int c = 0; c < planned_collectives; ++c)
    for (const std::size_t bytes :
         {std::size_t{8}, std::size_t{64} << 10, std::size_t{4} << 20, std::size_t{64} << 20}) {
      const auto collective = static_cast<Collective>(c);
      if (collective == Collective::barrier && bytes > 8) continue;
      std::vector<std::size_t> counts(static_cast<std::size_t>(hierarchy.ranks()), bytes);
      Call call{.collective = collective, .count = bytes};
      if (collective == Collective::allgatherv || collective == Collective::reduce_scatter) call.counts = counts.data();
      const Cost cost = measure(hierarchy, routes, call, rank);
      std::printf("| %s | %zu | %.2f | %.2f | %.2f | %.2f | %zu | %zu | %zu | %zu | %s |\n",
                  std::string(name(collective)).c_str(), bytes, cost.choose * 1e3, cost.lower * 1e3, cost.first * 1e3,
                  cost.again * 1e3, cost.peak >> 10, cost.kept >> 10, cost.steps, cost.runs, cost.plan.c_str());
    }
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = argc > 1 ? std::atoi(argv[1]) : 0;
  table(system_of(16, 256, 1, 16), rank);
  table(system_of(16, 256, 2, 8), rank);
}
