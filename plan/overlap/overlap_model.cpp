#include "plan/overlap/overlap_model.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace plait::plan {

OverlapModel with_share(const OverlapModel& model, std::size_t share) {
  return {.shares = {model.shares[share]},
          .slowdown = {model.slowdown[share]},
          .overlapped = [all = model.overlapped, share](double bytes, std::size_t) { return all(bytes, share); },
          .alone = [all = model.alone, share](double bytes, std::size_t) { return all(bytes, share); },
          .agreement = model.agreement};
}

ReductionTime reduction_time(const OverlapModel& model, double bytes, bool several, std::size_t share) {
  const double before = several ? model.agreement : 0;
  return {.overlapped = before + model.overlapped(bytes, share), .alone = before + model.alone(bytes, share)};
}

double BackwardPass::total() const { return std::accumulate(computation.begin(), computation.end(), tail); }

BackwardPass fused(const BackwardPass& pass, const std::vector<OverlapGroup>& groups) {
  BackwardPass result{.computation = {}, .bytes = {}, .tail = pass.tail, .bytes_factor = pass.bytes_factor};
  result.fused.reserve(groups.size());
  for (const OverlapGroup& group : groups) {
    const auto first = static_cast<std::ptrdiff_t>(group.first_call);
    const auto last = first + static_cast<std::ptrdiff_t>(group.calls);
    result.computation.push_back(
        std::accumulate(pass.computation.begin() + first, pass.computation.begin() + last, 0.));
    result.bytes.push_back(std::accumulate(pass.bytes.begin() + first, pass.bytes.begin() + last, 0.));
    result.fused.push_back(group.calls > 1 || pass.is_fused(group.first_call));
  }
  return result;
}

OverlapStage overlap_stage(const OverlapModel& model, double bytes, double computation, std::size_t share,
                           bool several) {
  if (bytes <= 0) return {.computation = computation};
  const ReductionTime reduction = reduction_time(model, bytes, several, share);
  if (computation <= 0) return {.communication = reduction.alone};
  const double computes = computation * model.slowdown[share];
  const double both = std::min(reduction.overlapped, computes);
  return {.overlapped = both,
          .computation = computation * (1 - both / computes),
          .communication = reduction.alone * (1 - both / reduction.overlapped)};
}

BackwardTime backward_time(const BackwardPass& pass, const std::vector<OverlapGroup>& groups,
                           const OverlapModel& model) {
  const BackwardPass tasks = fused(pass, groups);
  BackwardTime time;
  double left = pass.total();  // of computation, alone: the paper's s_b
  double later = left;         // of it, behind the gradients of the groups up to this one
  for (std::size_t i = 0; i < groups.size(); ++i) {
    later -= tasks.computation[i];
    const double before = std::max(0., left - later);  // t_b of the stage before: computation until this group is ready
    left -= before;
    time.seconds += before;
    time.computation += before;
    const OverlapStage stage =
        overlap_stage(model, tasks.bytes[i], left, share_index(model, groups[i].share), tasks.fused[i]);
    const double begin = time.seconds;
    time.seconds += stage.overlapped + stage.communication;
    time.groups.push_back({begin, time.seconds});
    time.computation += stage.overlapped;
    time.exposed += stage.communication;
    left = stage.computation;
  }
  time.seconds += left;
  time.computation += left;
  return time;
}

std::size_t share_index(const OverlapModel& model, const CommunicationShare& share) {
  const auto found = std::find(model.shares.begin(), model.shares.end(), share);
  assert(found != model.shares.end());
  return static_cast<std::size_t>(found - model.shares.begin());
}

}  // namespace plait::plan
