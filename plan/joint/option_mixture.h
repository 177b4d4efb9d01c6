// The best fractional assignment of options: what a step takes at least where an operation may be done partly by one
// option and partly by another. A linear programme, min over mixtures of the max over rows, whose dual is solved by
// multiplicative weights (Arora, Hazan, Kale: "The Multiplicative Weights Update Method", Theory of Computing 2012)
// with rows found as they are needed. Every price of rows gives a bound from below. Pure.
//
// Rows, each a time that an iteration cannot be shorter than. From when the program comes to a place P until a
// computation Q begins, the operations that are submitted behind P and needed by Q (or, in a whole step, all of them)
// - occupy a channel for so long; a piece, beside computation, for longer;
// - occupy a channel apart from computation for so long, and computation takes its own time, and longer for the pieces
//   beside it;
// - computation alone;
// then comes the longest way from Q to P in the next step, with the operations on it. How much of each piece runs
// beside computation and how much apart is for the mixture to choose as well.
#pragma once

#include <vector>

#include "plan/joint/step_tables.h"

namespace plait::plan::joint {

class OptionMixture {
 public:
  explicit OptionMixture(const StepTables& tables);

  void solve();

  double bound() const { return bound_; }                  // seconds
  double channel_bound() const { return channel_bound_; }  // of whole steps alone
  std::vector<double> channel_prices() const;              // for it; of channels, then computation; together 1
  std::vector<std::vector<double>> mixture() const;        // by task and option

  std::size_t resources() const { return tables_.gain.size() + 1; }
  // What an option asks of each channel in seconds, and of computation.
  const std::vector<double>& work(std::size_t option) const { return work_[option]; }
  // An option alone: its longest chain of pieces, or its busiest channel.
  double alone(std::size_t option) const { return alone_[option]; }

 private:
  // Kinds of uses: a channel (its number), a channel apart from computation (behind those), computation (the last).
  struct Row {
    double constant = 0;
    int kind = -1;             // -1: the way alone
    std::vector<char> inside;  // by task: an operation of the window
    std::vector<char> on_way;  // by task: an operation of the way
  };
  // A place P, a computation Q, and a kind of use.
  struct Window {
    int place = 0, until = 0, kind = 0;
    double seconds = 0;
  };

  double load_scale() const;
  void find_work();
  void add_whole_steps();
  void descend(int steps);
  void price_tasks();
  double price_options(std::vector<double>& used);
  double price_option(int option, const double* prices, double way_price, double* uses) const;
  void add_use(const FlatPiece& piece, bool beside, double* uses) const;
  bool add_windows();
  void look_from(int place, std::vector<Window>& best);
  void find_ways(int place);
  void find_needs(int place);
  void add_row(const Window& window);
  void mark_way(const Window& window, Row& row) const;
  bool same_window(int place, int task, const Wait& wait) const;

  int count() const { return static_cast<int>(tables_.tasks.size()); }
  int channels() const { return static_cast<int>(tables_.gain.size()); }
  int kinds() const { return 2 * channels() + 1; }
  bool takes_computation(int kind) const { return kind >= channels(); }
  int behind(int place, int task) const { return (task - place + count()) % count(); }

  const StepTables& tables_;
  std::vector<std::vector<double>> work_;
  std::vector<double> alone_;
  std::vector<double> speed_;  // by channel: its pieces together, at most
  double load_scale_ = 1;
  std::vector<Row> rows_;
  std::vector<double> weights_;  // by row; together 1
  std::vector<double> best_weights_, channel_weights_;
  std::vector<double> prices_;      // by task and kind, of a second
  std::vector<double> way_prices_;  // by task
  std::vector<double> chosen_;      // by option: how often it has been the cheapest
  double steps_ = 0;                // that chosen_ and the sums count
  double bound_ = 0, channel_bound_ = 0;
  std::vector<double> use_sum_;    // by task and kind, of the options chosen
  std::vector<double> alone_sum_;  // by task
  // In a window, by task.
  std::vector<double> way_;     // from when the program comes to it until it comes to the place again
  std::vector<int> next_;       // an operation: what waits for it on its longest way; -1: nothing in the window
  std::vector<double> behind_;  // an operation: the way behind it
  std::vector<int> needed_;     // an operation: how far behind the place a computation first needs it; count(): none
};

}  // namespace plait::plan::joint
