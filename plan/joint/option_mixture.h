// The best fractional assignment of options: what a step takes at least where an operation may be done partly by one option
// and partly by another. A linear programme, min over mixtures of the max over rows, whose dual is solved by
// multiplicative weights (Arora, Hazan, Kale: "The Multiplicative Weights Update Method", Theory of Computing 2012) with
// rows found as they are needed. Every price of rows gives a bound from below. Pure.
//
// Rows, each a time that an iteration cannot be shorter than:
// - a channel's work in a step; computation's, with what pieces beside it take from it;
// - from when the program comes to a place P until a computation Q begins: the work of a channel (or of computation) for
//   the operations that are submitted behind P and needed by Q; then the longest way from Q to P in the next step, with
//   the operations on it.
#pragma once

#include <vector>

#include "plan/joint/step_tables.h"

namespace plait::plan::joint {

class OptionMixture {
 public:
  explicit OptionMixture(const StepTables& tables);

  void solve();

  double bound() const { return bound_; }                               // seconds
  double channel_bound() const { return channel_bound_; }               // of channels and computation alone
  const std::vector<double>& channel_prices() const { return prices_; }  // of channels, then computation; together 1
  std::vector<std::vector<double>> mixture() const;                     // by task and option

  std::size_t resources() const { return tables_.gain.size() + 1; }
  // What an option asks of each channel in seconds, and of computation.
  const std::vector<double>& work(std::size_t option) const { return work_[option]; }
  // An option alone: its longest chain of pieces, or its busiest channel.
  double alone(std::size_t option) const { return alone_[option]; }

 private:
  struct Row {
    double constant = 0;
    std::vector<double> coefficients;  // by option
  };
  // A place P, a computation Q as tasks behind P, and a resource.
  struct Window {
    int place = 0, until = 0;
    std::size_t resource = 0;
    double seconds = 0;
  };

  double load_scale() const;
  void find_work();
  void add_channel_rows();
  void descend(int steps);
  double price_options(std::vector<double>& used);
  void average();
  bool add_windows();
  void look_from(int place, std::vector<Window>& best);
  void find_ways(int place);
  void find_needs(int place);
  void add_row(const Window& window);
  bool same_window(int place, int task, const Wait& wait) const;
  int count() const { return static_cast<int>(tables_.tasks.size()); }

  const StepTables& tables_;
  std::vector<std::vector<double>> work_;
  std::vector<double> alone_;
  std::vector<double> slowness_;  // by resource: what its work is longer by, a second of computation beside it
  std::vector<Row> rows_;
  std::vector<double> weights_;     // by row; together 1
  std::vector<double> option_cost_;  // by option, at the weights
  std::vector<double> chosen_;      // by option: how often it has been the cheapest
  std::vector<double> share_;       // by option: the mixture
  double bound_ = 0, channel_bound_ = 0;
  std::vector<double> prices_;
  // Of the mixture, by task.
  std::vector<double> mean_alone_;
  std::vector<std::vector<double>> mean_work_;
  // In a window, by task.
  std::vector<double> way_;   // from when the program comes to it until it comes to the place again
  std::vector<int> next_;     // an operation: what waits for it on its longest way; -1: nothing in the window
  std::vector<double> behind_;  // an operation: the way behind it
  std::vector<int> needed_;   // an operation: how far behind the place a computation first needs it; count(): none
};

}  // namespace plait::plan::joint
