#include "runtime/execution/execution.h"

#include <utility>

#include "runtime/execution/caller.h"

namespace plait::runtime {
namespace {

const Buffers& buffers_of(const Execution& execution) {
  return execution.exchange == nullptr ? execution.staging.buffers : execution.exchange->buffers();
}

const Reducer* reducer_of(const Request& request, const Execution& execution) {
  return execution.exchange == nullptr ? request.reducer : nullptr;
}

// An exchange whose first schedule is through goes on with what is left, once.
const BoundSchedule* rest_of(const Team& team, Execution& execution) {
  if (execution.exchange == nullptr || execution.at_rest) return nullptr;
  execution.at_rest = true;
  return execution.exchange->rest(team.routes());
}

Result<bool> unless_failed(Team& team, Result<bool> complete, bool may_call_host) {
  if (!complete.ok()) [[unlikely]]
    return team.break_off(complete.status(), may_call_host);
  return complete;
}

Result<bool> go_on(Team& team, Execution& execution, Result<bool> complete) {
  if (!complete.ok() || !*complete) return complete;
  const BoundSchedule* rest = rest_of(team, execution);
  return rest == nullptr ? std::move(complete) : team.engine.start(*rest, buffers_of(execution), nullptr, nullptr);
}

}  // namespace

Status run_exchange(Team& team, Execution& execution) {
  Status status = team.engine.run(*execution.schedule, buffers_of(execution), nullptr, begin_trace(team));
  if (!status.ok()) [[unlikely]]
    return status;
  const BoundSchedule* rest = rest_of(team, execution);
  return rest == nullptr ? std::move(status) : team.engine.run(*rest, buffers_of(execution), nullptr, nullptr);
}

Result<bool> start(Team& team, const Request& request, Execution& execution, bool may_call_host) {
  if (!pack(request, execution)) [[unlikely]]
    return pack_error(execution.error);
  StepTrace* steps = begin_trace(team);
  Result<bool> complete =
      team.engine.start(*execution.schedule, buffers_of(execution), reducer_of(request, execution), steps);
  return unless_failed(team, go_on(team, execution, std::move(complete)), may_call_host);
}

Result<bool> progress(Team& team, Execution& execution, bool may_call_host) {
  return unless_failed(team, go_on(team, execution, team.engine.progress()), may_call_host);
}

}  // namespace plait::runtime
