#include "runtime/fusion/step_matcher.h"

#include <algorithm>

namespace plait::runtime {

StepMatcher::StepMatcher(const OverlapPlan& plan) : group_of_(plan.calls.size()), end_of_(plan.calls.size()) {
  for (std::size_t call = 0; call < plan.calls.size(); ++call) calls_of_[plan.calls[call].bytes].push_back(call);
  for (std::size_t group = 0; group < plan.groups.size(); ++group) {
    const OverlapGroup& members = plan.groups[group];
    for (std::size_t i = 0; i < members.calls; ++i) {
      group_of_[members.first_call + i] = group;
      end_of_[members.first_call + i] = members.first_call + members.calls;
    }
  }
}

std::optional<StepMatcher::Place> StepMatcher::next(std::size_t bytes) {
  const auto found = calls_of_.find(bytes);
  if (found == calls_of_.end()) return std::nullopt;
  const std::vector<std::size_t>& calls = found->second;
  const auto ahead = std::ranges::lower_bound(calls, expected_);
  const std::size_t call = ahead != calls.end() ? *ahead : calls.front();
  expected_ = (call + 1) % group_of_.size();
  return Place{.call = call, .group = group_of_[call], .left = end_of_[call] - call};
}

}  // namespace plait::runtime
