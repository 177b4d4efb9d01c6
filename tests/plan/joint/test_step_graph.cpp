// Step graphs: what is wrong with broken ones, and what options take alone.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "plan/joint/step_graph.h"
#include "tests/plan/joint/joint_graphs.h"

namespace plait::plan::joint {
namespace {

// Computation, an operation with a chain of two pieces, computation that waits for it.
StepGraph valid_step() {
  StepGraph step;
  step.channels = {{.name = "net"}, {.name = "memory", .gain = {1, 1.5}}};
  step.tasks.push_back({.name = "forward", .seconds = 1});
  step.tasks.push_back(
      {.name = "sum",
       .kind = TaskKind::operation,
       .options = {{"chain", {{.channels = 1, .seconds = 2}, {.channels = 2, .seconds = 1, .after = {0}}}}},
       .after = {0}});
  step.tasks.push_back({.name = "update", .seconds = 1, .after = {1}, .after_previous = {2}});
  return step;
}

struct BrokenStep {
  std::string expected;  // in the message
  std::function<void(StepGraph&)> change;
};

TEST(StepGraph, SaysWhatIsWrong) {
  ASSERT_TRUE(validate(valid_step()).ok());
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  const BrokenStep broken[] = {
      {"without tasks", [](StepGraph& step) { step.tasks.clear(); }},
      {"task 0 (forward) takes -1", [](StepGraph& step) { step.tasks[0].seconds = -1; }},
      {"task 0 (forward) takes nan", [&](StepGraph& step) { step.tasks[0].seconds = not_a_number; }},
      {"task 0 (forward) is computation, and has options",
       [](StepGraph& step) { step.tasks[0].options = step.tasks[1].options; }},
      {"task 1 (sum) has no options", [](StepGraph& step) { step.tasks[1].options.clear(); }},
      {"option chain has no pieces", [](StepGraph& step) { step.tasks[1].options[0].pieces.clear(); }},
      {"option chain has more than 64 pieces", [](StepGraph& step) { step.tasks[1].options[0].pieces.resize(65); }},
      {"piece 0, takes -2", [](StepGraph& step) { step.tasks[1].options[0].pieces[0].seconds = -2; }},
      {"piece 0, is on no channel", [](StepGraph& step) { step.tasks[1].options[0].pieces[0].channels = 0; }},
      {"a channel that is not there: there are 2",
       [](StepGraph& step) { step.tasks[1].options[0].pieces[0].channels = 4; }},
      {"a load that is not from 0 to 1", [](StepGraph& step) { step.tasks[1].options[0].pieces[0].load = 1.1; }},
      {"a rate beside computation",
       [](StepGraph& step) { step.tasks[1].options[0].pieces[0].rate_beside_computation = 0; }},
      {"piece 1, is after piece 1", [](StepGraph& step) { step.tasks[1].options[0].pieces[1].after = {1}; }},
      {"piece 0, is after piece 1", [](StepGraph& step) { step.tasks[1].options[0].pieces[0].after = {1}; }},
      {"task 1 (sum) is after task 2 (update), which does not stand before it: a circle",
       [](StepGraph& step) { step.tasks[1].after = {2}; }},
      {"task 1 (sum) is after task 7, which is not there", [](StepGraph& step) { step.tasks[1].after = {7}; }},
      {"task 2 (update) is after task 3 of the step before",
       [](StepGraph& step) { step.tasks[2].after_previous = {3}; }},
      {"channel memory: the gain of 2 pieces", [](StepGraph& step) { step.channels[1].gain[1] = 2.5; }},
      {"more than 32 channels", [](StepGraph& step) { step.channels.resize(33); }},
      {"least rate of computing", [](StepGraph& step) { step.least_computing_rate = 0; }}};
  for (const BrokenStep& one : broken) {
    StepGraph step = valid_step();
    one.change(step);
    const Status status = validate(step);
    EXPECT_FALSE(status.ok()) << one.expected;
    EXPECT_NE(status.message().find(one.expected), std::string::npos) << status.message();
  }
}

TEST(StepGraph, TakesOptionsAlone) {
  StepGraph step = valid_step();
  EXPECT_DOUBLE_EQ(seconds_alone(step, step.tasks[1].options[0]), 3);
  // Two on one channel exclude each other; on two channels they don't.
  const Option two = {"two", {{.channels = 1, .seconds = 2}, {.channels = 1, .seconds = 2}}};
  const Option apart = {"apart", {{.channels = 1, .seconds = 2}, {.channels = 2, .seconds = 2}}};
  EXPECT_DOUBLE_EQ(seconds_alone(step, two), 4);
  EXPECT_DOUBLE_EQ(seconds_alone(step, apart), 2);
  step.tasks[1].options = {two, apart};
  EXPECT_EQ(greedy_options(step), (std::vector<int>{0, 1, 0}));
}

TEST(StepGraph, GeneratedOnesAreValid) {
  for (const GraphKind kind : graph_kinds)
    for (int operations = 1; operations < 40; operations += 3)
      for (const bool contended : {false, true}) {
        const Status status = validate(random_graph({.kind = kind, .operations = operations, .contended = contended}));
        EXPECT_TRUE(status.ok()) << name(kind) << ": " << status.message();
      }
}

}  // namespace
}  // namespace plait::plan::joint
