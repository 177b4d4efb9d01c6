// A program's step with what its file says of times and communicators, whatever the file's format; and where its tasks
// lie on one time axis.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plan/step/step_file.h"

namespace plait::plan::step {

// What is known of a task beside what the step says.
struct TaskTimes {
  std::optional<double> submit = {};   // of a call: seconds since the step's begin
  std::optional<double> seconds = {};  // of an operation, from there to its end
};

struct Trace {
  Step step;
  std::vector<TaskTimes> times = {};  // by task
  std::vector<int> ranks = {};        // of each communicator, by number; 0 or none: the file does not say
  std::string left_out = {};          // what of the file is no task: "2 METADATA_NODE"
};

// 0 where nobody knows. `otherwise`: of those of which the file does not say it.
int ranks_of(const Trace& trace, int communicator, int otherwise);

struct TaskSpan {
  double begin = 0, end = 0;  // seconds since the step's begin
  // Of an operation: where the file does not say when it ends, `end` is where the program first waits for it, or the
  // step's end.
  bool ends_by_wait = false;
};

// By task. Calls with a submit time lie there, and the computation before each ends there. Everything else follows the
// program: computation is one stream, an operation begins when the program has come to it and what it waits for ended.
std::vector<TaskSpan> spans_of(const Trace& trace);

// The end of the last one.
double seconds_of(const std::vector<TaskSpan>& spans);

}  // namespace plait::plan::step
