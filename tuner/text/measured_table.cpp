#include "tuner/text/measured_table.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>

#include "plan/choose/size_cover.h"

namespace plait::tuner {
namespace {

constexpr std::size_t stands_for_smaller = 8;  // bytes
constexpr std::size_t few = 3;

const PlanTime& fastest(std::span<const PlanTime> plans) {
  assert(!plans.empty());
  return *std::min_element(plans.begin(), plans.end(),
                           [](const PlanTime& a, const PlanTime& b) { return a.seconds < b.seconds; });
}

std::size_t between(std::size_t low, std::size_t high) {
  return static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(low) * static_cast<double>(high))));
}

double known(double seconds) { return std::isfinite(seconds) ? seconds : 0; }

// Of all plans and the host, at all sizes.
std::map<std::string, std::vector<double>> curves_of(std::span<const MeasuredSize> sizes) {
  const std::vector<double> none(sizes.size(), std::numeric_limits<double>::infinity());
  std::map<std::string, std::vector<double>> curves;
  for (std::size_t point = 0; point < sizes.size(); ++point) {
    for (const PlanTime& time : sizes[point].plans)
      curves.try_emplace(time.plan, none).first->second[point] = time.seconds;
    curves.try_emplace(std::string(host_plan), none).first->second[point] = sizes[point].host_seconds;
  }
  return curves;
}

}  // namespace

const PlanTime& MeasuredSize::best_plan() const { return fastest(plans); }

const PlanTime& MeasuredSize::model_best() const { return fastest(std::span(plans).first(of_model)); }

std::vector<TunedRange> measured_ranges(std::span<const MeasuredSize> sizes, SizeSpan span) {
  std::vector<TunedRange> ranges;
  if (sizes.empty()) return ranges;
  std::vector<std::string> names;
  std::vector<std::vector<double>> times;
  for (auto& [name, curve] : curves_of(sizes)) {
    names.push_back(name);
    times.push_back(curve);
  }
  const bool sized = sizes.front().bytes > 0;
  std::size_t from = !sized ? 0 : span.least <= stands_for_smaller ? 1 : sizes.front().bytes;
  for (const CoveredRange& range : cover_sizes(times, measured_tolerance)) {
    const std::size_t last = range.end - 1;
    const std::size_t to =
        range.end < sizes.size() ? between(sizes[last].bytes, sizes[range.end].bytes) + 1 : sizes[last].bytes + 1;
    ranges.push_back({.from = from,
                      .to = to,
                      .plan = names[range.plan],
                      .seconds_from = times[range.plan][range.first],
                      .seconds_to = times[range.plan][last],
                      .host_seconds_from = known(sizes[range.first].host_seconds),
                      .host_seconds_to = known(sizes[last].host_seconds)});
    from = to;
  }
  return ranges;
}

namespace {

// Of those, 19 of 20 are no more than this; 1: there are none.
double percentile_95(std::vector<double> losses) {
  if (losses.empty()) return 1;
  const auto place = losses.begin() + static_cast<std::ptrdiff_t>((losses.size() * 19 + 19) / 20 - 1);
  std::ranges::nth_element(losses, place);
  return *place;
}

}  // namespace

ModelScore score_model(std::span<const MeasuredSize> sizes) {
  ModelScore score;
  double logarithms = 0;
  std::vector<double> losses;
  for (const MeasuredSize& size : sizes) {
    const std::span<const PlanTime> model = std::span(size.plans).first(size.of_model);
    if (model.empty() || !std::isfinite(fastest(model).seconds)) continue;
    const double best = fastest(model).seconds;
    const double loss = model.front().seconds / best;
    const double loss_of_three = fastest(model.first(std::min(few, model.size()))).seconds / best;
    ++score.sizes;
    score.first += loss <= 1 ? 1 : 0;
    score.first_nearly += loss <= 1 + measured_tolerance ? 1 : 0;
    score.three += loss_of_three <= 1 ? 1 : 0;
    score.three_nearly += loss_of_three <= 1 + measured_tolerance ? 1 : 0;
    score.host += size.host_seconds < size.best_plan().seconds ? 1 : 0;
    losses.push_back(loss);
    if (std::isfinite(loss)) logarithms += std::log(loss);
    if (std::isfinite(loss) && loss > score.worst_loss) {
      score.worst_loss = loss;
      score.worst = &size;
    }
  }
  if (score.sizes > 0) score.mean_loss = std::exp(logarithms / score.sizes);
  score.usual_worst_loss = percentile_95(std::move(losses));
  return score;
}

}  // namespace plait::tuner
