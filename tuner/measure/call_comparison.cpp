#include "tuner/measure/call_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "core/units.h"
#include "plait/plait.h"
#include "tuner/measure/group_calls.h"

namespace plait::tuner {
namespace {

constexpr double shortest_batch_s = 0.005, longest_batch_s = 0.1;
constexpr double trial_batch_s = 0.002;  // enough to tell how long a call takes
// Short calls may seem slow because something else had the core, and to measure them again costs little.
constexpr double shortest_hopeless_s = 0.005;
constexpr int fewest_batches = 3, most_batches = 1000;
constexpr int batches_wanted = 10;  // of each side
// A rank that need not wait for the others, such as the root of a broadcast, may run this far ahead of them: what it
// has sent lies in the receivers' memory.
constexpr int most_calls = 100000, most_calls_ahead = 1000;
// Network interfaces may lend some hundred KiB after an idle time (a token bucket): twice that is sent before the clock
// starts.
constexpr double settling_bytes = 512 * 1024;
// Small calls never use up what is lent, because they do not fill the network: no use in waiting for it.
constexpr int most_untimed_beyond_a_batch = 8;

struct BatchSize {
  int untimed = 1, timed = 0;  // calls; none are timed of a side that is not measured
};

struct BatchTime {
  double per_call_s, total_s;  // of the slowest rank; the total includes the untimed calls
  bool on_trial;               // some of the calls were timed to find the fastest way
};

// Of the batches of one side.
struct Found {
  std::vector<double> all, settled;  // seconds a call; those without a call on trial
};

struct Wrong {
  std::size_t rank = 0;
  std::uint64_t offset = std::numeric_limits<std::uint64_t>::max();
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Of each round: the median over the sides that were measured.
std::vector<double> levels_of(const std::vector<Found>& found) {
  std::vector<double> levels;
  for (bool more = true; more;) {
    std::vector<double> round;
    for (const Found& side : found)
      if (levels.size() < side.all.size()) round.push_back(side.all[levels.size()]);
    more = !round.empty();
    if (more) levels.push_back(median(std::move(round)));
  }
  return levels;
}

double paired_median(const std::vector<double>& times, const std::vector<double>& levels) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < times.size(); ++round) ratios.push_back(times[round] / levels[round]);
  return median(std::move(ratios)) * median(levels);
}

class Comparison {
 public:
  Comparison(MpiSession& session, const CallSpec& spec, CollectiveCall& call, std::span<const Side> sides,
             const CompareOptions& options)
      : session_(session), spec_(spec), call_(call), options_(options), sides_(sides), times_(sides.size()) {}

  Result<std::vector<SideTime>> run() {
    std::vector<BatchSize> sizes;
    for (std::size_t side = 0; side < sides_.size(); ++side) {
      const auto size = calibrate(side);
      if (!size.ok()) return size.status();
      sizes.push_back(*size);
    }
    drop_hopeless(sizes);
    Status measured = measure(sizes);
    if (!measured.ok()) return measured;
    if (!forced_.empty()) take_plan_everywhere("");
    return std::move(times_);
  }

 private:
  Status measure(const std::vector<BatchSize>& sizes) {
    std::vector<Found> found(sides_.size());
    double spent_s = 0;
    for (int round = 0; round < fewest_batches || (spent_s < options_.seconds && round < most_batches); ++round) {
      for (std::size_t side = 0; side < sides_.size(); ++side) {
        if (sizes[side].timed == 0) continue;
        const auto time = batch(side, sizes[side]);
        if (!time.ok()) return time.status();
        found[side].all.push_back(time->per_call_s);
        if (!time->on_trial) found[side].settled.push_back(time->per_call_s);
        spent_s += time->total_s;  // agreed, so that all ranks stop together
      }
    }
    const std::vector<double> levels = options_.paired ? levels_of(found) : std::vector<double>();
    for (std::size_t side = 0; side < sides_.size(); ++side)
      if (!found[side].all.empty()) take(std::move(found[side]), levels, times_[side]);
    return {};
  }

  // No median of two ways: while calls are tried in turn, what they take says little of those that follow.
  void take(Found found, const std::vector<double>& levels, SideTime& time) const {
    time.batches = static_cast<int>(found.all.size());
    if (options_.paired) {
      time.seconds = paired_median(found.all, levels);
      return;
    }
    time.on_trial = found.settled.size() < fewest_batches;
    time.seconds = median(std::move(time.on_trial ? found.all : found.settled));
  }

  void drop_hopeless(std::vector<BatchSize>& sizes) const {
    double best = std::numeric_limits<double>::infinity();
    for (const SideTime& time : times_) best = std::min(best, time.seconds);
    for (std::size_t side = 0; side < sizes.size(); ++side) {
      const double seconds = times_[side].seconds;
      if (options_.hopeless > 0 && seconds > options_.hopeless * best && seconds > shortest_hopeless_s)
        sizes[side].timed = 0;
    }
  }

  bool take_plan_everywhere(const std::string& plan) {
    plait_set_enabled(1);
    const bool taken = take_plan_of_job(plan).ok();
    plait_set_enabled(0);
    if (taken) forced_ = plan;
    return taken;
  }

  // Runs calls back to back. The first of them are not timed: they fill pipelines, warm caches and use up what an idle
  // network lends. Ranks start their clocks without waiting for each other, in the middle of the stream.
  Result<BatchTime> batch(std::size_t side, BatchSize size) {
    const double taking_s = -session_.wall_seconds();
    if (!sides_[side].plan.empty() && forced_ != sides_[side].plan && !take_plan_everywhere(sides_[side].plan))
      return Status(Code::unavailable, "plan " + sides_[side].plan + " could be taken before, and now cannot");
    const double taken_s = taking_s + session_.wall_seconds();
    call_.prepare(++key_);
    session_.barrier();
    plait_set_enabled(sides_[side].accelerated ? 1 : 0);
    const unsigned long tried = plait_trial_calls();
    const double start_s = session_.wall_seconds();
    for (int call = 0; call < size.untimed; ++call) call_.run();
    const double begin_s = session_.wall_seconds();
    for (int call = 0; call < size.timed; ++call) call_.run();
    const double end_s = session_.wall_seconds();
    if (sides_[side].accelerated) note_last_call(times_[side]);
    plait_set_enabled(0);

    const auto wrong = call_.first_wrong_byte();
    const std::array mine = {end_s - begin_s, end_s - start_s, taken_s, wrong ? 1.0 : 0.0,
                             plait_trial_calls() != tried ? 1.0 : 0.0};
    const auto slowest = session_.maxima(mine);
    if (slowest[3] > 0) return wrong_result(side, wrong);
    const double per_call_s = counts_all_calls() ? slowest[1] / (size.untimed + size.timed) : slowest[0] / size.timed;
    return BatchTime{.per_call_s = per_call_s, .total_s = slowest[1] + slowest[2], .on_trial = slowest[4] > 0};
  }

  // Where ranks need not wait for each other, what a rank waits for may have come before it starts its clock: with one
  // or two long calls a batch, nothing is left to time.
  bool counts_all_calls() const { return options_.paired && rooted(spec_.collective); }

  static void note_last_call(SideTime& time) {
    time.plan = plait_last_plan();
    time.channels = plait_last_channels();
  }

  Status wrong_result(std::size_t side, std::optional<std::size_t> offset) {
    const std::uint64_t mine = offset.value_or(Wrong{}.offset);
    const auto bytes = session_.gather_bytes(std::as_bytes(std::span(&mine, 1)));
    Wrong first;
    for (std::size_t rank = 0; rank * sizeof mine < bytes.size(); ++rank) {
      std::uint64_t found = 0;
      std::memcpy(&found, bytes.data() + rank * sizeof found, sizeof found);
      if (first.offset == Wrong{}.offset && found != first.offset) first = {rank, found};
    }
    const std::string by = sides_[side].accelerated ? "Plait (plan " + times_[side].plan + ")" : "the host";
    return {Code::peer_failed, "wrong result of " + std::string(name(spec_.collective)) + " of " +
                                   format_bytes(spec_.bytes) + " by " + by + ": on rank " + std::to_string(first.rank) +
                                   " from byte " + std::to_string(first.offset) + " on"};
  }

  // Whether the side's plan ran on every rank, after a batch.
  bool ran_as_wanted(std::size_t side) {
    const std::string& wanted = sides_[side].plan;
    const std::array other = {wanted.empty() || times_[side].plan == name_when_run(wanted) ? 0.0 : 1.0};
    return session_.maxima(other)[0] == 0;
  }

  // The number of calls for a batch of the wanted length. The first calls, in which Plait may plan, are not timed.
  Result<BatchSize> calibrate(std::size_t side) {
    if (!sides_[side].plan.empty() && !take_plan_everywhere(sides_[side].plan)) return BatchSize{};
    const int most = rooted(spec_.collective) ? most_calls_ahead : most_calls;
    const double share_s = options_.seconds / static_cast<double>(sides_.size());
    const double wanted_s = std::clamp(share_s / batches_wanted, shortest_batch_s, longest_batch_s);
    if (const auto first = batch(side, {.untimed = 1, .timed = 1}); !first.ok()) return first.status();
    if (!ran_as_wanted(side)) return BatchSize{};
    for (int calls = 1;; calls = std::min(calls * 4, most)) {
      const auto time = batch(side, {.untimed = 1, .timed = calls});
      if (!time.ok()) return time.status();
      if (time->per_call_s * calls < trial_batch_s && calls < most) continue;
      times_[side].seconds = time->per_call_s;
      const double fitting = std::clamp(wanted_s / time->per_call_s, 1.0, static_cast<double>(most));
      const int timed = static_cast<int>(std::lround(fitting));
      return BatchSize{.untimed = untimed_calls(timed), .timed = timed};
    }
  }

  int untimed_calls(int timed) const {
    const int quarter = std::max(1, timed / 4);
    if (options_.nic_bytes <= 0) return quarter;
    const double settling = std::ceil(settling_bytes / options_.nic_bytes);
    const int most = std::max(timed, most_untimed_beyond_a_batch);
    return static_cast<int>(std::clamp(settling, static_cast<double>(quarter), static_cast<double>(most)));
  }

  MpiSession& session_;
  const CallSpec spec_;
  CollectiveCall& call_;
  const CompareOptions options_;
  const std::span<const Side> sides_;
  std::vector<SideTime> times_;
  std::string forced_;  // the plan that Plait has to take now
  std::uint64_t key_ = 0;
};

}  // namespace

Result<std::vector<SideTime>> compare(MpiSession& session, const CallSpec& spec, std::span<const Side> sides,
                                      const CompareOptions& options) {
  plait_set_enabled(1);  // so that MPI_Alloc_mem gives what a program gets
  auto call = CollectiveCall::make(spec, session.rank(), session.ranks());
  plait_set_enabled(0);
  const std::array failed = {call.ok() ? 0.0 : 1.0};
  if (session.maxima(failed)[0] > 0) {
    return {Code::unavailable,
            "no memory on some rank for " + std::string(name(spec.collective)) + " of " + format_bytes(spec.bytes)};
  }
  return Comparison(session, spec, *call, sides, options).run();
}

std::string name_when_run(std::string plan) {
  constexpr std::string_view one_chunk = " x1";
  if (plan.ends_with(one_chunk)) plan.resize(plan.size() - one_chunk.size());
  return plan;
}

}  // namespace plait::tuner
