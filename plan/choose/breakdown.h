// Where the predicted time of a plan goes: which level of the machine, and which of its figures.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "plan/choose/candidate.h"
#include "plan/model/collective.h"

namespace plait::plan {

enum class Figure {
  alpha,  // what each message takes: latency, overhead, the port's message rate
  beta,   // what each byte takes on the way: the port's and the processors' rates
  gamma,  // what combining takes a byte
  start,  // the pass over the payload before the first message
};
std::string_view name(Figure figure);

// A part of the time. gamma and start belong to no level.
struct TimeShare {
  std::string level;
  Figure figure = Figure::alpha;
  double seconds = 0;
};

struct Breakdown {
  double seconds = 0;             // predicted
  std::vector<TimeShare> shares;  // levels outermost first; those that take part at all
  double rest = 0;                // of which no figure of the machine is the cause: ranks that wait for their core
};

// Of a plan as named_candidate() takes it, with its number of chunks. The predicted time is a sum of products of the
// machine's figures, or the longest of several such sums, so that it grows in proportion with them: it is the sum over
// the figures of each one times the derivative by it (Euler). Fails (invalid) where the call cannot use the plan.
Result<Breakdown> break_down(const std::string& plan, const Call& call, const CandidateContext& context);

}  // namespace plait::plan
