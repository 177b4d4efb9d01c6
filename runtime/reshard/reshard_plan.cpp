#include "runtime/reshard/reshard_plan.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "core/intern.h"
#include "plan/lower/proof.h"
#include "plan/reshard/lowering.h"
#include "plan/reshard/report.h"

namespace plait::runtime {
namespace {

std::vector<int> hosts_of(const ReshardParty& party) {
  std::vector<int> host_of(static_cast<std::size_t>(party.ranks));
  if (party.team == nullptr) return host_of;
  for (int r = 0; r < party.ranks; ++r)
    host_of[static_cast<std::size_t>(r)] = party.team->planner.hierarchy().node_of(r);
  return host_of;
}

std::string signature(const reshard::HostSchedule& schedule) {
  return list_text(schedule.sender) + "/" + list_text(schedule.order);
}

std::shared_ptr<PreparedCall> bind_for(int rank, const ReshardProblem& problem, const reshard::Plan& planned,
                                       const LoweredPlan& lowered) {
  const BlockPlaces places = reshard::places_of(problem.task, planned, lowered.semantics, rank);
  auto prepared = std::make_shared<PreparedCall>();
  prepared->accelerated = true;
  bind(lowered.schedules[static_cast<std::size_t>(rank)], lowered.semantics, rank,
       {.element_bytes = problem.task.element_bytes, .places = &places}, prepared->schedule);
  prepared->plan = intern("reshard " + std::string(name(problem.options.strategy)) + " " +
                          std::string(name(problem.options.scheduler)));
  prepared->channels = intern(names(prepared->schedule.channels_used));
  for (const reshard::UnitTask& task : planned.unit.tasks) prepared->payload += task.bytes;
  return prepared;
}

}  // namespace

Result<ReshardPlan> plan_resharding(const ReshardProblem& problem, const ReshardParty& party) {
  const bool alone = party.team == nullptr;
  reshard::Options options = problem.options;
  options.links = reshard::links_of(alone ? default_machine() : party.team->planner.machine());
  const std::vector<int> host_of = hosts_of(party);
  const Result<reshard::Plan> planned = reshard::make_plan(problem.task, host_of, options);
  if (!planned.ok()) return planned.status();
  const Result<LoweredPlan> lowered = reshard::lower(*planned, host_of, alone ? Routes() : party.team->routes());
  if (!lowered.ok()) return lowered.status();
  if (Status proven = prove(lowered->semantics, lowered->schedules, true); !proven.ok()) return proven;
  ReshardPlan made;
  made.prepared = bind_for(party.rank, problem, *planned, *lowered);
  made.calls_host = made.prepared->schedule.channels_used.any(&ChannelTraits::needs_host);
  made.description = reshard::summary_json(*planned);
  made.found = signature(planned->schedule) + made.description;
  return made;
}

}  // namespace plait::runtime
