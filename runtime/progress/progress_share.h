// How much of its cores moving operations on may take beside the program's computation: LIBRA's r on processors (Liu et
// al., "Contention-Aware GPU Thread Allocation for Data Parallel Training in High Speed Networks"). One helper thread
// of a process moves operations on at a time; the other threads of a share help it with its long copies and reductions.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/work_team.h"
#include "plan/overlap/overlap_plan.h"
#include "runtime/layer.h"

namespace plait::runtime {

// What is made of a share where there are `threads` threads at most: those that there are have it all, each up to its
// whole core.
CommunicationShare share_among(const CommunicationShare& share, int threads);

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

// The share at hand: the largest of the groups under way, else the default. Thread-safe; duty() is a load.
class ProgressShare {
 public:
  static ProgressShare& instance();

  // Of each thread.
  double duty() const { return duty_.load(std::memory_order_relaxed); }
  // How many threads there are, the helper included, and the team that is told how many of them work; nullptr: none.
  // They are remembered when the team is gone.
  void set_threads(int threads, WorkTeam* team);
  void dismiss_team();
  CommunicationShare in_use(const CommunicationShare& share) const;

  // For what runs under no plan: 0 < duty <= 1, threads >= 1. Return the one before.
  double set_default_duty(double duty);
  int set_default_threads(int threads);
  void enter(const CommunicationShare& share);
  void leave(const CommunicationShare& share);  // as it entered

 private:
  void update();

  mutable std::mutex guard_;
  CommunicationShare default_;
  std::vector<CommunicationShare> under_way_;
  int threads_ = 1;
  WorkTeam* team_ = nullptr;
  std::atomic<double> duty_{1};
};

}  // namespace plait::runtime
