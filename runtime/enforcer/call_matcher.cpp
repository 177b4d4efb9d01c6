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

}  // namespace plait::runtime
