#include "plan/joint/step_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace plait::plan::joint {
namespace {

Status refused(const std::string& what) { return {Code::invalid, what}; }

bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

Status check_piece(const StepGraph& graph, const Piece& piece, int own, const std::string& where) {
  const std::size_t channels = graph.channels.size();
  if (piece.channels == 0) return refused(where + " is on no channel");
  if (channels < most_channels && piece.channels >> channels != 0)
    return refused(where + " is on a channel that is not there: there are " + std::to_string(channels));
  if (!is_time(piece.seconds)) return refused(where + " takes " + std::to_string(piece.seconds) + " s");
  if (!(piece.load >= 0 && piece.load <= 1)) return refused(where + " has a load that is not from 0 to 1");
  if (!(piece.rate_beside_computation > 0 && piece.rate_beside_computation <= 1))
    return refused(where + " has a rate beside computation that is not above 0 and at most 1");
  for (const int before : piece.after)
    if (before < 0 || before >= own)
      return refused(where + " is after piece " + std::to_string(before) + ", which is none of those before it");
  return {};
}

Status check_option(const StepGraph& graph, const Option& option, const std::string& where) {
  if (option.pieces.empty()) return refused(where + " has no pieces");
  if (std::ssize(option.pieces) > most_pieces)
    return refused(where + " has more than " + std::to_string(most_pieces) + " pieces");
  for (int piece = 0; piece < std::ssize(option.pieces); ++piece) {
    const Status status =
        check_piece(graph, option.pieces[piece], piece, where + ", piece " + std::to_string(piece) + ",");
    if (!status.ok()) return status;
  }
  return {};
}

// Only earlier tasks may be named, so that no circle is left to look for.
Status check_dependencies(const StepGraph& graph, int own, const std::string& where) {
  const Task& task = graph.tasks[own];
  for (const int before : task.after) {
    if (before < 0 || before >= std::ssize(graph.tasks))
      return refused(where + " is after task " + std::to_string(before) + ", which is not there");
    if (before >= own)
      return refused(where + " is after task " + std::to_string(before) + " (" + graph.tasks[before].name +
                     "), which does not stand before it: a circle, or not the order of the program");
  }
  for (const int before : task.after_previous)
    if (before < 0 || before >= std::ssize(graph.tasks))
      return refused(where + " is after task " + std::to_string(before) + " of the step before, which is not there");
  return {};
}

Status check_task(const StepGraph& graph, int own) {
  const Task& task = graph.tasks[own];
  const std::string where = "task " + std::to_string(own) + " (" + task.name + ")";
  if (task.kind == TaskKind::computation) {
    if (!is_time(task.seconds)) return refused(where + " takes " + std::to_string(task.seconds) + " s");
    if (!task.options.empty()) return refused(where + " is computation, and has options");
  } else if (task.options.empty()) {
    return refused(where + " has no options");
  }
  for (const Option& option : task.options) {
    const Status status = check_option(graph, option, where + ", option " + option.name);
    if (!status.ok()) return status;
  }
  return check_dependencies(graph, own, where);
}

Status check_channels(const StepGraph& graph) {
  if (std::ssize(graph.channels) > most_channels)
    return refused("more than " + std::to_string(most_channels) + " channels");
  for (const Channel& channel : graph.channels)
    for (std::size_t n = 0; n < channel.gain.size(); ++n)
      if (!(channel.gain[n] > 0 && channel.gain[n] <= static_cast<double>(n + 1)) || (n == 0 && channel.gain[n] != 1))
        return refused("channel " + channel.name + ": the gain of " + std::to_string(n + 1) +
                       " pieces is not above 0 and at most that, or that of one is not 1");
  return {};
}

}  // namespace

Status validate(const StepGraph& graph) {
  if (graph.tasks.empty()) return refused("a step without tasks");
  if (!(graph.least_computing_rate > 0 && graph.least_computing_rate <= 1))
    return refused("the least rate of computing is not above 0 and at most 1");
  if (const Status status = check_channels(graph); !status.ok()) return status;
  for (int task = 0; task < std::ssize(graph.tasks); ++task)
    if (const Status status = check_task(graph, task); !status.ok()) return status;
  return {};
}

double seconds_alone(const StepGraph& graph, const Option& option) {
  std::array<double, most_channels> free = {};  // by exclusive channel: when its last piece ends
  std::array<double, most_pieces> end = {};
  double last = 0;
  for (std::size_t i = 0; i < option.pieces.size(); ++i) {
    const Piece& piece = option.pieces[i];
    double start = 0;
    for (const int before : piece.after) start = std::max(start, end[before]);
    const auto exclusive = [&](std::size_t c) {
      return (piece.channels >> c & 1) != 0 && graph.channels[c].gain.size() < 2;
    };
    for (std::size_t c = 0; c < graph.channels.size(); ++c)
      if (exclusive(c)) start = std::max(start, free[c]);
    end[i] = start + piece.seconds;
    for (std::size_t c = 0; c < graph.channels.size(); ++c)
      if (exclusive(c)) free[c] = end[i];
    last = std::max(last, end[i]);
  }
  return last;
}

std::vector<int> greedy_options(const StepGraph& graph) {
  std::vector<int> chosen;
  for (const Task& task : graph.tasks) {
    const auto least = std::min_element(
        task.options.begin(), task.options.end(),
        [&](const Option& a, const Option& b) { return seconds_alone(graph, a) < seconds_alone(graph, b); });
    chosen.push_back(static_cast<int>(least - task.options.begin()));
  }
  return chosen;
}

}  // namespace plait::plan::joint
