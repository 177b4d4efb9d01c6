// What the training steps of a running job say of its computation and of what communication takes from it: the model
// that `plait overlap measure` makes beforehand, from the program's own calls. LIBRA section III-A. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plan/overlap/overlap_model.h"

namespace plait::plan {

// A reduction that the program posted, as one rank saw it. Seconds of a clock that only goes up.
struct RecordedCall {
  std::size_t bytes = 0;
  double computed = 0;           // by the program, since it left MPI the last time
  double posted = 0;             // when
  double begin = 0, end = 0;     // of the reduction, where it ran by itself
  bool all_done_before = false;  // the program had found one complete since, and nothing was under way any more
};

// Steps of always the same calls.
struct StepPattern {
  std::size_t calls = 0;  // of a step; 0: there is no pattern
  std::size_t first = 0;  // a step's first call, as an index modulo `calls`

  friend bool operator==(const StepPattern&, const StepPattern&) = default;
};

inline constexpr std::size_t most_calls_of_step = 512;
// Of calls before the last so many a pattern tells the sizes only.
inline constexpr std::size_t calls_that_tell = 3 * most_calls_of_step;

// That of the last calls, the first of which has index 0: two whole steps and the begin of a third, of 2 to
// most_calls_of_step calls each, and nothing else in the last half of the calls: what is alike within a step is none.
// A step begins with a call that has nothing under way before it, as others of its calls may, but not all of them.
StepPattern step_pattern(std::span<const RecordedCall> calls);

// Of steps that ran with one share of the machine for communication, each call by itself. 0 where nothing was seen.
struct StepFigures {
  double step = 0;             // seconds from a step's first call to the next one's
  double computation = 0;      // seconds that the program computed between the first and the last call
  double beside = 0;           // of these, seconds with a reduction under way
  double overlapped_rate = 0;  // bytes a second of the reductions that ran beside computation only ...
  double alone_rate = 0;       // ... and of those that ran after the last call was posted
};

// Medians over the steps; the start-up of a reduction counts for no rate. Precondition: whole steps, one or more, and
// the call after them at the end.
StepFigures step_figures(std::span<const RecordedCall> calls, std::size_t calls_of_step, double startup);

// BackwardPass::computation: medians over the steps. What the first call waited for nobody sees: 0.
std::vector<double> step_computation(std::span<const RecordedCall> calls, std::size_t calls_of_step);

// The start-up of a reduction, by least squares of its relative errors over the reductions' sizes; `usual` where the
// sizes are too alike to tell. Never more than nine tenths of the shortest reduction.
double startup_of(std::span<const RecordedCall> calls, double usual);

// g(b, r) / b from the computation of a step without communication beside it, and with: between 1 and 100.
double slowdown_of(double computation_alone, const StepFigures& beside);

}  // namespace plait::plan
