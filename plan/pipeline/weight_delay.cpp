#include "plan/pipeline/weight_delay.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace plait::plan {
namespace {

constexpr int largest_polished = 1024;  // stages times micro-batches
constexpr int most_slope_quarters = 12, most_offset = 2;

class DelaySearch {
 public:
  DelaySearch(const PipelineRequest& request, const PipelineCosts& costs) : request_(request), costs_(costs) {}

  Result<std::vector<int>> run() {
    if (Status status = try_slopes(); !status.ok()) return status;
    if (request_.stages * request_.micro_batches <= largest_polished) {
      improve();
      economize();
    }
    return best_;
  }

 private:
  Result<double> seconds(const std::vector<int>& delays) const {
    PipelineRequest request = request_;
    request.weight_delays = delays;
    const auto schedule = pipeline_schedule(request);
    if (!schedule.ok()) return schedule.status();
    const auto run = simulate_pipeline(*schedule, costs_);
    if (!run.ok()) return run.status();
    return run->seconds;
  }

  // Gradients need longer to reach the first stage from a later one: so much later may the weights be done there.
  std::vector<int> sloped(int offset, int quarters) const {
    std::vector<int> delays;
    for (int stage = 0; stage < request_.stages; ++stage)
      delays.push_back(std::min((stage == 0 ? 0 : offset) + (quarters * stage + 2) / 4, request_.micro_batches));
    return delays;
  }

  Status try_slopes() {
    for (int quarters = 0; quarters <= most_slope_quarters; ++quarters)
      for (int offset = 0; offset <= most_offset; ++offset) {
        std::vector<int> delays = sloped(offset, quarters);
        const auto takes = seconds(delays);
        if (!takes.ok()) return takes.status();
        consider(std::move(delays), *takes);
      }
    return {};
  }

  static int sum(const std::vector<int>& delays) { return std::accumulate(delays.begin(), delays.end(), 0); }

  void consider(std::vector<int> delays, double takes) {
    if (!best_.empty() && std::pair(takes, sum(delays)) >= std::pair(best_seconds_, sum(best_))) return;
    best_ = std::move(delays);
    best_seconds_ = takes;
  }

  // One micro-batch more or less on one stage, for as long as that is faster.
  void improve() {
    for (double before = best_seconds_ + 1; best_seconds_ < before;) {
      before = best_seconds_;
      for (std::size_t stage = 0; stage < best_.size(); ++stage)
        for (const int step : {-1, 1}) {
          std::vector<int> delays = best_;
          delays[stage] += step;
          if (delays[stage] < 0 || delays[stage] > request_.micro_batches) continue;
          if (const auto takes = seconds(delays); takes.ok()) consider(std::move(delays), *takes);
        }
    }
  }

  // Takes away what is not needed: a micro-batch on all stages from one on, or on one alone.
  void economize() {
    const double most = best_seconds_ * (1 + delay_tolerance);
    const auto last = best_.size() - 1;
    for (bool changed = true; std::exchange(changed, false);)
      for (std::size_t first = 0; first <= last; ++first)
        changed = take_away(first, last, most) || take_away(first, first, most) || changed;
  }

  bool take_away(std::size_t first, std::size_t last, double most) {
    std::vector<int> delays = best_;
    for (std::size_t stage = first; stage <= last; ++stage) delays[stage] = std::max(0, delays[stage] - 1);
    if (delays == best_) return false;
    const auto takes = seconds(delays);
    if (!takes.ok() || *takes > most) return false;
    best_ = std::move(delays);
    return true;
  }

  const PipelineRequest& request_;
  const PipelineCosts& costs_;
  std::vector<int> best_;
  double best_seconds_ = 0;
};

}  // namespace

Result<std::vector<int>> least_weight_delays(const PipelineRequest& request, const PipelineCosts& costs) {
  PipelineRequest checked = request;
  checked.weight_delays.clear();
  if (const auto schedule = pipeline_schedule(checked); !schedule.ok()) return schedule.status();
  return DelaySearch(checked, costs).run();
}

}  // namespace plait::plan
