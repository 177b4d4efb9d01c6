#include "runtime/enforcer/call_matcher.h"

namespace plait::runtime {

std::optional<MatchedCall> CallMatcher::next(Collective collective, std::size_t bytes, bool blocking) {
  if (!fits(expected_, collective, bytes, blocking)) {
    leave();
    if (!fits(0, collective, bytes, blocking)) return {};
  }
  if (expected_ == 0) ++iteration_;  // the first is 1: none has the number of one that went before
  const bool ends = expected_ == 0 && iterations_of_epoch_ != 0 && iteration_ % iterations_of_epoch_ == 0;
  if (!std::exchange(following_, true) || ends) ++epoch_;
  const std::size_t operation = expected_;
  expected_ = (operation + 1) % operations_.size();
  return MatchedCall{
      .number = iteration_ * operations_.size() + operation, .epoch = epoch_, .operation = static_cast<int>(operation)};
}

bool in_schedules(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::bcast:
    case Collective::allgather:
    case Collective::reduce_scatter_block:
    case Collective::gather:
    case Collective::scatter:
    case Collective::alltoall:
      return true;
    default:
      return false;
  }
}

}  // namespace plait::runtime
