// Steps for examples that are computed by hand.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/joint/step_graph.h"

namespace plait::plan::joint {

inline StepGraph exclusive_step(int channels) {
  StepGraph step;
  for (int channel = 0; channel < channels; ++channel) step.channels.push_back({.name = std::to_string(channel)});
  return step;
}

inline Task computation(double seconds, std::vector<int> after = {}, std::vector<int> after_previous = {}) {
  return {.name = "computation",
          .seconds = seconds,
          .after = std::move(after),
          .after_previous = std::move(after_previous)};
}

// An option of one piece.
inline Option on(int channel, double seconds) {
  return {"channel " + std::to_string(channel), {{.channels = std::uint32_t{1} << channel, .seconds = seconds}}};
}

inline Task operation(std::vector<Option> options, std::vector<int> after = {}) {
  return {.name = "operation", .kind = TaskKind::operation, .options = std::move(options), .after = std::move(after)};
}

// Forward 1, forward 2, backward 2, its gradients (3 s, whole or in three segments), backward 1, its gradients (1 s).
inline StepGraph two_layers() {
  StepGraph step = exclusive_step(1);
  const Piece second{.channels = 1, .seconds = 1};
  step.tasks = {computation(1, {}, {5}), computation(1, {}, {3}),
                computation(1),          operation({on(0, 3), {"segments", {second, second, second}, true}}, {2}),
                computation(1),          operation({on(0, 1)}, {4})};
  return step;
}

// After Figure 6 of Syndicate: an all-to-all, fast on the network of the all-reduces or slow on another, and three
// all-reduces; the next computation waits for all.
inline StepGraph figure_6() {
  StepGraph step = exclusive_step(2);
  step.tasks = {computation(1),
                operation({on(0, 2), on(0, 3)}, {0}),
                operation({on(0, 2), on(0, 2.5)}, {0}),
                operation({on(0, 2), on(0, 2.5)}, {0}),
                operation({on(0, 3), on(1, 5)}, {0}),
                computation(1, {1, 2, 3, 4})};
  return step;
}

}  // namespace plait::plan::joint
