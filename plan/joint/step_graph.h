// A step of a program that is repeated for ever: its computation, its operations (collectives), and the ways in which
// each operation can be rewritten. What the joint optimizer of Syndicate works on ("Better Together: Jointly Optimizing
// ML Collective Scheduling and Execution Planning using Syndicate", NSDI '23, sections 4.2 and 4.3). Plain values; all
// times are seconds.
//
// How such a program runs; all ranks alike:
// - Tasks are passed in the order of the list, over and over. A computation waits for what it depends on, then the
//   program goes on when it is done; so computation is one serial stream.
// - An operation is submitted when the program comes to it, which goes on at once. If it has not ended since the step
//   before, the program waits for it there: its buffers are in use.
// - An operation's pieces may begin once it is submitted and what it depends on has ended. What depends on an operation
//   waits for its last piece.
// - A program that prefetches submits an operation for the next step; what waits for it names it in `after_previous`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace plait::plan::joint {

inline constexpr int most_channels = 32;
inline constexpr int most_pieces = 64;  // of one option

// A motif: a piece of an operation, bound to channels, that cannot be interrupted.
struct Piece {
  std::uint32_t channels = 1;          // bit c: channel c; one at least
  double seconds = 0;                  // alone
  std::vector<int> after = {};         // earlier pieces of the same option
  double load = 0;                     // 0..1: what it takes from computation beside it
  double rate_beside_computation = 1;  // above 0, at most 1: of its speed alone
};

// A rewriting of an operation.
struct Option {
  std::string name;
  std::vector<Piece> pieces = {};
  bool segments_only = false;  // the usual way to do it, merely cut along the payload
};

enum class TaskKind { computation, operation };

struct Task {
  std::string name;
  TaskKind kind = TaskKind::computation;
  double seconds = 0;                    // of a computation, with nothing beside it
  std::vector<Option> options = {};      // of an operation
  std::vector<int> after = {};           // earlier tasks of the same step
  std::vector<int> after_previous = {};  // tasks of the step before
};

struct Channel {
  std::string name;
  // gain[n - 1]: the speed of n pieces at a time, together, as a multiple of that of one alone (measured); at most so
  // many run at a time. Empty: pieces exclude one another.
  std::vector<double> gain = {};
};

struct StepGraph {
  std::vector<Task> tasks;
  std::vector<Channel> channels;
  // Computation runs at 1 - (the loads of the pieces beside it), but at this rate at least.
  double least_computing_rate = 0.05;
};

// Fails (invalid) with what is wrong, by the task's name.
Status validate(const StepGraph& graph);

// Of an option's pieces with nothing else on their channels and no computation. Exclusive channels are respected; where
// a channel is shared, pieces on it are taken as if it were not (a bound from below).
double seconds_alone(const StepGraph& graph, const Option& option);

// By task: the option that takes the least alone (what a greedy planner chooses); 0 for computation.
std::vector<int> greedy_options(const StepGraph& graph);

}  // namespace plait::plan::joint
