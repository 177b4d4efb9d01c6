#include "plan/overlap/recorded_steps.h"

#include <algorithm>
#include <limits>

namespace plait::plan {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Whether the calls from one on have the sizes of those of a step before.
bool repeats(std::span<const RecordedCall> calls, std::size_t from, std::size_t length) {
  for (std::size_t i = from; i < calls.size(); ++i)
    if (calls[i].bytes != calls[i - length].bytes) return false;
  return true;
}

// Whether some call was posted with others under way.
bool overlaps(std::span<const RecordedCall> calls) {
  return !std::ranges::all_of(calls, [](const RecordedCall& call) { return call.all_done_before; });
}

// Whether the call is the first of a step, and those of two steps before are, too, or of more in the last half.
bool begins_step(std::span<const RecordedCall> calls, std::size_t call, std::size_t length) {
  const std::size_t half = calls.size() / 2,
                    told = std::max(half, calls.size() - std::min(calls.size(), calls_that_tell));
  for (std::size_t first = std::min(call - 2 * length, told + (call - told) % length); first <= call; first += length)
    if (!calls[first].all_done_before) return false;
  const std::size_t from = std::max(length, std::min(call - length, half));
  return overlaps(calls.subspan(call - length, length)) && repeats(calls, from, length);
}

std::size_t whole_steps(std::span<const RecordedCall> calls, std::size_t calls_of_step) {
  return (calls.size() - 1) / calls_of_step;
}

// Seconds of [from, to] with a reduction of the step under way. Reductions run one after the other.
double under_way(std::span<const RecordedCall> step, double from, double to) {
  double seconds = 0;
  for (const RecordedCall& call : step) seconds += std::max(0.0, std::min(call.end, to) - std::max(call.begin, from));
  return seconds;
}

// Bytes and seconds of reductions.
struct Moved {
  double bytes = 0, seconds = 0;
  void add(const RecordedCall& call, double startup) {
    bytes += static_cast<double>(call.bytes);
    seconds += std::max(call.end - call.begin - startup, 0.0);
  }
  double rate() const { return seconds > 0 ? bytes / seconds : 0; }
};

}  // namespace

StepPattern step_pattern(std::span<const RecordedCall> calls) {
  if (!overlaps(calls.last(std::min(calls.size(), calls_that_tell)))) return {};
  for (std::size_t length = 2; length <= most_calls_of_step && 2 * length < calls.size(); ++length) {
    if (!repeats(calls, std::max(length, calls.size() - length), length)) continue;
    const std::size_t least = std::max(calls.size() - length, 2 * length);  // at or behind the half
    for (std::size_t call = calls.size(); call-- > least;)
      if (begins_step(calls, call, length)) return {.calls = length, .first = call % length};
  }
  return {};
}

StepFigures step_figures(std::span<const RecordedCall> calls, std::size_t calls_of_step, double startup) {
  std::vector<double> steps, computations, besides;
  Moved overlapped, alone;
  for (std::size_t number = 0; number < whole_steps(calls, calls_of_step); ++number) {
    const auto step = calls.subspan(number * calls_of_step, calls_of_step);
    const double first = step.front().posted, last = step.back().posted;
    steps.push_back(calls[(number + 1) * calls_of_step].posted - first);
    double computation = 0;
    for (const RecordedCall& call : step.subspan(1)) computation += call.computed;
    computations.push_back(computation);
    besides.push_back(std::min(computation, under_way(step, first, last)));
    for (const RecordedCall& call : step) {
      if (call.end <= last) overlapped.add(call, startup);
      if (call.begin >= last) alone.add(call, startup);
    }
  }
  return {.step = median(std::move(steps)),
          .computation = median(std::move(computations)),
          .beside = median(std::move(besides)),
          .overlapped_rate = overlapped.rate(),
          .alone_rate = alone.rate()};
}

std::vector<double> step_computation(std::span<const RecordedCall> calls, std::size_t calls_of_step) {
  std::vector<double> computation(calls_of_step, 0.0);
  for (std::size_t i = 1; i < calls_of_step; ++i) {
    std::vector<double> seen;
    for (std::size_t number = 0; number < whole_steps(calls, calls_of_step); ++number)
      seen.push_back(calls[number * calls_of_step + i].computed);
    computation[i] = median(std::move(seen));
  }
  return computation;
}

double startup_of(std::span<const RecordedCall> calls, double usual) {
  double shortest = std::numeric_limits<double>::max();
  double weights = 0, x = 0, y = 0, xx = 0, xy = 0;  // sums of a regression of seconds on bytes
  std::size_t least = ~std::size_t{0}, most = 0;
  for (const RecordedCall& call : calls) {
    const double seconds = call.end - call.begin, bytes = static_cast<double>(call.bytes);
    if (!(seconds > 0)) continue;
    shortest = std::min(shortest, seconds);
    least = std::min(least, call.bytes);
    most = std::max(most, call.bytes);
    const double weight = 1 / (seconds * seconds);
    weights += weight, x += weight * bytes, y += weight * seconds;
    xx += weight * bytes * bytes, xy += weight * bytes * seconds;
  }
  if (weights == 0) return usual;
  const double divisor = weights * xx - x * x;
  const bool tells = most >= 4 * least && divisor > 0;
  const double startup = tells ? (y * xx - x * xy) / divisor : usual;
  return std::clamp(startup, 0.0, 0.9 * shortest);
}

double slowdown_of(double computation_alone, const StepFigures& beside) {
  constexpr double most = 100, too_little_to_tell = 0.05;
  const double more = beside.computation - computation_alone;
  if (more <= 0 || beside.beside < too_little_to_tell * beside.computation) return 1;
  // What was computed beside communication would have taken `beside - more` alone.
  return beside.beside - more > beside.beside / most ? beside.beside / (beside.beside - more) : most;
}

}  // namespace plait::plan
