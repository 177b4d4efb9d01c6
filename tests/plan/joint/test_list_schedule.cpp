// Schedules of steps: computed by hand, and what every schedule of random steps keeps to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <utility>

#include "plan/joint/list_schedule.h"
#include "tests/plan/joint/joint_graphs.h"
#include "tests/plan/joint/small_steps.h"

namespace plait::plan::joint {
namespace {

using enum Policy;

constexpr double nearly = 1e-9;

Schedule scheduled(const StepGraph& step, Policy policy, const std::vector<int>& options) {
  EXPECT_TRUE(validate(step).ok()) << validate(step).message();
  const StepTables tables(step);
  return ListScheduler(tables).schedule(options, policy);
}

Schedule scheduled(const StepGraph& step, Policy policy) { return scheduled(step, policy, greedy_options(step)); }

Schedule followed(const StepGraph& step, const std::vector<OrderedPiece>& order) {
  const StepTables tables(step);
  return ListScheduler(tables).schedule(greedy_options(step), order);
}

TEST(ListSchedule, WaitsForWhatItNeeds) {
  // One after the other: 2 + 3.
  StepGraph step = exclusive_step(1);
  step.tasks = {computation(2, {}, {1}), operation({on(0, 3)}, {0})};
  EXPECT_NEAR(scheduled(step, as_issued).seconds, 5, nearly);
  // Nothing waits for it but its own next time: the channel's time.
  step.tasks[0].after_previous.clear();
  EXPECT_NEAR(scheduled(step, fifo).seconds, 3, nearly);
  // Computation alone.
  step.tasks = {computation(2), computation(1)};
  EXPECT_NEAR(scheduled(step, critical_path).seconds, 3, nearly);
  // Operations alone, of which the second waits for the first.
  step.tasks = {operation({on(0, 3)}), operation({on(0, 1)}, {0})};
  EXPECT_NEAR(scheduled(step, critical_path).seconds, 4, nearly);
}

// An operation that is submitted for the next step runs beside what is left of this one.
TEST(ListSchedule, Prefetches) {
  StepGraph step = exclusive_step(1);
  step.tasks = {operation({on(0, 3)}), computation(4, {}, {0})};
  EXPECT_NEAR(scheduled(step, fifo).seconds, 4, nearly);
  step.tasks[1].after_previous.clear();
  step.tasks[1].after = {0};
  EXPECT_NEAR(scheduled(step, fifo).seconds, 7, nearly);
}

// Two layers: the second's gradients come first and are long; the first's are needed first. Whole: 3 + 1 + 3 x 1. In
// segments, the first's go between: 6.
TEST(ListSchedule, SegmentsLetShortOnesPass) {
  StepGraph step = two_layers();
  EXPECT_NEAR(scheduled(step, as_issued).seconds, 7, nearly);
  EXPECT_NEAR(scheduled(step, critical_path).seconds, 7, nearly);
  EXPECT_NEAR(scheduled(step, lifo, {0, 0, 0, 1, 0, 0}).seconds, 6, nearly);
  EXPECT_NEAR(scheduled(step, critical_path, {0, 0, 0, 1, 0, 0}).seconds, 6, nearly);
  EXPECT_NEAR(scheduled(step, fifo, {0, 0, 0, 1, 0, 0}).seconds, 7, nearly);
}

TEST(ListSchedule, ChannelsRunTogetherOperationsAsIssuedDoNot) {
  StepGraph step = exclusive_step(2);
  step.tasks = {operation({on(0, 3)}), operation({on(1, 2)}), computation(1, {0, 1})};
  EXPECT_NEAR(scheduled(step, as_issued).seconds, 6, nearly);
  EXPECT_NEAR(scheduled(step, lifo).seconds, 6, nearly);
  EXPECT_NEAR(scheduled(step, fifo).seconds, 4, nearly);
}

TEST(ListSchedule, PiecesTakeFromComputation) {
  // Two seconds beside half a load give one of two seconds of computation.
  StepGraph step = exclusive_step(1);
  step.tasks = {operation({on(0, 2)}), computation(2)};
  step.tasks[0].options[0].pieces[0].load = 0.5;
  EXPECT_NEAR(scheduled(step, fifo).seconds, 3, nearly);
  // A full load leaves the least rate.
  step.tasks[0].options[0].pieces[0].load = 1;
  step.least_computing_rate = 0.25;
  EXPECT_NEAR(scheduled(step, fifo).seconds, 3.5, nearly);
  // At half of its speed for a second, then alone.
  step.tasks = {operation({on(0, 1)}), computation(1), computation(1, {0})};
  step.tasks[0].options[0].pieces[0].rate_beside_computation = 0.5;
  EXPECT_NEAR(scheduled(step, fifo).seconds, 2.5, nearly);
}

TEST(ListSchedule, SharesAChannel) {
  StepGraph step = exclusive_step(1);
  step.tasks = {operation({on(0, 3)}), operation({on(0, 3)}), computation(1, {0, 1})};
  EXPECT_NEAR(scheduled(step, critical_path).seconds, 7, nearly);
  step.channels[0].gain = {1, 1.5};
  EXPECT_NEAR(scheduled(step, critical_path).seconds, 5, nearly);
  // The third waits for a place.
  step.tasks = {operation({on(0, 3)}), operation({on(0, 3)}), operation({on(0, 1)}), computation(1, {0, 1, 2})};
  EXPECT_NEAR(scheduled(step, fifo).seconds, 6, nearly);
}

TEST(ListSchedule, KeepsToAnOrder) {
  StepGraph step = exclusive_step(1);
  step.tasks = {computation(1), operation({on(0, 1)}), computation(2), operation({on(0, 1)}, {1}),
                computation(0, {1, 3})};
  EXPECT_NEAR(followed(step, {{1, 0, 0}, {3, 0, 0}}).seconds, 4, nearly);
  // The second waits for the first, which waits for its turn.
  EXPECT_EQ(followed(step, {{3, 0, 0}, {1, 0, 0}}).seconds, std::numeric_limits<double>::infinity());
  // The same order as the first, told from another piece on.
  EXPECT_NEAR(followed(step, {{3, 0, 0}, {1, 0, 1}}).seconds, 4, nearly);
  // One iteration ahead of what it waits for.
  EXPECT_EQ(followed(step, {{1, 0, 0}, {3, 0, 1}}).seconds, std::numeric_limits<double>::infinity());
}

// The step's data comes from an operation of the step before; in order with one that is long, and one iteration ahead.
TEST(ListSchedule, KeepsToAnOrderAcrossSteps) {
  StepGraph step = exclusive_step(1);
  step.tasks = {operation({on(0, 1)}), computation(1, {0}, {3}), computation(1), operation({on(0, 2)}), computation(2)};
  // long (step n), short (step n + 1): the short one is submitted when computation is over.
  EXPECT_NEAR(followed(step, {{3, 0, 0}, {0, 0, 1}}).seconds, followed(step, {{0, 0, 0}, {3, 0, 0}}).seconds, nearly);
  EXPECT_NEAR(followed(step, {{0, 0, 0}, {3, 0, 0}}).seconds, 5, nearly);
}

// ---- random steps

struct RandomStep {
  StepGraph step;
  std::vector<int> options;
};

RandomStep random_step(std::mt19937_64& random, int operations) {
  const auto below = [&](int most) { return static_cast<int>(random() % static_cast<std::uint64_t>(most)); };
  GraphRequest request{.kind = graph_kinds[below(5)], .operations = 1 + below(operations), .channels = 1 + below(3)};
  request.communication = 0.25 * (1 + below(12));
  request.contended = below(2) == 0;
  request.seed = random();
  RandomStep made{random_graph(request), {}};
  for (const Task& task : made.step.tasks)
    made.options.push_back(task.options.empty() ? 0 : below(static_cast<int>(task.options.size())));
  return made;
}

class JointTimeline {
 public:
  JointTimeline(const RandomStep& step, const Schedule& schedule) : step_(step), schedule_(schedule) {
    for (const TimedPiece& timed : schedule.timeline) {
      end_[{timed.task, timed.iteration}] = std::max(end_[{timed.task, timed.iteration}], timed.end);
      piece_end_[{timed.task, timed.piece, timed.iteration}] = timed.end;
    }
    slack_ = 1e-9 * schedule.seconds;
  }

  void check() const {
    for (const TimedPiece& timed : schedule_.timeline) {
      check_dependencies(timed);
      check_length(timed);
    }
    check_serial([](const TimedPiece&, const Task& task, const Piece*) { return task.kind == TaskKind::computation; });
    for (std::size_t channel = 0; channel < step_.step.channels.size(); ++channel)
      if (step_.step.channels[channel].gain.size() < 2)
        check_serial([&](const TimedPiece&, const Task&, const Piece* piece) {
          return piece != nullptr && (piece->channels >> channel & 1) != 0;
        });
  }

 private:
  const Piece* piece_of(const TimedPiece& timed) const {
    const Task& task = step_.step.tasks[timed.task];
    return task.options.empty() ? nullptr : &task.options[step_.options[timed.task]].pieces[timed.piece];
  }

  void expect_before(const TimedPiece& timed, int task, int iteration) const {
    const auto found = end_.find({task, iteration});
    if (found == end_.end()) return;
    EXPECT_LE(found->second, timed.start + slack_) << timed.task << " after " << task;
  }

  void check_dependencies(const TimedPiece& timed) const {
    const Task& task = step_.step.tasks[timed.task];
    for (const int before : task.after) expect_before(timed, before, timed.iteration);
    for (const int before : task.after_previous) expect_before(timed, before, timed.iteration - 1);
    expect_before(timed, timed.task, timed.iteration - 1);
    for (int before = 0; before < timed.task; ++before)
      if (step_.step.tasks[before].kind == TaskKind::computation) expect_before(timed, before, timed.iteration);
    const Piece* piece = piece_of(timed);
    if (piece == nullptr) return;
    for (const int before : piece->after)
      EXPECT_LE(piece_end_.at({timed.task, before, timed.iteration}), timed.start + slack_);
  }

  void check_length(const TimedPiece& timed) const {
    const Piece* piece = piece_of(timed);
    const double least = piece == nullptr ? step_.step.tasks[timed.task].seconds : piece->seconds;
    EXPECT_GE(timed.end - timed.start, least - slack_);
  }

  template <class Select>
  void check_serial(Select select) const {
    double free = -1;
    for (const TimedPiece& timed : schedule_.timeline) {
      if (!select(timed, step_.step.tasks[timed.task], piece_of(timed))) continue;
      EXPECT_GE(timed.start, free - slack_) << "task " << timed.task;
      free = std::max(free, timed.end);
    }
  }

  const RandomStep& step_;
  const Schedule& schedule_;
  double slack_ = 0;
  std::map<std::pair<int, int>, double> end_;
  std::map<std::tuple<int, int, int>, double> piece_end_;
};

TEST(ListSchedule, RandomOnesKeepToTheStep) {
  std::mt19937_64 random(static_cast<std::uint64_t>(testing::UnitTest::GetInstance()->random_seed()));
  for (int i = 0; i < 150; ++i) {
    const RandomStep step = random_step(random, 40);
    const StepTables tables(step.step);
    ListScheduler scheduler(tables);
    for (const Policy policy : {as_issued, fifo, lifo, critical_path}) {
      const Schedule schedule = scheduler.schedule(step.options, policy);
      ASSERT_LT(schedule.seconds, std::numeric_limits<double>::infinity());
      EXPECT_EQ(schedule.timeline.size() % 2, 0u);
      JointTimeline(step, schedule).check();
      if (HasFailure()) FAIL() << "step " << i;
    }
  }
}

// What the critical path gives can be enforced, and then takes as long.
TEST(ListSchedule, CriticalPathCanBeFollowed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(testing::UnitTest::GetInstance()->random_seed()));
  int alike = 0;
  for (int i = 0; i < 200; ++i) {
    const RandomStep step = random_step(random, 60);
    const StepTables tables(step.step);
    ListScheduler scheduler(tables);
    const Schedule listed = scheduler.schedule(step.options, critical_path);
    const Schedule followed = scheduler.schedule(step.options, listed.order);
    EXPECT_NEAR(followed.seconds, listed.seconds, 1e-6 * listed.seconds) << "step " << i;
    std::vector<OrderedPiece> order;
    const double alone = scheduler.list(step.options, critical_path, exact_limits, order);
    if (std::abs(alone - followed.seconds) <= 1e-6 * alone) ++alike;
    std::size_t pieces = 0;
    for (std::size_t task = 0; task < step.options.size(); ++task)
      if (!step.step.tasks[task].options.empty())
        pieces += step.step.tasks[task].options[step.options[task]].pieces.size();
    EXPECT_EQ(listed.order.size(), pieces);
  }
  // Where the policy takes turns among orders, it has no one order's time.
  EXPECT_GE(alike, 180);
}

// A channel that is alone with its pieces and computation that is alone: the slower one's time, exactly.
TEST(ListSchedule, IsNeverBelowTheBusiest) {
  std::mt19937_64 random(static_cast<std::uint64_t>(testing::UnitTest::GetInstance()->random_seed()));
  for (int i = 0; i < 200; ++i) {
    const RandomStep step = random_step(random, 40);
    double computed = 0;
    std::vector<double> busy(step.step.channels.size());
    for (std::size_t task = 0; task < step.options.size(); ++task) {
      computed += step.step.tasks[task].seconds;
      if (step.step.tasks[task].options.empty()) continue;
      for (const Piece& piece : step.step.tasks[task].options[step.options[task]].pieces)
        for (std::size_t channel = 0; channel < busy.size(); ++channel)
          if ((piece.channels >> channel & 1) != 0 && step.step.channels[channel].gain.empty())
            busy[channel] += piece.seconds;
    }
    const double least = std::max(computed, *std::max_element(busy.begin(), busy.end()));
    for (const Policy policy : {as_issued, fifo, lifo, critical_path})
      EXPECT_GE(scheduled(step.step, policy, step.options).seconds, least * (1 - 1e-9)) << "step " << i;
  }
}

}  // namespace
}  // namespace plait::plan::joint
