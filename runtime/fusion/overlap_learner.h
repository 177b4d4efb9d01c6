// PLAIT_OVERLAP=auto: finds the training step in a communicator's non-blocking allreduces, measures on the program's
// own steps what communication and computation take from each other at a few shares, plans (LIBRA's Algorithm 1), and
// looks whether the plan is worth it.
//
// All ranks decide alike: whatever changes how calls run changes before a call of a certain number, and follows from
// the sizes of the calls and from figures that the ranks have agreed on, question by question (a maximum over ranks).
// Numbers count the communicator's calls that an overlap plan may fuse, from 0 on. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/overlap/overlap_plan.h"
#include "plan/overlap/recorded_steps.h"
#include "runtime/layer.h"

namespace plait::runtime {

class OverlapLearner {
 public:
  OverlapLearner();

  // ---- Before a call runs ----

  // What the ranks must take the largest values of before this call, which was posted then, runs; empty: nothing. The
  // same length on all ranks.
  std::vector<double> question(std::uint64_t call, double posted);
  // The call before which something may change; none from the verdict on.
  std::uint64_t next_question() const { return settled() ? ~std::uint64_t{0} : ask_at_; }
  bool settled() const { return state_ == State::settled; }
  // Their largest values, and how long such a question takes (seconds). Where a plan is made it takes a tenth of a
  // second for a step of 160 calls.
  void answer(std::uint64_t call, const std::vector<double>& largest, double seconds);

  // From the last answer on. nullptr: each call runs by itself ...
  const std::shared_ptr<const OverlapPlan>& plan() const { return plan_; }
  // ... and the helper thread takes no more than this share of its core meanwhile; 0: as always.
  double duty(std::uint64_t call) const;

  // ---- After it ----

  // In the order of the numbers. Allocates nothing.
  void note(const RecordedCall& call);

  // 0: none were found.
  std::size_t calls_of_step() const { return pattern_.calls; }
  // What it has come to, for people: "planned after ...", or why there is no plan; empty: nothing yet.
  const std::string& verdict() const { return verdict_; }

 private:
  enum class State : std::uint8_t { watching, measuring, comparing, checking, settled };

  std::size_t steps_of(std::size_t steps) const { return steps * pattern_.calls; }
  std::vector<RecordedCall> records_between(std::size_t from_step, std::size_t to_step, double posted) const;
  std::vector<RecordedCall> records_of_share(std::size_t share, double posted) const;

  std::span<RecordedCall> calls_that_may_begin();
  std::vector<double> pattern_question();
  std::vector<double> figures_question(double posted) const;
  std::vector<double> check_question(double posted) const;
  void begin_measuring(std::uint64_t call, const std::vector<double>& largest);
  void make_plan(const std::vector<double>& largest);
  void begin_checking(std::uint64_t call, const std::vector<double>& largest);
  void end_checking(const std::vector<double>& largest);
  void watch_on(std::uint64_t call);
  void settle(const std::string& verdict);
  bool fits(std::uint64_t number, const RecordedCall& call) const;

  State state_ = State::watching;
  std::uint64_t ask_at_;                 // call before which the next question comes up
  std::uint64_t recorded_from_ = 0;      // number of the first of records_
  std::uint64_t noted_ = 0;              // calls
  int changes_ = 0;                      // times that the program's steps changed
  bool changed_ = false;                 // while the plan is looked at
  std::vector<RecordedCall> records_;    // of the state at hand
  StepPattern pattern_;                  // its `first` counts from call 0 on
  std::vector<std::size_t> step_bytes_;  // of the pattern's calls, from the step's first on
  double exchange_seconds_ = 0;          // of the quickest question
  double step_alone_ = 0;                // seconds of the steps with the best share, each call by itself
  double duty_alone_ = 0;                // that share; 0: it was not measured
  std::uint64_t planned_after_ = 0;      // steps
  std::shared_ptr<const OverlapPlan> made_, plan_;
  std::string verdict_;
};

}  // namespace plait::runtime
