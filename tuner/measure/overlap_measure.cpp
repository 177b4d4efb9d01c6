#include "tuner/measure/overlap_measure.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/units.h"
#include "plait/plait.h"
#include "tuner/measure/posted_reduction.h"

namespace plait::tuner {
namespace {

// Computation beside a reduction is to end shortly before it does, so that all of it is overlapped and little is left.
constexpr double wanted_part = 0.9;
constexpr double least_part = 0.7, most_part = 0.97;
constexpr int most_tries = 6;
// Of computation, in multiples of what a reduction takes alone: with less of a core than this it hardly moves.
constexpr double longest_part = 30;

struct Overlapped {
  double computation = 0;  // seconds
  double total = 0;        // of both
};

// Short times want more of them than were asked for. The same on all ranks, as the times are.
constexpr double least_seconds = 0.5;
constexpr std::size_t most_samples = 60;
bool enough(const std::vector<double>& times, int repeats) {
  const double sum = std::accumulate(times.begin(), times.end(), 0.);
  return times.size() >= static_cast<std::size_t>(repeats) && (sum >= least_seconds || times.size() >= most_samples);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Reductions of one size that are posted together, and run one after the other.
class Burst {
 public:
  static Result<Burst> make(std::size_t bytes, std::size_t reductions) {
    Burst burst;
    for (std::size_t i = 0; i < reductions; ++i) {
      auto reduction = PostedReduction::make(bytes);
      if (!reduction.ok()) return reduction.status();
      burst.reductions_.push_back(std::move(*reduction));
    }
    return burst;
  }
  void post() {
    for (PostedReduction& reduction : reductions_) reduction.post();
  }
  void wait() {
    for (PostedReduction& reduction : reductions_) reduction.wait();
  }
  bool right(int ranks) const {
    return std::ranges::all_of(reductions_, [ranks](const auto& reduction) { return reduction.right(ranks); });
  }

 private:
  std::vector<PostedReduction> reductions_;
};

class Sampler {
 public:
  Sampler(MpiSession& session, Burst reduction, ComputeKernel& kernel, int repeats)
      : session_(session), reduction_(std::move(reduction)), kernel_(kernel), repeats_(repeats) {}

  // Which must be called first: the call that sets up connections, and what tells whose reductions these are.
  Status begin();
  ContentionSample sample(const CommunicationShare& share, std::size_t bytes);
  const std::string& plan() const { return plan_; }
  Status check() const;

 private:
  double slowest(double seconds) { return session_.maxima(std::array{seconds})[0]; }
  double time_alone();
  double time_computation(std::size_t pieces);
  Overlapped time_both(std::size_t pieces);
  double overlapped_seconds(const Overlapped& both) const;

  MpiSession& session_;
  Burst reduction_;
  ComputeKernel& kernel_;
  const int repeats_;
  double alone_ = 0;  // seconds of the reduction with nothing beside it
  std::string plan_;
};

Status Sampler::begin() {
  plait_set_enabled(1);
  // What is not blocking runs on what a blocking call has set up.
  for (int call = 0; call < 3; ++call) {
    reduction_.post();
    plan_ = plait_last_plan();
    reduction_.wait();
    session_.barrier();
  }
  const bool ours = plan_ != "host" && !plan_.empty();
  if (session_.maxima(std::array{ours ? 0. : 1.})[0] > 0)
    return {Code::unsupported,
            "the reductions are the host's (PLAIT_REPORT=1 says why): no helper thread of Plait's moves them on"};
  return {};
}

Status Sampler::check() const {
  const bool wrong = session_.maxima(std::array{reduction_.right(session_.ranks()) ? 0. : 1.})[0] > 0;
  return wrong ? Status(Code::peer_failed, "a reduction had a wrong result") : Status();
}

double Sampler::time_alone() {
  session_.barrier();
  const double begin = session_.wall_seconds();
  reduction_.post();
  reduction_.wait();
  return slowest(session_.wall_seconds() - begin);
}

double Sampler::time_computation(std::size_t pieces) {
  session_.barrier();
  const double begin = session_.wall_seconds();
  kernel_.run(pieces);
  return slowest(session_.wall_seconds() - begin);
}

Overlapped Sampler::time_both(std::size_t pieces) {
  session_.barrier();
  const double begin = session_.wall_seconds();
  reduction_.post();
  kernel_.run(pieces);
  const double computed = session_.wall_seconds() - begin;
  reduction_.wait();
  const std::vector<double> times = session_.maxima(std::array{computed, session_.wall_seconds() - begin});
  return {times[0], times[1]};
}

// Of the reduction, were there computation beside all of it: the rest, which ran alone, was the share rest / alone of
// it (eq. 10 and 11, the other way round).
double Sampler::overlapped_seconds(const Overlapped& both) const {
  const double rest = std::min((both.total - both.computation) / alone_, 0.999);
  return both.computation / (1 - rest);
}

ContentionSample Sampler::sample(const CommunicationShare& share, std::size_t bytes) {
  std::vector<double> alone;
  time_alone();
  while (!enough(alone, repeats_)) alone.push_back(time_alone());
  alone_ = median(alone);
  const std::size_t probe = 2000;
  time_computation(probe / 10);
  const double piece = time_computation(probe) / probe;
  const auto pieces_in = [&](double seconds) {
    return std::max<std::size_t>(1, static_cast<std::size_t>(seconds / piece));
  };
  // How much computation there is room for beside the reduction.
  std::size_t pieces = pieces_in(alone_);
  for (int tries = 0; tries < most_tries; ++tries) {
    time_alone();
    const Overlapped both = time_both(pieces);
    const double part = both.computation / overlapped_seconds(both);
    const bool ended_before = both.total - both.computation < 0.02 * alone_;
    if (!ended_before && part >= least_part && part <= most_part) break;
    const double factor = ended_before ? 0.75 : std::min(wanted_part / part, 4.);
    pieces = std::clamp(static_cast<std::size_t>(static_cast<double>(pieces) * factor), std::size_t{1},
                        pieces_in(longest_part * alone_));
  }
  std::vector<double> computation, beside, overlapped;
  while (!enough(beside, repeats_)) {
    computation.push_back(time_computation(pieces));
    // A network that was idle lends some bytes, which reductions one after the other do not get.
    time_alone();
    const Overlapped both = time_both(pieces);
    beside.push_back(both.computation);
    overlapped.push_back(overlapped_seconds(both));
  }
  return {share, bytes, median(computation), median(beside), median(overlapped), alone_};
}

// On all ranks or none.
Result<Sampler> make_sampler(MpiSession& session, ComputeKernel& kernel, std::size_t bytes, std::size_t reductions,
                             int repeats) {
  auto burst = Burst::make(bytes, reductions);
  if (session.maxima(std::array{burst.ok() ? 0. : 1.})[0] > 0)
    return burst.ok() ? Status(Code::unavailable, "no memory on another rank") : burst.status();
  Sampler sampler(session, std::move(*burst), kernel, repeats);
  if (const Status ready = sampler.begin(); !ready.ok()) return ready;
  return sampler;
}

void use_share(const CommunicationShare& share) {
  plait_set_progress_threads(share.threads);
  plait_set_progress_duty(std::max(1, static_cast<int>(std::lround(100 * share.duty))));
}

// Threads that find no processing unit of their own have another share than is asked for.
Status check_units(MpiSession& session, std::span<const CommunicationShare> shares) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int units = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  const int fewest = static_cast<int>(-session.maxima(std::array{-1. * units})[0]);
  for (const CommunicationShare& share : shares)
    if (share.threads > fewest)
      return {Code::invalid, "--shares: " + share_text(share) + ": expected at most " + std::to_string(fewest) +
                                 (fewest == 1 ? " thread" : " threads") +
                                 ", as a rank here may use so many processing units"};
  return {};
}

// Of two numbers, with computation beside it; 0: those of such a length are the host's, or it cannot be told.
double measure_agreement(MpiSession& session, ComputeKernel& kernel, const CommunicationShare& share, int repeats) {
  constexpr std::size_t bytes = 16, reductions = 64;
  auto sampler = make_sampler(session, kernel, bytes, reductions, repeats);
  if (!sampler.ok()) return 0;
  use_share(share);
  const double seconds = sampler->sample(share, bytes).overlapped / reductions;
  return sampler->check().ok() && std::isfinite(seconds) && seconds > 0 ? seconds : 0;
}

}  // namespace

Result<OverlapSamples> sample_overlap(MpiSession& session, std::span<const CommunicationShare> shares,
                                      std::span<const std::size_t> sizes, const OverlapSampling& sampling) {
  OverlapSamples result;
  if (const Status units = check_units(session, shares); !units.ok()) return units;
  ComputeKernel kernel(sampling.kernel);
  double done = 0;
  const double steps = static_cast<double>(shares.size() * sizes.size());
  for (const std::size_t bytes : sizes) {
    auto sampler = make_sampler(session, kernel, bytes, 1, sampling.repeats);
    if (!sampler.ok()) return sampler.status();
    result.plans.push_back(sampler->plan());
    for (const CommunicationShare& share : shares) {
      if (session.rank() == 0) sampling.progress(format_bytes(bytes) + ", share " + share_text(share), done++ / steps);
      use_share(share);
      result.samples.push_back(sampler->sample(share, bytes));
      if (const Status checked = sampler->check(); !checked.ok()) return checked;
    }
  }
  const auto less = [](const auto& one, const auto& other) { return resources(one) < resources(other); };
  result.agreement = measure_agreement(session, kernel, *std::ranges::max_element(shares, less), sampling.repeats);
  plait_set_enabled(0);
  return result;
}

}  // namespace plait::tuner
