#include "plan/overlap/plan_reductions.h"

#include <cmath>
#include <utility>

#include "plan/model/collective.h"

namespace plait::plan {
namespace {

constexpr std::size_t element_bytes = 4;
constexpr double counted = 1e-9;  // seconds that a byte takes where bytes are counted

Call allreduce_of(std::size_t bytes) {
  return {.collective = Collective::allreduce, .count = bytes / element_bytes, .element_bytes = element_bytes};
}

Machine without_bytes(Machine machine) {
  for (LinkLevel& level : machine.levels) level.cpu_seconds_per_byte = level.port_seconds_per_byte = 0;
  machine.reduce_seconds_per_byte = machine.copy_seconds_per_byte = machine.start_seconds_per_byte = 0;
  return machine;
}

// Only bytes cost something: those that pass network ports, or on one node those that processors handle.
Machine counting_bytes(const Machine& machine, bool crosses_network) {
  Machine counting = without_bytes(machine);
  counting.ranks_per_core = 1;
  for (LinkLevel& level : counting.levels) {
    level.latency = level.overhead = level.port_seconds_per_message = 0;
    level.half_duplex = false;
    if (!crosses_network) level.cpu_seconds_per_byte = counted;
    if (crosses_network && level.network) level.port_seconds_per_byte = counted;
  }
  return counting;
}

Result<double> seconds_on(const Machine& machine, const std::string& plan, const Call& call,
                          const CandidateContext& context) {
  const CandidateContext changed{.hierarchy = context.hierarchy,
                                 .machine = machine,
                                 .siblings = context.siblings,
                                 .chunk_bytes = context.chunk_bytes,
                                 .rails = context.rails,
                                 .shared_memory = context.shared_memory,
                                 .staged = context.staged};
  const Result<Candidate> candidate = named_candidate(plan, call, changed);
  if (!candidate.ok()) return candidate.status();
  return candidate->seconds;
}

}  // namespace

std::vector<std::size_t> reduction_sizes(std::size_t most) {
  std::vector<std::size_t> sizes = {1024};
  while (sizes.back() < most) sizes.push_back(2 * sizes.back());
  return sizes;
}

Result<ReductionCost> plan_reduction(std::size_t bytes, const std::string& plan, const CandidateContext& context) {
  const Call call = allreduce_of(bytes);
  const Result<double> startup = seconds_on(without_bytes(context.machine), plan, call, context);
  if (!startup.ok()) return startup.status();
  const Machine counting = counting_bytes(context.machine, context.hierarchy.nodes() > 1);
  const Result<double> moved = seconds_on(counting, plan, call, context);
  if (!moved.ok()) return moved.status();
  if (!std::isfinite(*startup) || !std::isfinite(*moved) || *moved <= 0)
    return {Code::invalid,
            "the machine's figures give no time for an allreduce of " + std::to_string(bytes) + " bytes"};
  return ReductionCost{bytes, *startup, *moved / counted, plan};
}

Result<std::vector<ReductionCost>> plan_reductions(const std::vector<std::size_t>& sizes,
                                                   const CandidateContext& context) {
  std::vector<ReductionCost> reductions;
  for (const std::size_t bytes : sizes) {
    const std::vector<Candidate> best = candidates(allreduce_of(bytes), context, 1);
    if (best.empty()) return {Code::invalid, "no plan for an allreduce of " + std::to_string(bytes) + " bytes"};
    auto reduction = plan_reduction(bytes, best.front().name, context);
    if (!reduction.ok()) return reduction.status();
    reductions.push_back(std::move(*reduction));
  }
  return reductions;
}

}  // namespace plait::plan
