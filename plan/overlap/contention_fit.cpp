#include "plan/overlap/contention_fit.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <unsupported/Eigen/NonLinearOptimization>
#include <unsupported/Eigen/NumericalDiff>

namespace plait::plan {
namespace {

// What is fitted: value(r) from parameters, against points.
struct Point {
  double r = 0;
  double value = 0;  // slowdown, or rate
};
using Parameters = Eigen::VectorXd;
using Curve = std::function<double(const Parameters& parameters, double r)>;

// A time is inverse to the rate, so that the relative error of a time is measured / fitted - 1.
struct Residuals {
  using Scalar = double;
  using InputType = Eigen::VectorXd;
  using ValueType = Eigen::VectorXd;
  using JacobianType = Eigen::MatrixXd;
  enum { InputsAtCompileTime = Eigen::Dynamic, ValuesAtCompileTime = Eigen::Dynamic };

  const std::vector<Point>& points;
  const Curve& curve;
  Eigen::Index parameters;

  Eigen::Index inputs() const { return parameters; }
  // Levenberg and Marquardt want as many residuals as parameters: the missing ones are 0.
  Eigen::Index values() const { return std::max<Eigen::Index>(static_cast<Eigen::Index>(points.size()), parameters); }
  int operator()(const InputType& at, ValueType& residuals) const {
    residuals.setZero();
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double fitted = curve(at, points[i].r);
      // Where a curve has no positive value it is as wrong as can be, and the slope leads back.
      const double ratio = fitted > 1e-9 * points[i].value ? points[i].value / fitted : 1e9;
      residuals[static_cast<Eigen::Index>(i)] = std::min(ratio, 1e9) - 1;
    }
    return 0;
  }
};

struct Fitted {
  Parameters parameters;
  double squares = std::numeric_limits<double>::infinity();
};

Fitted fit_from(const std::vector<Point>& points, const Curve& curve, Parameters begin) {
  const Residuals residuals{points, curve, begin.size()};
  Eigen::NumericalDiff<Residuals, Eigen::Central> differentiated(residuals);
  Eigen::LevenbergMarquardt<Eigen::NumericalDiff<Residuals, Eigen::Central>> method(differentiated);
  method.parameters.maxfev = 2000;
  method.minimize(begin);
  Eigen::VectorXd left(residuals.values());
  residuals(begin, left);
  if (!begin.allFinite() || !left.allFinite()) return {};
  return {begin, left.squaredNorm()};
}

double mean_error(const std::vector<Point>& points, const std::function<double(double)>& fitted) {
  double sum = 0;
  for (const Point& point : points) sum += std::abs(point.value / fitted(point.r) - 1);
  return sum / static_cast<double>(points.size());
}

std::size_t different_shares(const std::vector<Point>& points) {
  std::vector<double> seen;
  for (const Point& point : points)
    if (std::find(seen.begin(), seen.end(), point.r) == seen.end()) seen.push_back(point.r);
  return seen.size();
}

// The curve is that of 1 / slowdown, and what is to be right is the slowdown.
SlowdownCurve fit_slowdown(const std::vector<Point>& points) {
  const Curve curve = [](const Parameters& at, double r) { return 1 / std::max(at[0] - at[1] * r, 1e-9); };
  const Parameters begin = Eigen::Vector2d(1, 0.01);
  const Curve constant = [](const Parameters& at, double) { return 1 / std::max(at[0], 1e-9); };
  const bool sloped = different_shares(points) > 1;
  const Fitted fitted = fit_from(points, sloped ? curve : constant, sloped ? begin : Parameters(begin.head(1)));
  SlowdownCurve result{.a1 = fitted.parameters[0], .a2 = sloped ? fitted.parameters[1] : 0};
  result.error = mean_error(points, [&](double r) { return 1 / (result.a1 - result.a2 * r); });
  return result;
}

double rate_at(const RateCurve& curve, double r) {
  return curve.g1 - curve.g2 * std::exp(-curve.g3 * std::pow(r, curve.g4));
}

// The parameters that are free, of log g1, g2 / g1, log g3 and log g4: g1, g3 and g4 are positive.
RateCurve curve_of(const Parameters& at, const RateCurve& given) {
  RateCurve curve = given;
  curve.g1 = std::exp(at[0]);
  if (at.size() > 1) curve.g2 = at[1] * curve.g1;
  if (at.size() > 2) curve.g3 = std::exp(at[2]);
  if (at.size() > 3) curve.g4 = std::exp(at[3]);
  return curve;
}

RateCurve fit_rate(const std::vector<Point>& points, const FitOptions& options) {
  const auto by_value = [](const Point& one, const Point& other) { return one.value < other.value; };
  const auto [least, most] = std::minmax_element(points.begin(), points.end(), by_value);
  double middle = 0;
  for (const Point& point : points) middle += point.r / static_cast<double>(points.size());
  const std::size_t wanted = options.g4 ? 3 : 4;
  const auto free = static_cast<Eigen::Index>(std::min(wanted, different_shares(points)));
  RateCurve best, given;
  given.g4 = options.g4.value_or(0.6);
  double squares = std::numeric_limits<double>::infinity();
  for (const double steepness : {0.1, 0.3, 1., 3., 10.}) {
    given.g2 = 0;
    given.g3 = steepness / std::pow(middle, given.g4);
    const Curve curve = [&](const Parameters& at, double r) { return rate_at(curve_of(at, given), r); };
    const Parameters begin = Eigen::Vector4d(std::log(1.05 * most->value), 1 - least->value / (1.05 * most->value),
                                             std::log(given.g3), std::log(given.g4))
                                 .head(free);
    const Fitted fitted = fit_from(points, curve, begin);
    if (fitted.squares >= squares) continue;
    squares = fitted.squares;
    best = curve_of(fitted.parameters, given);
  }
  best.error = mean_error(points, [&](double r) { return rate_at(best, r); });
  return best;
}

struct Points {
  std::vector<Point> slowdowns, overlapped, alone;
};

Result<Points> points_of(const std::vector<ContentionSample>& samples, const ReductionCosts& costs) {
  if (samples.empty()) return {Code::invalid, "expected samples to fit curves to"};
  Points points;
  for (const ContentionSample& sample : samples) {
    const double r = resources(sample.share);
    const ReductionCost cost = costs(static_cast<double>(sample.bytes));
    if (sample.overlapped <= cost.startup || sample.alone <= cost.startup || cost.moved <= 0)
      return {Code::invalid, "a sample of " + std::to_string(sample.bytes) +
                                 " bytes took no longer than its start-up alone: expected larger reductions"};
    points.slowdowns.push_back({r, sample.overlapped_computation / sample.computation});
    points.overlapped.push_back({r, cost.moved / (sample.overlapped - cost.startup)});
    points.alone.push_back({r, cost.moved / (sample.alone - cost.startup)});
  }
  return points;
}

// Of a share's points: the harmonic mean of the rates, which is that of the times.
double mean_at(const std::vector<Point>& points, double r, bool rates) {
  double sum = 0, count = 0;
  for (const Point& point : points) {
    if (point.r != r) continue;
    sum += rates ? 1 / point.value : point.value;
    ++count;
  }
  return rates ? count / sum : sum / count;
}

}  // namespace

Result<ContentionFit> fit_contention(const std::vector<ContentionSample>& samples, const ReductionCosts& costs,
                                     const FitOptions& options) {
  const Result<Points> points = points_of(samples, costs);
  if (!points.ok()) return points.status();
  return ContentionFit{fit_slowdown(points->slowdowns), fit_rate(points->overlapped, options),
                       fit_rate(points->alone, options)};
}

Result<std::vector<ContentionRow>> measured_table(const std::vector<ContentionSample>& samples,
                                                  const ReductionCosts& costs) {
  const Result<Points> points = points_of(samples, costs);
  if (!points.ok()) return points.status();
  std::vector<ContentionRow> rows;
  for (const ContentionSample& sample : samples) {
    const auto same = [&](const ContentionRow& row) { return row.share == sample.share; };
    if (std::any_of(rows.begin(), rows.end(), same)) continue;
    const double r = resources(sample.share);
    rows.push_back({sample.share, mean_at(points->slowdowns, r, false), mean_at(points->overlapped, r, true),
                    mean_at(points->alone, r, true)});
  }
  return rows;
}

}  // namespace plait::plan
