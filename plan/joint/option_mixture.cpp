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
  for (const std::vector<double>& gain : tables.gain) speed_.push_back(*std::max_element(gain.begin(), gain.end()));
  load_scale_ = load_scale();
  find_work();
  const std::size_t tasks = tables.tasks.size(), uses = tasks * static_cast<std::size_t>(kinds());
  prices_.resize(uses);
  use_sum_.resize(uses);
  for (std::vector<double>* by_task : {&way_prices_, &alone_sum_, &way_, &behind_}) by_task->resize(tasks);
  chosen_.resize(tables.options.size());
  next_.resize(tasks);
  needed_.resize(tasks);
}

// What a second of a load of 1 takes from computation at least, wherever the piece runs: its load while computation
// runs, and time without computation otherwise. Less than 1 where so many loads can come together that computation is
// at its least rate.
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
  for (const FlatOption& option : tables_.options) {
    std::vector<double>& work = work_.emplace_back(resources());
    double end[most_pieces] = {}, most = 0;
    for (int i = 0; i < option.pieces; ++i) {
      const FlatPiece& piece = tables_.pieces[option.first_piece + i];
      double start = 0;
      for (int before = 0; before < i; ++before)
        if ((piece.after >> before & 1) != 0) start = std::max(start, end[before]);
      most = std::max(most, end[i] = start + piece.seconds);
      work.back() += piece.seconds * piece.load * load_scale_;
      for (std::size_t channel = 0; channel + 1 < resources(); ++channel) {
        if ((piece.channels >> channel & 1) == 0) continue;
        work[channel] += piece.seconds / speed_[channel];
      }
    }
    alone_.push_back(std::max(most, *std::max_element(work.begin(), work.end() - 1)));
  }
}

std::vector<double> OptionMixture::channel_prices() const {
  std::vector<double> prices(resources());
  for (int kind = 0; kind < kinds(); ++kind) {
    const bool last = kind + 1 == kinds();
    prices[static_cast<std::size_t>(last ? channels() : kind % channels())] += channel_weights_[kind];
  }
  return prices;
}

// ---- the dual

void OptionMixture::add_whole_steps() {
  for (int kind = 0; kind < kinds(); ++kind) {
    Row& row = rows_.emplace_back();
    row.kind = kind;
    row.constant = takes_computation(kind) ? tables_.computation : 0;
    for (const FlatTask& task : tables_.tasks) row.inside.push_back(task.computes ? 0 : 1);
    row.on_way.resize(tables_.tasks.size());
  }
  weights_.assign(rows_.size(), 1. / static_cast<double>(rows_.size()));
}

// What a second of each kind costs an operation, by the rows that it is in. Whatever takes time from computation does
// so in all rows that computation is in.
void OptionMixture::price_tasks() {
  std::fill(prices_.begin(), prices_.end(), 0);
  std::fill(way_prices_.begin(), way_prices_.end(), 0);
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (weights_[row] < 1e-7) continue;  // nothing costs less than nothing: the bound is only lower without
    for (int task = 0; task < count(); ++task) {
      if (rows_[row].on_way[task] != 0) way_prices_[task] += weights_[row];
      if (rows_[row].inside[task] == 0) continue;
      double* prices = prices_.data() + task * kinds();
      prices[rows_[row].kind] += weights_[row];
      if (takes_computation(rows_[row].kind) && rows_[row].kind + 1 < kinds()) prices[kinds() - 1] += weights_[row];
    }
  }
}

// What a piece uses of each kind, beside computation or apart from it.
void OptionMixture::add_use(const FlatPiece& piece, bool beside, double* uses) const {
  for (int channel = 0; channel < channels(); ++channel) {
    if ((piece.channels >> channel & 1) == 0) continue;
    const double seconds = piece.seconds / speed_[channel];
    uses[channel] += beside ? seconds / piece.rate : seconds;
    if (!beside) uses[channels() + channel] += seconds;
  }
  if (beside) uses[kinds() - 1] += piece.seconds / piece.rate * piece.load * load_scale_;
}

// Each piece runs where it is cheaper. `uses`: null, or what is then used.
double OptionMixture::price_option(int index, const double* prices, double way_price, double* uses) const {
  const FlatOption& option = tables_.options[index];
  double cost = way_price * alone_[index];
  for (int i = 0; i < option.pieces; ++i) {
    const FlatPiece& piece = tables_.pieces[option.first_piece + i];
    double apart = 0, beside = prices[kinds() - 1] * piece.load * load_scale_ / piece.rate;
    for (int channel = 0; channel < channels(); ++channel) {
      if ((piece.channels >> channel & 1) == 0) continue;
      apart += (prices[channel] + prices[channels() + channel]) / speed_[channel];
      beside += prices[channel] / speed_[channel] / piece.rate;
    }
    cost += std::min(apart, beside) * piece.seconds;
    if (uses != nullptr) add_use(piece, beside <= apart, uses);
  }
  return cost;
}

// Each operation takes the option that is cheapest at the weights: no plan costs less, and none costs more than its
// iteration takes. `used`: each row's time for these options.
double OptionMixture::price_options(std::vector<double>& used) {
  double total = 0, uses[2 * most_channels + 1];
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    used[row] = rows_[row].constant;
    total += weights_[row] * rows_[row].constant;
  }
  price_tasks();
  for (int index = 0; index < count(); ++index) {
    const FlatTask& task = tables_.tasks[index];
    if (task.computes) continue;
    const double* prices = prices_.data() + index * kinds();
    double least = -nothing;
    int cheapest = 0;
    for (int option = task.first_option; option < task.first_option + task.options; ++option) {
      const double cost = price_option(option, prices, way_prices_[index], nullptr);
      if (cost >= least) continue;
      least = cost;
      cheapest = option;
    }
    std::fill_n(uses, kinds(), 0.);
    total += price_option(cheapest, prices, way_prices_[index], uses);
    chosen_[cheapest] += 1;
    alone_sum_[index] += alone_[cheapest];
    for (int kind = 0; kind < kinds(); ++kind) use_sum_[index * kinds() + kind] += uses[kind];
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const int kind = rows_[row].kind;
      if (rows_[row].on_way[index] != 0) used[row] += alone_[cheapest];
      if (rows_[row].inside[index] == 0) continue;
      used[row] += uses[kind];
      if (takes_computation(kind) && kind + 1 < kinds()) used[row] += uses[kinds() - 1];
    }
  }
  return total;
}

// Rows that take too long become dearer.
void OptionMixture::descend(int steps) {
  std::vector<double> used(rows_.size());
  for (int step = 0; step < steps; ++step) {
    if (step == steps / 3) {  // weights were still far off
      for (std::vector<double>* sums : {&chosen_, &alone_sum_, &use_sum_}) std::fill(sums->begin(), sums->end(), 0);
      steps_ = 0;
    }
    ++steps_;
    const double bound = price_options(used);
    if (bound > bound_) {
      bound_ = bound;
      best_weights_ = weights_;
    }
    const double longest = *std::max_element(used.begin(), used.end());
    if (longest <= 0) return;
    double sum = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row)
      sum += weights_[row] *= std::exp((used[row] / longest - 1) * 3 / std::sqrt(step + 1.));
    for (double& weight : weights_) weight = std::max(weight / sum, 1e-12);
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
    const double own = task.computes ? task.seconds + way : alone_sum_[index] / steps_ + behind_[index];
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

// The longest window of each kind from this place on.
void OptionMixture::look_from(int place, std::vector<Window>& best) {
  find_ways(place);
  find_needs(place);
  std::vector<double> uses(static_cast<std::size_t>(kinds()));
  std::vector<double> needed(use_sum_.size());  // by computation and kind
  for (int index = 0; index < count(); ++index)
    if (!tables_.tasks[index].computes && needed_[index] < count())
      for (int kind = 0; kind < kinds(); ++kind)
        needed[needed_[index] * kinds() + kind] += use_sum_[index * kinds() + kind] / steps_;
  double computed = 0;
  for (int i = 0; i < count(); ++i) {
    const int index = (place + i) % count();
    if (!tables_.tasks[index].computes) continue;
    for (int kind = 0; kind < kinds(); ++kind) uses[kind] += needed[i * kinds() + kind];
    for (int kind = 0; kind < kinds(); ++kind) {
      double seconds = uses[kind] + way_[index];
      if (takes_computation(kind)) seconds += computed + (kind + 1 < kinds() ? uses.back() : 0);
      if (seconds > best[kind].seconds) best[kind] = {place, index, kind, seconds};
    }
    computed += tables_.tasks[index].seconds;
  }
  // Nothing in the window, the way alone.
  if (way_[place] > best.back().seconds) best.back() = {place, place, -1, way_[place]};
}

// The way from there on, as it is longest for the mixture.
void OptionMixture::mark_way(const Window& window, Row& row) const {
  for (int i = behind(window.place, window.until); i < count();) {
    int index = (window.place + i++) % count();
    const FlatTask& task = tables_.tasks[index];
    if (task.computes) {
      row.constant += task.seconds;
      continue;
    }
    // The way leads through an operation where that is longer than on with the program.
    if (next_[index] < 0 || alone_sum_[index] / steps_ + behind_[index] < way_[index]) continue;
    while (!tables_.tasks[index].computes) {
      row.on_way[index] = 1;
      index = next_[index];
    }
    i = behind(window.place, index);
  }
}

void OptionMixture::add_row(const Window& window) {
  find_ways(window.place);
  find_needs(window.place);
  Row row{.kind = window.kind, .inside = {}, .on_way = {}};
  row.inside.resize(tables_.tasks.size());
  row.on_way.resize(tables_.tasks.size());
  const int until = behind(window.place, window.until);
  for (int index = 0; window.kind >= 0 && index < count(); ++index) {
    const FlatTask& task = tables_.tasks[index];
    if (task.computes && takes_computation(window.kind) && behind(window.place, index) < until)
      row.constant += task.seconds;
    if (!task.computes && needed_[index] <= until) row.inside[index] = 1;
  }
  mark_way(window, row);
  rows_.push_back(std::move(row));
}

bool OptionMixture::add_windows() {
  std::vector<Window> best(static_cast<std::size_t>(kinds()) + 1);
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

// A single row is a bound as well, and more exactly found than by prices.
void OptionMixture::solve() {
  add_whole_steps();
  best_weights_ = weights_;
  std::vector<double> used(rows_.size());
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    std::fill(weights_.begin(), weights_.end(), 0);
    weights_[row] = 1;
    bound_ = std::max(bound_, price_options(used));
  }
  std::fill(weights_.begin(), weights_.end(), 1. / static_cast<double>(rows_.size()));
  descend(first_steps);
  channel_bound_ = bound_;
  best_weights_.resize(static_cast<std::size_t>(kinds()));
  channel_weights_ = best_weights_;
  for (int round = 0; round < most_rounds && add_windows(); ++round) descend(later_steps);
}

std::vector<std::vector<double>> OptionMixture::mixture() const {
  std::vector<std::vector<double>> mixture;
  for (const FlatTask& task : tables_.tasks) {
    std::vector<double>& shares = mixture.emplace_back();
    for (int option = task.first_option; option < task.first_option + task.options; ++option)
      shares.push_back(chosen_[option] / std::max(1., steps_));
  }
  return mixture;
}

}  // namespace plait::plan::joint
