#include "runtime/call/timed_call.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "runtime/execution/execution.h"

namespace plait::runtime {
namespace {

// A call of the ranks' own, on data that is packed.
Status run_own(Team& team, const Call& call, const void* input, void* output, const Reducer* reducer) {
  const PreparedCall& prepared = team.schedules.find({.call = call, .candidate = planners_candidate});
  if (!prepared.accelerated) return {Code::internal, "trial: no plan to agree by"};
  const BoundSchedule& schedule = prepared.schedule;
  const Request request{.call = call, .input = {}, .output = {}, .reducer = reducer};
  Execution execution{.schedule = &schedule, .staging = {}};
  execution.staging.buffers.base = {static_cast<std::byte*>(const_cast<void*>(input)), static_cast<std::byte*>(output),
                                    schedule.scratch_bytes > 0 ? team.memory.reserve(schedule.scratch_bytes) : nullptr};
  const Status status = run(team, request, execution);
  return status.ok() ? status : team.reason_of(status);
}

}  // namespace

Status meet_for_timed_call(Team& team, const Trial& trial) {
  if (!trial.begins_sample()) return {};
  return run_own(team, meeting_call(), nullptr, nullptr, nullptr);
}

Status end_timed_call(Team& team, TrialClass& tried, std::uint64_t nanoseconds, std::size_t bytes) {
  Trial& trial = tried.trial;
  trial.note(nanoseconds, bytes);
  if (!trial.complete()) return {};
  static const Reducer longest = make_reducer(Op::max, Element::u64);
  const std::span<std::uint64_t> samples = trial.samples();
  std::array<std::uint64_t, Trial::most_samples> own{}, of_all{};
  std::ranges::copy(samples, own.begin());
  if (Status status = run_own(team, agreement_call(), own.data(), of_all.data(), &longest); !status.ok()) return status;
  std::copy_n(of_all.begin(), samples.size(), samples.begin());
  const bool was_open = trial.open();
  if (trial.conclude()) team.schedules.forget(tried);
  if (was_open) team.trials.note_concluded(tried);
  return {};
}

}  // namespace plait::runtime
