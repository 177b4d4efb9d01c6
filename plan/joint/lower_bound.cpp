#include "plan/joint/lower_bound.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "plan/joint/option_mixture.h"
#include "plan/joint/step_tables.h"

namespace plait::plan::joint {
namespace {

constexpr double nowhere = -std::numeric_limits<double>::infinity();
constexpr int circle_steps = 64;
constexpr double worth_a_look = 0.02;  // share of a mixture
constexpr int most_places = 128;       // of the program from which windows are looked at

// A price a second of each channel, and of computation behind them; together 1.
using Prices = std::vector<double>;

// Something that runs between two passes of a place: not before `head` after the first, for `work`, and it leaves
// `tail` until the second.
struct Job {
  double head = 0, work = 0, tail = 0;
};

// An operation whatever its option, at some prices.
struct Share {
  double work = 0;
  double into = 0, left = 0;  // before its first and behind its last priced piece
};

class BoundSearch {
 public:
  explicit BoundSearch(const StepGraph& graph);
  Relaxation relaxed();

 private:
  double circle_bound() const;
  void circle_step(std::vector<double>& program, std::vector<double>& end) const;
  Share share(int task, const Prices& prices) const;
  double piece_price(const FlatPiece& piece, const Prices& prices) const;
  double windows_from(int place);
  void heads_from(int place);
  void tails_to(int place);
  bool in_window(int place, int task, const Wait& wait) const;
  static double jackson(std::vector<Job>& jobs);

  int count() const { return static_cast<int>(tables_.tasks.size()); }
  std::size_t resources() const { return mixture_.resources(); }

  const StepTables tables_;
  OptionMixture mixture_;
  std::vector<double> shortest_;            // by task: its computation, or its shortest option
  std::vector<std::vector<Share>> shares_;  // by prices and task
  std::vector<double> head_, tail_;         // by task, in a window
};

BoundSearch::BoundSearch(const StepGraph& graph) : tables_(graph), mixture_(tables_) {
  for (const FlatTask& task : tables_.tasks) {
    double least = task.computes ? task.seconds : std::numeric_limits<double>::infinity();
    for (int option = 0; option < task.options; ++option)
      least = std::min(least, mixture_.alone(static_cast<std::size_t>(task.first_option + option)));
    shortest_.push_back(least);
  }
  head_.resize(tables_.tasks.size());
  tail_.resize(tables_.tasks.size());
}

// ---- circles

// When the program comes to each task, and when operations end, one step on.
void BoundSearch::circle_step(std::vector<double>& program, std::vector<double>& end) const {
  const std::vector<double> before = end;
  double now = program.back();
  for (int index = 0; index < count(); ++index) {
    const FlatTask& task = tables_.tasks[index];
    if (!task.computes) now = std::max(now, before[index]);
    double start = now;
    for (const Wait& wait : tables_.waits_of(task))
      start = std::max(start, wait.previous == 1 ? before[wait.task] : end[wait.task]);
    end[index] = start + shortest_[index];
    if (task.computes) now = end[index];
    program[index] = now;
  }
}

// Channels left aside, times grow by the longest circle a step, and never by less than the least growth of anything
// (Collatz and Wielandt's bound, in max-plus algebra).
double BoundSearch::circle_bound() const {
  std::vector<std::vector<double>> times;
  std::vector<double> program(tables_.tasks.size()), end(tables_.tasks.size());
  double best = 0;
  for (int step = 0; step < circle_steps; ++step) {
    circle_step(program, end);
    std::vector<double>& all = times.emplace_back(program);
    all.insert(all.end(), end.begin(), end.end());
    for (int over = 1; over <= std::min(step, 4); ++over) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < all.size(); ++i)
        least = std::min(least, all[i] - times[static_cast<std::size_t>(step - over)][i]);
      best = std::max(best, least / over);
    }
  }
  return best;
}

// ---- windows: from one pass of the program by a place to the next

double BoundSearch::piece_price(const FlatPiece& piece, const Prices& prices) const {
  double price = prices.back() * piece.load;
  for (std::size_t channel = 0; channel + 1 < resources(); ++channel)
    if ((piece.channels >> channel & 1) != 0) price += prices[channel];
  return price * piece.seconds;
}

Share BoundSearch::share(int index, const Prices& prices) const {
  const FlatTask& task = tables_.tasks[index];
  if (task.computes) return {.work = prices.back() * task.seconds};
  const double many = std::numeric_limits<double>::infinity();
  Share share{many, many, many};
  for (int choice = 0; choice < task.options; ++choice) {
    const FlatOption& option = tables_.options[task.first_option + choice];
    const std::vector<double>& work = mixture_.work(static_cast<std::size_t>(task.first_option + choice));
    double cost = 0;
    for (std::size_t resource = 0; resource < resources(); ++resource) cost += prices[resource] * work[resource];
    share.work = std::min(share.work, cost);
    double start[most_pieces] = {}, behind[most_pieces] = {};
    const FlatPiece* pieces = tables_.pieces.data() + option.first_piece;
    for (int i = 0; i < option.pieces; ++i)
      for (int before = 0; before < i; ++before)
        if ((pieces[i].after >> before & 1) != 0) start[i] = std::max(start[i], start[before] + pieces[before].seconds);
    for (int i = option.pieces; i-- > 0;)
      for (int later = i + 1; later < option.pieces; ++later)
        if ((pieces[later].after >> i & 1) != 0) behind[i] = std::max(behind[i], behind[later] + pieces[later].seconds);
    for (int i = 0; i < option.pieces; ++i) {
      if (piece_price(pieces[i], prices) <= 0) continue;
      share.into = std::min(share.into, start[i]);
      share.left = std::min(share.left, behind[i]);
    }
  }
  return share;
}

// Whether what a task of the window waits for is in the same window. Tasks before the place belong to its next step.
bool BoundSearch::in_window(int place, int task, const Wait& wait) const {
  return (task < place ? 1 : 0) - wait.previous == (wait.task < place ? 1 : 0);
}

void BoundSearch::heads_from(int place) {
  double now = 0;
  for (int i = 0; i < count(); ++i) {
    const int index = (place + i) % count();
    double start = now;
    for (const Wait& wait : tables_.waits_of(tables_.tasks[index]))
      if (in_window(place, index, wait)) start = std::max(start, head_[wait.task] + shortest_[wait.task]);
    head_[index] = start;
    if (tables_.tasks[index].computes) now = start + shortest_[index];
  }
}

// Of operations that nothing in the window waits for: nowhere.
void BoundSearch::tails_to(int place) {
  std::fill(tail_.begin(), tail_.end(), nowhere);
  double left = 0;  // from when the program comes to the next task
  for (int i = count(); i-- > 0;) {
    const int index = (place + i) % count();
    const FlatTask& task = tables_.tasks[index];
    if (task.computes) tail_[index] = left;
    if (tail_[index] == nowhere) continue;
    const double whole = shortest_[index] + tail_[index];
    for (const Wait& wait : tables_.waits_of(task))
      if (in_window(place, index, wait)) tail_[wait.task] = std::max(tail_[wait.task], whole);
    left = std::max(left, whole);
  }
}

// The most of (least head + all work + least tail) over all sets of jobs: of the jobs that are there, the one with the
// longest tail runs, and gives way to a longer one.
double BoundSearch::jackson(std::vector<Job>& jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.head < b.head; });
  const auto shorter = [](const Job& a, const Job& b) { return a.tail < b.tail; };
  std::priority_queue<Job, std::vector<Job>, decltype(shorter)> there(shorter);
  double now = 0, most = 0;
  for (std::size_t next = 0; next < jobs.size() || !there.empty();) {
    if (there.empty()) now = std::max(now, jobs[next].head);
    while (next < jobs.size() && jobs[next].head <= now) there.push(jobs[next++]);
    Job job = there.top();
    there.pop();
    const double until = next < jobs.size() ? std::min(jobs[next].head, now + job.work) : now + job.work;
    job.work -= until - now;
    now = until;
    if (job.work > 1e-15 * now) {
      there.push(job);
    } else {
      most = std::max(most, now + job.tail);
    }
  }
  return most;
}

double BoundSearch::windows_from(int place) {
  heads_from(place);
  tails_to(place);
  double most = 0;
  std::vector<Job> jobs;
  for (const std::vector<Share>& shares : shares_) {
    jobs.clear();
    for (int index = 0; index < count(); ++index) {
      const Share& share = shares[index];
      if (tail_[index] == nowhere || share.work <= 0) continue;
      jobs.push_back({head_[index] + share.into, share.work, tail_[index] + share.left});
    }
    most = std::max(most, jackson(jobs));
  }
  return most;
}

Relaxation BoundSearch::relaxed() {
  Relaxation relaxed;
  LowerBound& bound = relaxed.bound;
  bound.circle = circle_bound();
  mixture_.solve();
  bound.channels = mixture_.channel_bound();
  bound.mixture = mixture_.bound();
  std::vector<Prices> all = {mixture_.channel_prices()};
  for (std::size_t resource = 0; resource < resources(); ++resource) all.emplace_back(resources(), 0.)[resource] = 1;
  for (const Prices& prices : all) {
    std::vector<Share>& shares = shares_.emplace_back();
    for (int index = 0; index < count(); ++index) shares.push_back(share(index, prices));
  }
  const int stride = (count() + most_places - 1) / most_places;
  for (int place = 0; place < count(); place += stride) bound.windows = std::max(bound.windows, windows_from(place));
  relaxed.mixture = mixture_.mixture();
  return relaxed;
}

}  // namespace

Relaxation relaxation(const StepGraph& graph) { return BoundSearch(graph).relaxed(); }

LowerBound lower_bound(const StepGraph& graph) { return relaxation(graph).bound; }

std::vector<int> rounded(const StepGraph& graph, const std::vector<std::vector<double>>& mixture) {
  const std::size_t channels = graph.channels.size();
  std::vector<double> owed(channels);  // work of the mixture so far that no chosen option has done
  std::vector<int> chosen(graph.tasks.size());
  for (std::size_t task = 0; task < graph.tasks.size(); ++task) {
    const std::vector<Option>& options = graph.tasks[task].options;
    std::vector<std::vector<double>> works;
    for (std::size_t option = 0; option < options.size(); ++option) {
      std::vector<double>& work = works.emplace_back(channels);
      for (const Piece& piece : options[option].pieces)
        for (std::size_t channel = 0; channel < channels; ++channel)
          if ((piece.channels >> channel & 1) != 0) work[channel] += piece.seconds;
      for (std::size_t channel = 0; channel < channels; ++channel)
        owed[channel] += mixture[task][option] * work[channel];
    }
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t option = 0; option < options.size(); ++option) {
      if (mixture[task][option] < worth_a_look) continue;
      double most = -std::numeric_limits<double>::infinity();
      for (std::size_t channel = 0; channel < channels; ++channel)
        most = std::max(most, works[option][channel] - owed[channel]);
      if (most >= least) continue;
      least = most;
      chosen[task] = static_cast<int>(option);
    }
    if (options.empty()) continue;
    for (std::size_t channel = 0; channel < channels; ++channel) owed[channel] -= works[chosen[task]][channel];
  }
  return chosen;
}

}  // namespace plait::plan::joint
