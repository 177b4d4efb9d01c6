#include "plan/joint/option_mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plait::plan::joint {
namespace {

constexpr double nothing = -std::numeric_limits<double>::infinity();
constexpr int first_steps = 300, later_steps = 120, most_rounds = 16;
constexpr int most_starts = 160;  // places that windows are looked for from
constexpr double worth_a_row = 1.002;

}  // namespace

OptionMixture::OptionMixture(const StepTables& tables) : tables_(tables) {
  find_work();
  chosen_.resize(tables.options.size());
  share_.resize(tables.options.size());
  option_cost_.resize(tables.options.size());
  mean_alone_.resize(tables.tasks.size());
  mean_work_.assign(tables.tasks.size(), std::vector<double>(resources()));
  way_.resize(tables.tasks.size() + 1);
  next_.resize(tables.tasks.size());
  behind_.resize(tables.tasks.size());
  needed_.resize(tables.tasks.size());
}

// What a second of a load of 1 takes from computation at least, wherever the piece runs: its load while computation
// runs, and time without computation otherwise. Less than 1 where so many loads can come together that computation is at
// its least rate.
double OptionMixture::load_scale() const {
  double together = 0;
  for (std::size_t channel = 0; channel < tables_.gain.size(); ++channel) {
    double most = 0;
    for (const FlatPiece& piece : tables_.pieces)
      if ((piece.channels >> channel & 1) != 0) most = std::max(most, piece.load);
    together += most * static_cast<double>(tables_.gain[channel].size());
  }
  return together > 0 ? std::min(1., (1 - tables_.least_computing_rate) / together) : 1;
}

void OptionMixture::find_work() {
  const double scale = load_scale();
  for (const FlatOption& option : tables_.options) {
    std::vector<double>& work = work_.emplace_back(resources());
    double end[most_pieces] = {}, most = 0;
    for (int i = 0; i < option.pieces; ++i) {
      const FlatPiece& piece = tables_.pieces[option.first_piece + i];
      double start = 0;
      for (int before = 0; before < i; ++before)
        if ((piece.after >> before & 1) != 0) start = std::max(start, end[before]);
      most = std::max(most, end[i] = start + piece.seconds);
      work.back() += piece.seconds * piece.load * scale;
      for (std::size_t channel = 0; channel + 1 < resources(); ++channel) {
        if ((piece.channels >> channel & 1) == 0) continue;
        const std::vector<double>& gain = tables_.gain[channel];
        work[channel] += piece.seconds / *std::max_element(gain.begin(), gain.end());
      }
    }
    alone_.push_back(std::max(most, *std::max_element(work.begin(), work.end() - 1)));
  }
  // A channel whose pieces are all slower beside computation loses that much while it runs.
  slowness_.assign(resources(), 1);
  for (std::size_t channel = 0; channel + 1 < resources(); ++channel) {
    double fastest = 0;
    for (const FlatPiece& piece : tables_.pieces)
      if ((piece.channels >> channel & 1) != 0) fastest = std::max(fastest, piece.rate);
    slowness_[channel] = fastest > 0 ? 1 - fastest : 0;
  }
}

// ---- the dual

void OptionMixture::add_channel_rows() {
  for (std::size_t resource = 0; resource < resources(); ++resource) {
    Row& row = rows_.emplace_back();
    row.constant = slowness_[resource] * tables_.computation;
    for (const std::vector<double>& work : work_) row.coefficients.push_back(work[resource]);
    weights_.push_back(1. / static_cast<double>(resources()));
  }
}

// Each operation takes the option that is cheapest at the weights: no plan costs less, and none costs more than its
// iteration takes. `used`: each row's time for these options.
double OptionMixture::price_options(std::vector<double>& used) {
  std::fill(option_cost_.begin(), option_cost_.end(), 0);
  double total = 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    total += weights_[row] * rows_[row].constant;
    if (weights_[row] < 1e-6) continue;  // costs are not negative: what is left out only makes the bound lower
    for (std::size_t option = 0; option < option_cost_.size(); ++option)
      option_cost_[option] += weights_[row] * rows_[row].coefficients[option];
  }
  for (std::size_t row = 0; row < rows_.size(); ++row) used[row] = rows_[row].constant;
  for (const FlatTask& task : tables_.tasks) {
    if (task.computes) continue;
    const auto begin = option_cost_.begin() + task.first_option;
    const auto least = std::min_element(begin, begin + task.options);
    const std::size_t option = static_cast<std::size_t>(least - option_cost_.begin());
    total += *least;
    chosen_[option] += 1;
    for (std::size_t row = 0; row < rows_.size(); ++row) used[row] += rows_[row].coefficients[option];
  }
  return total;
}

// Rows that take too long become dearer.
void OptionMixture::descend(int steps) {
  std::vector<double> used(rows_.size());
  for (int step = 0; step < steps; ++step) {
    if (step == steps / 3) std::fill(chosen_.begin(), chosen_.end(), 0);  // weights were still far off
    const double bound = price_options(used);
    if (bound > bound_) {
      bound_ = bound;
      if (rows_.size() == resources()) prices_ = weights_;
    }
    const double longest = *std::max_element(used.begin(), used.end());
    if (longest <= 0) return;
    double sum = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row)
      sum += weights_[row] *= std::exp((used[row] / longest - 1) * 3 / std::sqrt(step + 1.));
    for (double& weight : weights_) weight = std::max(weight / sum, 1e-12);
  }
}

// The options that have been chosen, on average.
void OptionMixture::average() {
  for (int index = 0; index < count(); ++index) {
    const FlatTask& task = tables_.tasks[index];
    mean_alone_[index] = 0;
    std::fill(mean_work_[index].begin(), mean_work_[index].end(), 0);
    double sum = 0;
    for (int option = task.first_option; option < task.first_option + task.options; ++option) sum += chosen_[option];
    for (int option = task.first_option; option < task.first_option + task.options; ++option) {
      const double share = share_[option] = sum > 0 ? chosen_[option] / sum : 1. / task.options;
      mean_alone_[index] += share * alone_[option];
      for (std::size_t resource = 0; resource < resources(); ++resource)
        mean_work_[index][resource] += share * work_[option][resource];
    }
  }
}

// ---- windows

// Whether what a task waits for lies, with it, between a pass of the place and the next. Tasks before the place belong
// to the step that follows.
bool OptionMixture::same_window(int place, int task, const Wait& wait) const {
  return (task < place ? 1 : 0) - wait.previous == (wait.task < place ? 1 : 0);
}

void OptionMixture::find_ways(int place) {
  std::fill(behind_.begin(), behind_.end(), nothing);
  std::fill(next_.begin(), next_.end(), -1);
  double way = 0;
  for (int i = count(); i-- > 0;) {
    const int index = (place + i) % count();
    const FlatTask& task = tables_.tasks[index];
    const double own = task.computes ? task.seconds + way : mean_alone_[index] + behind_[index];
    for (const Wait& wait : tables_.waits_of(task)) {
      if (own == nothing || !same_window(place, index, wait) || own <= behind_[wait.task]) continue;
      behind_[wait.task] = own;
      next_[wait.task] = index;
    }
    way = std::max(way, own);
    way_[index] = way;
  }
}

void OptionMixture::find_needs(int place) {
  std::fill(needed_.begin(), needed_.end(), count());
  for (int i = count(); i-- > 0;) {
    const int index = (place + i) % count();
    const FlatTask& task = tables_.tasks[index];
    const int needed = task.computes ? i : needed_[index];
    for (const Wait& wait : tables_.waits_of(task))
      if (same_window(place, index, wait)) needed_[wait.task] = std::min(needed_[wait.task], needed);
  }
}

// The longest window of each resource from this place on.
void OptionMixture::look_from(int place, std::vector<Window>& best) {
  find_ways(place);
  find_needs(place);
  std::vector<std::vector<double>> needed(resources(), std::vector<double>(tables_.tasks.size()));
  for (int index = 0; index < count(); ++index)
    if (!tables_.tasks[index].computes && needed_[index] < count())
      for (std::size_t resource = 0; resource < resources(); ++resource)
        needed[resource][needed_[index]] += mean_work_[index][resource];
  std::vector<double> sum(resources());
  double computed = 0;
  for (int i = 0; i < count(); ++i) {
    const int index = (place + i) % count();
    if (!tables_.tasks[index].computes) continue;
    for (std::size_t resource = 0; resource < resources(); ++resource) {
      sum[resource] += needed[resource][i];
      const double seconds = sum[resource] + slowness_[resource] * computed + way_[index];
      if (seconds > best[resource].seconds) best[resource] = {place, index, resource, seconds};
    }
    computed += tables_.tasks[index].seconds;
  }
  // No work, the way alone.
  if (way_[place] > best.back().seconds) best.back() = {place, place, resources(), way_[place]};
}

void OptionMixture::add_row(const Window& window) {
  Row& row = rows_.emplace_back();
  row.coefficients.resize(tables_.options.size());
  find_ways(window.place);
  find_needs(window.place);
  const int until = (window.until - window.place + count()) % count();
  if (window.resource < resources()) {
    for (int index = 0; index < count(); ++index) {
      const FlatTask& task = tables_.tasks[index];
      const int own = (index - window.place + count()) % count();
      if (task.computes && own < until) row.constant += slowness_[window.resource] * task.seconds;
      if (task.computes || needed_[index] > until) continue;
      for (int option = task.first_option; option < task.first_option + task.options; ++option)
        row.coefficients[option] += work_[option][window.resource];
    }
  }
  // The way from there on, as it is longest for the mixture.
  for (int i = until; i < count();) {
    const int index = (window.place + i) % count();
    const FlatTask& task = tables_.tasks[index];
    if (task.computes) {
      row.constant += task.seconds;
      ++i;
      continue;
    }
    const bool on_way = next_[index] >= 0 && mean_alone_[index] + behind_[index] >= way_[index];
    if (!on_way) {
      ++i;
      continue;
    }
    for (int option = task.first_option; option < task.first_option + task.options; ++option)
      row.coefficients[option] += alone_[option];
    i = (next_[index] - window.place + count()) % count();
    // What waits for it may be an operation that waits for another way; then its own way goes on from it alone.
    for (int waiter = next_[index]; !tables_.tasks[waiter].computes; waiter = next_[waiter]) {
      const FlatTask& operation = tables_.tasks[waiter];
      for (int option = operation.first_option; option < operation.first_option + operation.options; ++option)
        row.coefficients[option] += alone_[option];
      i = (next_[waiter] - window.place + count()) % count();
    }
  }
}

bool OptionMixture::add_windows() {
  std::vector<Window> best(resources() + 1);
  const int stride = (count() + most_starts - 1) / most_starts;
  for (int place = 0; place < count(); place += stride) look_from(place, best);
  const std::size_t before = rows_.size();
  for (const Window& window : best)
    if (window.seconds > bound_ * worth_a_row) add_row(window);
  const std::size_t added = rows_.size() - before;
  if (added == 0) return false;
  // New rows take half of the price.
  for (double& weight : weights_) weight *= 0.5;
  weights_.resize(rows_.size(), 0.5 / static_cast<double>(added));
  return true;
}

void OptionMixture::solve() {
  add_channel_rows();
  prices_ = weights_;
  descend(first_steps);
  for (std::size_t resource = 0; resource < resources(); ++resource) {
    double least = rows_[resource].constant;
    for (const FlatTask& task : tables_.tasks) {
      if (task.computes) continue;
      const auto begin = rows_[resource].coefficients.begin() + task.first_option;
      least += *std::min_element(begin, begin + task.options);
    }
    bound_ = std::max(bound_, least);
  }
  channel_bound_ = bound_;
  average();
  for (int round = 0; round < most_rounds && add_windows(); ++round) {
    descend(later_steps);
    average();
  }
}

std::vector<std::vector<double>> OptionMixture::mixture() const {
  std::vector<std::vector<double>> mixture;
  for (const FlatTask& task : tables_.tasks)
    mixture.emplace_back(share_.begin() + task.first_option, share_.begin() + task.first_option + task.options);
  return mixture;
}

}  // namespace plait::plan::joint
