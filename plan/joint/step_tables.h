// A step graph in flat arrays, as a simulation reads it: made once, then shared by all schedules. Pure.
//
// Dependencies on computation are left out: the program passes computation in order, so that by the time a task is come
// to, all computation before it is done.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/joint/step_graph.h"

namespace plait::plan::joint {

struct FlatPiece {
  double seconds = 0;
  double load = 0;
  double rate = 1;             // beside computation
  std::uint64_t after = 0;     // bits: pieces of the same option
  std::uint64_t before = 0;    // bits: those that wait for it
  std::uint32_t channels = 0;  // bits
  int place = 0;               // of its set of channels in StepTables::places
};

struct FlatOption {
  int first_piece = 0;
  int pieces = 0;
};

struct FlatTask {
  double seconds = 0;
  bool computes = true;
  int first_option = 0, options = 0;
  int first_wait = 0, waits = 0;      // what it waits for
  int first_waiter = 0, waiters = 0;  // operations that wait for this operation
};

struct Wait {
  int task = 0;      // an operation
  int previous = 0;  // 1: of the step before
};

struct StepTables {
  // Precondition: validate(graph).ok(). Nothing of the graph is kept.
  explicit StepTables(const StepGraph& graph);

  std::span<const Wait> waits_of(const FlatTask& task) const {
    return {waits.data() + task.first_wait, static_cast<std::size_t>(task.waits)};
  }
  std::span<const int> waiters_of(const FlatTask& task) const {
    return {waiters.data() + task.first_waiter, static_cast<std::size_t>(task.waiters)};
  }
  const FlatOption& option(int task, int choice) const { return options[tasks[task].first_option + choice]; }

  std::vector<FlatTask> tasks;
  std::vector<FlatOption> options;
  std::vector<FlatPiece> pieces;
  std::vector<Wait> waits;
  std::vector<int> waiters;
  std::vector<std::uint32_t> places;      // the sets of channels that pieces are on
  std::vector<std::vector<double>> gain;  // by channel; {1} where pieces exclude one another
  std::uint32_t shared = 0;               // bits: channels where they do not
  int most_slots = 0;                     // computation, and pieces of the longest option of each operation
  double computation = 0;                 // seconds of a step
  double least_computing_rate = 0;
  bool contended = false;  // anything runs at another speed beside something else
};

}  // namespace plait::plan::joint
