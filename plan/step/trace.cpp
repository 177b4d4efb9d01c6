#include "plan/step/trace.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace plait::plan::step {
namespace {

class SpanMaker {
 public:
  explicit SpanMaker(const Trace& trace) : trace_(trace), spans_(trace.step.tasks.size()) {}

  std::vector<TaskSpan> run() {
    for (std::size_t index = 0; index < spans_.size(); ++index) {
      spans_[index] = span_of(index);
      places_.emplace(task(index).name, index);
    }
    end_by_waits();
    return std::move(spans_);
  }

 private:
  const Task& task(std::size_t index) const { return trace_.step.tasks[index]; }
  TaskTimes times(std::size_t index) const { return index < trace_.times.size() ? trace_.times[index] : TaskTimes{}; }

  TaskSpan span_of(std::size_t index) {
    const Task& one = task(index);
    const TaskTimes known = times(index);
    double ready = program_;
    for (const std::string& name : one.after) ready = std::max(ready, spans_[places_.at(name)].end);
    if (!one.collective && !known.submit) return computation(index, ready);
    TaskSpan span;
    span.begin = known.submit.value_or(ready);
    span.ends_by_wait = one.collective && !known.seconds;
    span.end = span.begin + (one.collective ? known.seconds.value_or(0) : one.seconds);
    program_ = std::max(program_, one.blocking ? span.end : known.submit.value_or(program_));
    return span;
  }

  TaskSpan computation(std::size_t index, double ready) {
    const double seconds = task(index).seconds;
    const auto next = index + 1 < spans_.size() ? times(index + 1).submit : std::nullopt;
    const double begin = next ? std::max(0.0, *next - seconds) : ready;
    program_ = std::max(program_, begin + seconds);
    return {.begin = begin, .end = begin + seconds};
  }

  void end_by_waits() {
    const double last = seconds_of(spans_);
    std::map<std::string_view, double> waited;  // where the program first waits for it
    for (std::size_t index = 0; index < spans_.size(); ++index)
      for (const std::string& name : task(index).after) waited.emplace(name, spans_[index].begin);
    for (std::size_t index = 0; index < spans_.size(); ++index) {
      TaskSpan& span = spans_[index];
      const auto found = waited.find(task(index).name);
      if (span.ends_by_wait) span.end = std::max(span.begin, found == waited.end() ? last : found->second);
    }
  }

  const Trace& trace_;
  std::vector<TaskSpan> spans_;
  std::map<std::string_view, std::size_t> places_;
  double program_ = 0;  // where the program is
};

}  // namespace

int ranks_of(const Trace& trace, int communicator, int otherwise) {
  const auto number = static_cast<std::size_t>(communicator);
  return number < trace.ranks.size() && trace.ranks[number] > 0 ? trace.ranks[number] : otherwise;
}

std::vector<TaskSpan> spans_of(const Trace& trace) { return SpanMaker(trace).run(); }

double seconds_of(const std::vector<TaskSpan>& spans) {
  double last = 0;
  for (const TaskSpan& span : spans) last = std::max(last, span.end);
  return last;
}

}  // namespace plait::plan::step
