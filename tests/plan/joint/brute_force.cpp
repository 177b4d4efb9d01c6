#include "tests/plan/joint/brute_force.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plait::plan::joint {
namespace {

constexpr int ways = 4;  // iterations from one behind to two ahead

// The next assignment of options, as a number in digits; false behind the last.
bool next_options(const StepGraph& graph, std::vector<int>& options) {
  for (std::size_t task = 0; task < options.size(); ++task) {
    if (graph.tasks[task].options.empty()) continue;
    if (++options[task] < std::ssize(graph.tasks[task].options)) return true;
    options[task] = 0;
  }
  return false;
}

std::vector<OrderedPiece> pieces_of(const StepGraph& graph, const std::vector<int>& options) {
  std::vector<OrderedPiece> pieces;
  for (int task = 0; task < std::ssize(graph.tasks); ++task)
    if (graph.tasks[task].kind == TaskKind::operation)
      for (int piece = 0; piece < std::ssize(graph.tasks[task].options[options[task]].pieces); ++piece)
        pieces.push_back({task, piece, 0});
  return pieces;
}

class OrderSearch {
 public:
  OrderSearch(ListScheduler& scheduler, const std::vector<int>& options, BruteForce& best)
      : scheduler_(scheduler), options_(options), best_(best) {}

  void try_all(std::vector<OrderedPiece> pieces) {
    std::vector<int> permutation;
    for (int i = 1; i < std::ssize(pieces); ++i) permutation.push_back(i);
    do {
      order_ = {pieces[0]};
      for (const int i : permutation) order_.push_back(pieces[i]);
      try_ahead(1);
    } while (std::next_permutation(permutation.begin(), permutation.end()));
  }

 private:
  void try_ahead(std::size_t place) {
    if (place >= order_.size()) return try_order();
    for (int ahead = 0; ahead < ways; ++ahead) {
      order_[place].ahead = ahead;
      try_ahead(place + 1);
    }
  }

  // The first is one iteration ahead of those that are behind it.
  void try_order() {
    order_[0].ahead = 1;
    ++best_.schedules;
    if (!(scheduler_.follow(options_, order_, limits) < best_.seconds)) return;
    const double seconds = scheduler_.follow(options_, order_, exact_limits);
    if (seconds < best_.seconds) best_ = {seconds, options_, order_, best_.schedules};
  }

  static constexpr SimulationLimits limits = {.most_iterations = 16};
  ListScheduler& scheduler_;
  const std::vector<int>& options_;
  BruteForce& best_;
  std::vector<OrderedPiece> order_;
};

}  // namespace

double brute_force_schedules(const StepGraph& graph) {
  std::vector<int> options(graph.tasks.size());
  double all = 0;
  do {
    const double pieces = static_cast<double>(pieces_of(graph, options).size());
    all += std::tgamma(pieces) * std::pow(ways, pieces - 1);
  } while (all < 1e9 && next_options(graph, options));
  return all;
}

BruteForce brute_force(const StepGraph& graph) {
  const StepTables tables(graph);
  ListScheduler scheduler(tables);
  BruteForce best{.seconds = std::numeric_limits<double>::infinity(), .options = {}, .order = {}};
  std::vector<int> options(graph.tasks.size());
  do {
    OrderSearch(scheduler, options, best).try_all(pieces_of(graph, options));
  } while (next_options(graph, options));
  return best;
}

}  // namespace plait::plan::joint
