#include "runtime/trial/belief.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace plait::runtime {
namespace {

constexpr double steps = Belief::steps_an_octave;
constexpr double step_ratio = 1.0442737824274138403;  // 2^(1/16)

// Base 2, of ratios that are within or near the grid: between two steps it is taken for a line, which is off by less
// than a thousandth.
double octaves_of(double ratio) {
  constexpr double most = 64;
  double octaves = 0;
  for (; ratio >= 2 && octaves < most; ratio /= 2) ++octaves;
  for (; ratio < 1 && octaves > -most; ratio *= 2) --octaves;
  double step = 1, found = 0;
  for (; step * step_ratio <= ratio && found < steps - 1; step *= step_ratio) ++found;
  return octaves + (found + std::clamp((ratio - step) / (step * (step_ratio - 1)), 0.0, 1.0)) / steps;
}

double square(double value) { return value * value; }

// Student's distribution, but for a factor: of 15 degrees of freedom, nearly a normal one, and of 3.
double thin_tailed(double distance, double spread) {
  return 1 / square(square(square(1 + square(distance / spread) / 15)));
}
double fat_tailed(double distance, double spread) { return 1 / square(1 + square(distance / spread) / 3); }

template <std::size_t N>
void make_sum_one(std::array<double, N>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  for (double& value : values) value /= sum;
}

}  // namespace

const std::array<double, Belief::points>& Belief::ratios() {
  static constexpr std::array<double, points> all = [] {
    std::array<double, points> values{};
    for (int octave = 0; octave < octaves; ++octave) {
      double value = 1;
      for (int i = 0; i < octave; ++i) value *= 2;
      for (int i = lowest_octave; i < 0; ++i) value /= 2;
      for (int step = 0; step < steps_an_octave; ++step, value *= step_ratio)
        values[static_cast<std::size_t>(octave * steps_an_octave + step)] = value;
    }
    values.back() = 1 << (octaves + lowest_octave);
    return values;
  }();
  return all;
}

Belief::Belief(Prospect prospect) {
  assert(prospect.ratio > 0 && prospect.spread > 0);
  const double middle = octaves_of(prospect.ratio);
  for (int i = 0; i < points; ++i)
    likely_[static_cast<std::size_t>(i)] = thin_tailed(lowest_octave + i / steps - middle, prospect.spread);
  make_sum_one(likely_);
}

void Belief::see(double ratio, double noise) { see_within(ratio, noise, noise); }

void Belief::see_first(double ratio, double noise, double longer) { see_within(ratio, noise, longer); }

void Belief::see_within(double ratio, double noise_if_faster, double noise_if_slower) {
  const double seen = std::clamp<double>(octaves_of(ratio), lowest_octave, lowest_octave + octaves);
  for (int i = 0; i < points; ++i) {
    const double slower = seen - (lowest_octave + i / steps);  // than a call usually is, were that its time
    likely_[static_cast<std::size_t>(i)] *= fat_tailed(slower, slower > 0 ? noise_if_slower : noise_if_faster);
  }
  make_sum_one(likely_);
}

double Belief::gain(double current, double least) const {
  double sum = 0;
  for (std::size_t i = 0; i < likely_.size() && ratios()[i] < current; ++i)
    sum += likely_[i] * std::max(0.0, current - std::max(ratios()[i], least));
  return sum;
}

double Belief::loss(double current) const {
  double sum = 0;
  for (std::size_t i = likely_.size(); i-- > 0 && ratios()[i] > current;) sum += likely_[i] * (ratios()[i] - current);
  return sum;
}

}  // namespace plait::runtime
