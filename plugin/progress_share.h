// How much of a core moving operations on may take beside the program's computation: LIBRA's r on processors (Liu et
// al., "Contention-Aware GPU Thread Allocation for Data Parallel Training in High Speed Networks"), as far as this
// engine has it. One helper thread of a process moves operations on at a time, so that a share of several threads is as
// much of its one core as they have together, at most all of it.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "plan/overlap/overlap_plan.h"

namespace plait {

// What the helper thread makes of a share: 0 < duty <= 1.
double helper_duty(const CommunicationShare& share);

// Holds a thread to a share of its core, over short periods: by the processor time that it took, whatever it was spent
// on. What it took too much it rests for later; what it did not take is lost after a period. Not thread-safe.
class DutyMeter {
 public:
  static constexpr std::uint64_t period_ns = 1'000'000;

  // Forgets what was: the thread has slept, or was free until now.
  void restart(std::uint64_t wall_ns, std::uint64_t processor_ns);
  // Of clocks that only go up. How long the thread is to rest now; 0: it may go on.
  std::uint64_t rest_ns(std::uint64_t wall_ns, std::uint64_t processor_ns, double duty);

 private:
  std::uint64_t wall_ns_ = 0, processor_ns_ = 0;
  double credit_ns_ = 0;  // of processor time
};

// The duty at hand: the largest of the groups under way, else the default. Thread-safe; duty() is a load.
class ProgressDuty {
 public:
  static ProgressDuty& instance();
  double duty() const;
  // For what runs under no plan. 0 < duty <= 1. Returns the one before.
  double set_default(double duty);
  void enter(double duty);
  void leave(double duty);  // as it entered

 private:
  void update();

  std::mutex guard_;
  double default_ = 1;
  std::vector<double> under_way_;
};

}  // namespace plait
