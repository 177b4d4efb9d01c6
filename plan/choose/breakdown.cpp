#include "plan/choose/breakdown.h"

#include <functional>

namespace plait::plan {

std::string_view name(Figure figure) {
  switch (figure) {
    case Figure::alpha:
      return "alpha";
    case Figure::beta:
      return "beta";
    case Figure::gamma:
      return "gamma";
    case Figure::start:
      return "start";
  }
  return "";
}

namespace {

// Far below what moves a longest sum to another one, far above the rounding of doubles.
constexpr double step = 1e-6;
// Shares of less than this are rounding.
constexpr double least_share = 1e-6;

using Scale = std::function<void(Machine& machine, double factor)>;

class Differences {
 public:
  Differences(const std::string& plan, const Call& call, const CandidateContext& context)
      : plan_(plan), call_(call), context_(context) {}

  Result<double> seconds(const Machine& machine) const {
    CandidateContext changed{.hierarchy = context_.hierarchy,
                             .machine = machine,
                             .siblings = context_.siblings,
                             .chunk_bytes = context_.chunk_bytes,
                             .rails = context_.rails,
                             .shared_memory = context_.shared_memory,
                             .staged = context_.staged};
    const Result<Candidate> candidate = named_candidate(plan_, call_, changed);
    if (!candidate.ok()) return candidate.status();
    return candidate->seconds;
  }

  // The figures' part of the time, from both sides. Precondition: seconds() is ok for the machine as it is.
  double part(const Scale& scale) const {
    Machine more = context_.machine, less = context_.machine;
    scale(more, 1 + step);
    scale(less, 1 - step);
    return (*seconds(more) - *seconds(less)) / (2 * step);
  }

 private:
  const std::string& plan_;
  const Call& call_;
  const CandidateContext& context_;
};

}  // namespace

Result<Breakdown> break_down(const std::string& plan, const Call& call, const CandidateContext& context) {
  const Differences differences(plan, call, context);
  const Result<double> predicted = differences.seconds(context.machine);
  if (!predicted.ok()) return predicted.status();
  Breakdown breakdown{.seconds = *predicted, .shares = {}, .rest = *predicted};
  const auto add = [&](const std::string& level, Figure figure, const Scale& scale) {
    const double seconds = differences.part(scale);
    if (seconds < least_share * breakdown.seconds) return;
    breakdown.shares.push_back({level, figure, seconds});
    breakdown.rest -= seconds;
  };
  for (std::size_t index = 0; index < context.machine.levels.size(); ++index) {
    const std::string& level = context.machine.levels[index].name;
    add(level, Figure::alpha, [&](Machine& machine, double factor) {
      LinkLevel& link = machine.levels[index];
      link.latency *= factor;
      link.overhead *= factor;
      link.port_seconds_per_message *= factor;
    });
    add(level, Figure::beta, [&](Machine& machine, double factor) {
      LinkLevel& link = machine.levels[index];
      link.cpu_seconds_per_byte *= factor;
      link.port_seconds_per_byte *= factor;
    });
  }
  add("", Figure::gamma, [](Machine& machine, double factor) { machine.reduce_seconds_per_byte *= factor; });
  add("", Figure::start, [](Machine& machine, double factor) { machine.start_seconds_per_byte *= factor; });
  if (breakdown.rest < least_share * breakdown.seconds) breakdown.rest = 0;
  return breakdown;
}

}  // namespace plait::plan
