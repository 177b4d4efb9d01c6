#include "plan/overlap/baselines.h"

#include <algorithm>
#include <numeric>

namespace plait::plan {

std::vector<OverlapGroup> one_group_a_call(const BackwardPass& pass, const CommunicationShare& share) {
  return buckets(pass, 0, share);
}

std::vector<OverlapGroup> one_group(const BackwardPass& pass, const CommunicationShare& share) {
  return {{0, pass.bytes.size(), share}};
}

std::vector<OverlapGroup> buckets(const BackwardPass& pass, double bytes, const CommunicationShare& share) {
  std::vector<OverlapGroup> groups;
  double filled = bytes;  // of the last group; full at first, so that one is opened
  for (std::size_t call = 0; call < pass.bytes.size(); ++call) {
    if (filled >= bytes) {
      groups.push_back({call, 0, share});
      filled = 0;
    }
    ++groups.back().calls;
    filled += pass.bytes[call];
  }
  return groups;
}

std::vector<OverlapGroup> merged_gradients(const BackwardPass& pass, const OverlapModel& model,
                                           const CommunicationShare& share, double startup) {
  const std::size_t r = share_index(model, share);
  std::vector<OverlapGroup> groups = {{0, 0, share}};
  double ready = 0, free = 0, bytes = 0;  // when this gradient exists, when the last group is reduced; of this group
  bool several = false;
  for (std::size_t call = 0; call < pass.bytes.size(); ++call) {
    ready += pass.computation[call];
    bytes += pass.bytes[call];
    several = ++groups.back().calls > 1 || pass.is_fused(call);
    if (call + 1 == pass.bytes.size()) break;
    const double begin = std::max(ready, free);
    if (ready + pass.computation[call + 1] < begin + startup) continue;
    free = begin + reduction_time(model, bytes, several, r).alone;
    bytes = 0;
    groups.push_back({call + 1, 0, share});
  }
  return groups;
}

BackwardTime reduction_at_end(const BackwardPass& pass, const OverlapModel& model, const CommunicationShare& share) {
  const double bytes = std::accumulate(pass.bytes.begin(), pass.bytes.end(), 0.);
  const bool several = pass.bytes.size() > 1 || pass.is_fused(0);
  const double computes = pass.total();
  const double reduces = reduction_time(model, bytes, several, share_index(model, share)).alone;
  return {.seconds = computes + reduces,
          .computation = computes,
          .exposed = reduces,
          .groups = {{computes, computes + reduces}}};
}

}  // namespace plait::plan
