#include "tuner/measure/reshard_measure.h"

#include <algorithm>
#include <array>
#include <vector>

namespace plait::tuner {
namespace {

double timed_run(MpiSession& session, ReshardCall& call) {
  session.barrier();
  const double begin = session.wall_seconds();
  call.run();
  const std::array<double, 1> mine = {session.wall_seconds() - begin};
  return session.maxima(mine).front();
}

}  // namespace

Result<double> measure_reshard(MpiSession& session, const ReshardSpec& spec, double seconds) {
  Result<ReshardCall> call = ReshardCall::make(spec);
  if (!call.ok()) return call.status();
  call->spoil();
  const double first = timed_run(session, *call);
  const std::array<double, 1> wrong = {call->right() ? 0.0 : 1.0};
  if (session.maxima(wrong).front() > 0) return Status(Code::peer_failed, "a rank's part of the tensor arrived wrong");
  constexpr double least = 3, most = 101;
  const auto repetitions = static_cast<int>(std::clamp(first > 0 ? seconds / first : most, least, most));
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) times.push_back(timed_run(session, *call));
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

}  // namespace plait::tuner
