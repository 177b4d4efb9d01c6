#include "plan/step/predicted_spans.h"

#include <algorithm>
#include <limits>

#include "plan/joint/list_schedule.h"
#include "plan/step/step_options.h"

namespace plait::plan::step {

Result<std::vector<TaskSpan>> predicted_spans(const Step& step, const Hierarchy& hierarchy, const Machine& machine) {
  const Result<PricedStep> priced = price_step(step, hierarchy, machine, {});
  if (!priced.ok()) return priced.status();
  const joint::StepTables tables(priced->graph);
  const joint::Schedule schedule =
      joint::ListScheduler(tables).schedule(joint::greedy_options(priced->graph), joint::Policy::as_issued);
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<TaskSpan> spans(step.tasks.size(), {.begin = never, .end = 0});
  double first = never;
  for (const joint::TimedPiece& piece : schedule.timeline) {
    if (piece.iteration != 0) continue;
    TaskSpan& span = spans[static_cast<std::size_t>(piece.task)];
    span.begin = std::min(span.begin, piece.start);
    span.end = std::max(span.end, piece.end);
    first = std::min(first, piece.start);
  }
  for (TaskSpan& span : spans) span.begin -= first, span.end -= first;
  return spans;
}

}  // namespace plait::plan::step
