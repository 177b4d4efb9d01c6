#include "runtime/execution/execution.h"

#include <utility>

#include "runtime/execution/caller.h"

namespace plait::runtime {
namespace {

const Buffers& buffers_of(const Execution& execution) {
  return execution.exchange == nullptr ? execution.staging.buffers : execution.exchange->buffers();
}

const Reducer* reducer_of(const Request& request, const Execution& execution) {
  return execution.exchange == nullptr ? request.reducer : execution.exchange->reducer();
}

// An exchange whose first schedule is through goes on with what is left, once.
const BoundSchedule* rest_of(const Team& team, Execution& execution) {
  if (execution.exchange == nullptr || execution.at_rest) return nullptr;
  execution.at_rest = true;
  return execution.exchange->rest(team.routes());
}

// Only the steps of the call's plan are recorded.
StepTrace* trace_of_rest(const Team& team, const Exchange& exchange) {
  return exchange.runs_plan_first() || team.trace == nullptr ? nullptr : &team.trace->steps;
}

// What follows from a turn of the engine. Changed in place, and seldom: copies show in the time of a small call.
inline void look_at(Result<bool>& complete, Team& team, Execution& execution, bool may_call_host) {
  if (complete.ok() && *complete && execution.exchange != nullptr) [[unlikely]]
    if (const BoundSchedule* rest = rest_of(team, execution); rest != nullptr)
      complete = team.engine.start(*rest, buffers_of(execution), execution.exchange->reducer(),
                                   trace_of_rest(team, *execution.exchange));
  if (!complete.ok()) [[unlikely]]
    complete = team.break_off(complete.status(), may_call_host);
}

}  // namespace

Status run_exchange(Team& team, Execution& execution) {
  Exchange& exchange = *execution.exchange;
  StepTrace* steps = begin_trace(team);
  Status status = team.engine.run(*execution.schedule, exchange.buffers(), exchange.reducer(),
                                  exchange.runs_plan_first() ? steps : nullptr);
  if (!status.ok()) [[unlikely]]
    return status;
  const BoundSchedule* rest = rest_of(team, execution);
  if (rest == nullptr) return status;
  return team.engine.run(*rest, exchange.buffers(), exchange.reducer(), trace_of_rest(team, exchange));
}

Result<bool> start(Team& team, const Request& request, Execution& execution, bool may_call_host) {
  if (!pack(request, execution)) [[unlikely]]
    return pack_error(execution.error);
  StepTrace* steps = begin_trace(team);
  if (execution.exchange != nullptr && !execution.exchange->runs_plan_first()) steps = nullptr;
  Result<bool> complete =
      team.engine.start(*execution.schedule, buffers_of(execution), reducer_of(request, execution), steps);
  look_at(complete, team, execution, may_call_host);
  return complete;
}

Result<bool> progress(Team& team, Execution& execution, bool may_call_host) {
  Result<bool> complete = team.engine.progress();
  look_at(complete, team, execution, may_call_host);
  return complete;
}

}  // namespace plait::runtime
