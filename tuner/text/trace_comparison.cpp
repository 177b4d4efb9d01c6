#include "tuner/text/trace_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

namespace plait::tuner {
namespace {

using Spans = std::vector<std::pair<double, double>>;

// The length of what any of them covers.
double covered(Spans spans) {
  std::sort(spans.begin(), spans.end());
  double length = 0, end = -HUGE_VAL;
  for (const auto& [from, to] : spans) {
    length += std::max(0.0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return length;
}

constexpr std::array places = {StepPlace::network, StepPlace::node, StepPlace::own};
constexpr std::size_t in_no_step = places.size();

// Seconds by place, then those in no step.
using ByPlace = std::array<double, places.size() + 1>;

ByPlace times_of(const std::array<Spans, places.size()>& spans, double whole) {
  ByPlace seconds{};
  Spans all;
  for (std::size_t place = 0; place < places.size(); ++place) {
    seconds[place] = covered(spans[place]);
    all.insert(all.end(), spans[place].begin(), spans[place].end());
  }
  seconds[in_no_step] = std::max(0.0, whole - covered(std::move(all)));
  return seconds;
}

ByPlace predicted_of(const PlanTimeline& timeline, std::size_t rank) {
  std::array<Spans, places.size()> spans;
  for (const TimelineStep& step : timeline.steps) {
    if (!step.takes_part[rank]) continue;
    const std::size_t place = timeline.network[static_cast<std::size_t>(step.level)] ? 0 : 1;
    for (int chunk = 0; chunk < timeline.chunks; ++chunk) {
      const double begin = step.begin + chunk * timeline.period;
      spans[place].emplace_back(begin, begin + step.seconds);
    }
  }
  return times_of(spans, timeline.seconds);
}

ByPlace measured_of(const MeasuredRank& rank) {
  std::array<Spans, places.size()> spans;
  for (const MeasuredStep& step : rank.steps)
    spans[static_cast<std::size_t>(place_of(step))].emplace_back(step.begin, step.end);
  return times_of(spans, rank.end - rank.begin);
}

std::vector<ComparedPart::Kind> kinds_of(const MeasuredCall& call, StepPlace place) {
  std::map<std::string, double> seconds;
  for (const MeasuredRank& rank : call.ranks) {
    std::map<std::string, Spans> spans;
    for (const MeasuredStep& step : rank.steps)
      if (place_of(step) == place) spans[step.kind].emplace_back(step.begin, step.end);
    for (auto& [kind, of_kind] : spans)
      seconds[kind] += covered(std::move(of_kind)) / static_cast<double>(call.ranks.size());
  }
  std::vector<ComparedPart::Kind> kinds;
  for (const auto& [kind, length] : seconds) kinds.push_back({kind, length});
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return kinds;
}

}  // namespace

TraceComparison compare(const PlanTimeline& timeline, const MeasuredCall& call) {
  ByPlace predicted{}, measured{};
  for (std::size_t rank = 0; rank < call.ranks.size(); ++rank) {
    const ByPlace of_plan = predicted_of(timeline, rank), of_run = measured_of(call.ranks[rank]);
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      predicted[i] += of_plan[i] / static_cast<double>(call.ranks.size());
      measured[i] += of_run[i] / static_cast<double>(call.ranks.size());
    }
  }
  TraceComparison comparison{timeline.seconds, call.seconds, {}, 0};
  double most = -1;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    if (predicted[i] == 0 && measured[i] == 0) continue;
    ComparedPart part{i == in_no_step ? "in no step" : std::string(text(places[i])), predicted[i], measured[i], {}};
    if (i != in_no_step) part.kinds = kinds_of(call, places[i]);
    if (std::abs(predicted[i] - measured[i]) > most) {
      most = std::abs(predicted[i] - measured[i]);
      comparison.most = comparison.parts.size();
    }
    comparison.parts.push_back(std::move(part));
  }
  return comparison;
}

}  // namespace plait::tuner
