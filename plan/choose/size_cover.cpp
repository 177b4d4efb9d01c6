#include "plan/choose/size_cover.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace plait::plan {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// Lexicographic: first the ranges, then what they are slower than the best.
struct Price {
  std::size_t ranges = 0;
  double excess = 0;
  bool operator<(const Price& other) const {
    return ranges != other.ranges ? ranges < other.ranges : excess < other.excess;
  }
};

// The cheapest way to cover all points before `end`, which ends with a range of this plan.
struct Step {
  Price price;
  CoveredRange last;
};

// Of one plan while the points go by: where a range that reaches the present point had best begin.
struct Running {
  bool open = false;
  std::size_t first = 0;
  Price before;  // of what lies before the range, less the plan's own excess up to there
  double excess = 0;
};

std::vector<double> least_times(const std::vector<std::vector<double>>& times) {
  std::vector<double> least(times.empty() ? 0 : times.front().size(), never);
  for (const auto& plan : times)
    for (std::size_t point = 0; point < least.size(); ++point) least[point] = std::min(least[point], plan[point]);
  return least;
}

// A machine may have no cost at all.
double ratio(double time, double least) { return time == least ? 1 : time / least; }

void advance(Running& plan, double slower, double tolerance, std::size_t point, const Price& before) {
  // An excess of the last bit must not decide about a range.
  constexpr double rounding = 1e-9;
  if (!(slower <= 1 + tolerance + rounding)) {
    plan = {};
    return;
  }
  const Price fresh{before.ranges, before.excess - plan.excess};
  if (!plan.open || fresh < plan.before) {
    plan.open = true;
    plan.first = point;
    plan.before = fresh;
  }
  plan.excess += slower - 1;
}

}  // namespace

std::vector<CoveredRange> cover_sizes(const std::vector<std::vector<double>>& times, double tolerance) {
  const std::vector<double> least = least_times(times);
  std::vector<Step> steps(least.size() + 1);  // by the number of points covered
  std::vector<Running> running(times.size());
  for (std::size_t point = 0; point < least.size(); ++point) {
    assert(least[point] < never);
    Step& step = steps[point + 1];
    step.price = {std::numeric_limits<std::size_t>::max(), never};
    for (std::size_t plan = 0; plan < times.size(); ++plan) {
      advance(running[plan], ratio(times[plan][point], least[point]), tolerance, point, steps[point].price);
      if (!running[plan].open) continue;
      const Price price{running[plan].before.ranges + 1, running[plan].before.excess + running[plan].excess};
      if (price < step.price) step = {price, {running[plan].first, point + 1, plan}};
    }
  }
  std::vector<CoveredRange> ranges;
  for (std::size_t end = least.size(); end > 0; end = ranges.back().first) ranges.push_back(steps[end].last);
  std::reverse(ranges.begin(), ranges.end());
  return ranges;
}

}  // namespace plait::plan
