#include "plan/joint/step_tables.h"

#include <algorithm>

namespace plait::plan::joint {
namespace {

class TableBuilder {
 public:
  TableBuilder(const StepGraph& graph, StepTables& tables) : graph_(graph), tables_(tables) {}

  void build() {
    for (const Channel& channel : graph_.channels) {
      tables_.gain.push_back(channel.gain.empty() ? std::vector<double>{1} : channel.gain);
      if (channel.gain.size() < 2) continue;
      tables_.shared |= std::uint32_t{1} << (tables_.gain.size() - 1);
      tables_.contended = true;
    }
    tables_.least_computing_rate = graph_.least_computing_rate;
    for (int task = 0; task < std::ssize(graph_.tasks); ++task) add(task);
    for (int task = 0; task < std::ssize(graph_.tasks); ++task) add_waiters(task);
  }

 private:
  bool communicates(int task) const { return graph_.tasks[task].kind == TaskKind::operation; }

  void add(int index) {
    const Task& task = graph_.tasks[index];
    FlatTask flat{.seconds = task.seconds, .computes = !communicates(index)};
    flat.first_option = static_cast<int>(tables_.options.size());
    flat.options = static_cast<int>(task.options.size());
    int most = flat.computes ? 1 : 0;
    for (const Option& option : task.options) {
      add(option);
      most = std::max(most, static_cast<int>(option.pieces.size()));
    }
    tables_.most_slots += most;
    if (flat.computes) tables_.computation += task.seconds;
    add_waits(task, flat);
    tables_.tasks.push_back(flat);
  }

  void add(const Option& option) {
    const int first = static_cast<int>(tables_.pieces.size());
    tables_.options.push_back({first, static_cast<int>(option.pieces.size())});
    for (int i = 0; i < std::ssize(option.pieces); ++i) {
      const Piece& piece = option.pieces[i];
      FlatPiece flat{.seconds = piece.seconds, .load = piece.load, .rate = piece.rate_beside_computation};
      flat.channels = piece.channels;
      flat.place = place_of(piece.channels);
      for (const int before : piece.after) {
        flat.after |= std::uint64_t{1} << before;
        tables_.pieces[first + before].before |= std::uint64_t{1} << i;
      }
      if (piece.load > 0 || piece.rate_beside_computation < 1) tables_.contended = true;
      tables_.pieces.push_back(flat);
    }
  }

  int place_of(std::uint32_t channels) {
    const auto found = std::find(tables_.places.begin(), tables_.places.end(), channels);
    if (found != tables_.places.end()) return static_cast<int>(found - tables_.places.begin());
    tables_.places.push_back(channels);
    return static_cast<int>(tables_.places.size()) - 1;
  }

  void add_waits(const Task& task, FlatTask& flat) {
    flat.first_wait = static_cast<int>(tables_.waits.size());
    for (const int before : task.after)
      if (communicates(before)) tables_.waits.push_back({before, 0});
    for (const int before : task.after_previous)
      if (communicates(before)) tables_.waits.push_back({before, 1});
    flat.waits = static_cast<int>(tables_.waits.size()) - flat.first_wait;
  }

  void add_waiters(int index) {
    FlatTask& flat = tables_.tasks[index];
    flat.first_waiter = static_cast<int>(tables_.waiters.size());
    for (int other = 0; other < std::ssize(graph_.tasks); ++other) {
      const auto names = [&](const std::vector<int>& tasks) {
        return std::find(tasks.begin(), tasks.end(), index) != tasks.end();
      };
      const Task& task = graph_.tasks[other];
      if (communicates(other) && (names(task.after) || names(task.after_previous))) tables_.waiters.push_back(other);
    }
    flat.waiters = static_cast<int>(tables_.waiters.size()) - flat.first_waiter;
  }

  const StepGraph& graph_;
  StepTables& tables_;
};

}  // namespace

StepTables::StepTables(const StepGraph& graph) { TableBuilder(graph, *this).build(); }

}  // namespace plait::plan::joint
