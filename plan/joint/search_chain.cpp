#include "plan/joint/search_chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plait::plan::joint {
namespace {

constexpr double impossible = std::numeric_limits<double>::infinity();
// Shares of what a piece adds to an iteration's time on average: what is likely to be accepted at the begin and at the
// end of a cycle.
constexpr double hottest = 0.25, coldest = 0.005;
constexpr long moves_a_piece = 12;  // in a cycle
constexpr double as_good = 1e-9;
constexpr Policy policies[] = {Policy::as_issued, Policy::fifo, Policy::lifo, Policy::critical_path};

}  // namespace

SearchChain::SearchChain(const StepTables& tables, const Setting& setting)
    : setting_(setting), random_(setting.seed), scheduler_(tables), trace_(tables) {
  for (int task = 0; task < std::ssize(setting.allowed); ++task)
    if (setting.allowed[task].size() > 1) free_.push_back(task);
  factors_.resize(static_cast<std::size_t>(tables.most_slots));
  scratch_.reserve(static_cast<std::size_t>(tables.most_slots));
}

Policy SearchChain::policy() const {
  switch (setting_.order) {
    case OrderFreedom::as_issued:
      return Policy::as_issued;
    case OrderFreedom::fifo:
      return Policy::fifo;
    case OrderFreedom::lifo:
      return Policy::lifo;
    case OrderFreedom::all:
      break;
  }
  return Policy::critical_path;
}

// ---- when it ends

double SearchChain::spent() const {
  return setting_.seconds > 0 ? setting_.clock() - begun_ : static_cast<double>(schedules_);
}

bool SearchChain::ended() {
  if (best_.seconds <= setting_.bound * (1 + as_good)) return true;
  if (free_.empty() && setting_.order != OrderFreedom::all) return true;
  if (setting_.schedules > 0 && schedules_ >= setting_.schedules) return true;
  const double now = spent();
  const double budget = setting_.seconds > 0 ? setting_.seconds : static_cast<double>(setting_.schedules);
  if (setting_.seconds > 0 && now >= budget) return true;
  return now >= 0.1 * budget && now - improved_ > 0.5 * now;
}

void SearchChain::run() {
  begun_ = setting_.seconds > 0 ? setting_.clock() : 0;
  begin();
  while (!ended()) {
    if (schedules_ >= cycle_begin_ + cycle_) next_cycle();
    step();
  }
}

// ---- the chain

// The first options in the order of the policies: the best of these plans.
void SearchChain::begin() {
  best_.seconds = impossible;
  for (const std::vector<int>& options : setting_.first) {
    candidate_.options = options;
    for (const Policy policy : policies) {
      const bool is_wanted =
          setting_.order == OrderFreedom::all ? policy != Policy::as_issued : policy == this->policy();
      if (!is_wanted) continue;
      candidate_.seconds = scheduler_.list(options, policy, exact_limits, candidate_.order);
      if (setting_.order == OrderFreedom::all)
        candidate_.seconds = scheduler_.follow(options, candidate_.order, exact_limits);
      ++schedules_;
      if (candidate_.seconds < best_.seconds) best_ = candidate_;
    }
    if (first_seconds_ == 0) first_seconds_ = best_.seconds;
  }
  current_ = best_;
  settle_in();
  cycle_begin_ = schedules_;
  cycle_seconds_ = best_.seconds;
  cycle_ = 200 + moves_a_piece * static_cast<long>(current_.order.size());
}

// What is critical in the present plan.
void SearchChain::settle_in() {
  if (setting_.order != OrderFreedom::all) return;
  scheduler_.follow(current_.options, current_.order, quick_limits);
  trace_.find(scheduler_.simulation(), current_.order, current_.seconds, random_);
}

void SearchChain::next_cycle() {
  // Cold as long as that brings something.
  if (first_cycle_ && best_.seconds < cycle_seconds_) {
    cycle_seconds_ = best_.seconds;
    return;
  }
  first_cycle_ = false;
  cycle_begin_ = schedules_;
  const double from = draw();
  if (from < 0.5) current_ = best_;
  if (from >= 0.75) scatter();
  heat_ = std::exp(2 * draw() - 1);
  settle_in();
}

// Far away: some options at random, and the order that comes of it, or some pieces at other places.
void SearchChain::scatter() {
  candidate_ = current_;
  const double share = draw();
  if (setting_.order == OrderFreedom::all && draw() < 0.5) {
    listed_ = false;
    for (std::size_t moves = 0; moves < 1 + candidate_.order.size() / 4; ++moves) {
      const State before = candidate_;
      if (!move_anywhere()) continue;
      evaluate();
      if (candidate_.seconds == impossible) candidate_ = before;
    }
  } else {
    for (const int task : free_)
      if (draw() < share) candidate_.options[task] = draw_option(task);
    if (setting_.order == OrderFreedom::all) relist();
    evaluate();
  }
  if (candidate_.seconds < impossible) take_candidate();
}

void SearchChain::step() {
  const double done = static_cast<double>(schedules_ - cycle_begin_) / static_cast<double>(cycle_);
  temperature_ = first_cycle_ ? coldest : heat_ * hottest * std::pow(coldest / hottest, done);
  temperature_ /= static_cast<double>(current_.order.empty() ? current_.options.size() : current_.order.size());
  listed_ = false;
  candidate_.options = current_.options;
  candidate_.order = current_.order;
  if (!draw_move()) {
    ++schedules_;  // so that the search ends where nothing is left to change
    return;
  }
  evaluate();
  const double worse = (candidate_.seconds - current_.seconds) / current_.seconds;
  if (worse <= 0 || draw() < std::exp(-worse / temperature_)) take_candidate();
}

// Without the freedom to order, a policy does.
void SearchChain::evaluate() {
  ++schedules_;
  if (setting_.order != OrderFreedom::all) {
    candidate_.seconds = scheduler_.list(candidate_.options, policy(), quick_limits, candidate_.order);
  } else if (!listed_) {
    candidate_.seconds = scheduler_.follow(candidate_.options, candidate_.order, quick_limits);
  }
}

void SearchChain::take_candidate() {
  if (candidate_.seconds < best_.seconds * (1 - as_good)) {
    const double exact = setting_.order == OrderFreedom::all
                             ? scheduler_.follow(candidate_.options, candidate_.order, exact_limits)
                             : scheduler_.list(candidate_.options, policy(), exact_limits, candidate_.order);
    candidate_.seconds = exact;
    if (exact < best_.seconds * (1 - as_good)) {
      best_ = candidate_;
      improved_ = spent();
    }
  }
  std::swap(current_, candidate_);
  if (setting_.order != OrderFreedom::all) return;
  if (listed_) current_.seconds = scheduler_.follow(current_.options, current_.order, quick_limits);
  if (current_.seconds < impossible) trace_.find(scheduler_.simulation(), current_.order, current_.seconds, random_);
}

// ---- moves

bool SearchChain::draw_move() {
  if (setting_.order != OrderFreedom::all) return change_option();
  const double kind = draw();
  if (kind < 0.55) return move_pieces();
  if (kind < 0.95 && !free_.empty()) return change_option();
  relist();
  return true;
}

bool SearchChain::move_pieces() {
  if (candidate_.order.size() < 2) return false;
  return draw() < 0.8 && !trace_.waits().empty() ? move_on_critical_way() : move_anywhere();
}

// Of a block, pieces that waited for each other one by one, some piece goes to another place of it.
bool SearchChain::move_on_critical_way() {
  const std::vector<ChannelWait>& waits = trace_.waits();
  const int late = pick(static_cast<int>(waits.size()));
  int early = late;
  while (early + 1 < std::ssize(waits) && waits[early + 1].second == waits[early].first && draw() < 0.6) ++early;
  const OrderedPiece &first = waits[early].first, &second = waits[late].second;
  const double kind = draw();
  if (kind < 0.2 && first.task != second.task) {
    place_operation_before(second.task, first);
  } else if (kind < 0.6) {
    place_before(find(second), find(first));
  } else {
    place_behind(find(first), find(second));
  }
  return true;
}

bool SearchChain::move_anywhere() {
  const int pieces = static_cast<int>(candidate_.order.size());
  const int moved = pick(pieces);
  const int target = draw() < 0.5 ? (moved + 1 + pick(std::min(8, pieces - 1))) % pieces : pick(pieces);
  if (target == moved) return false;
  draw() < 0.5 ? place_before(moved, target) : place_behind(moved, target);
  return true;
}

// Half of the time any; otherwise the likely ones.
int SearchChain::draw_option(int task) {
  const std::vector<int>& allowed = setting_.allowed[task];
  double left = draw() < 0.5 ? draw() : 2;
  for (const int option : allowed)
    if (left < 1 && (left -= setting_.likely[task][option]) < 0) return option;
  return allowed[pick(static_cast<int>(allowed.size()))];
}

bool SearchChain::change_option() {
  if (free_.empty()) return false;
  const std::vector<int>& critical = trace_.operations();
  int task = free_[pick(static_cast<int>(free_.size()))];
  if (!critical.empty() && draw() < 0.6) task = critical[pick(static_cast<int>(critical.size()))];
  if (setting_.allowed[task].size() < 2) return false;
  const int option = draw_option(task);
  if (option == candidate_.options[task]) return false;
  if (setting_.order == OrderFreedom::all) replace_pieces(task, option);
  candidate_.options[task] = option;
  if (setting_.order == OrderFreedom::all && draw() < 0.1) relist();
  return true;
}

// optSched of Pseudocode 1, with some noise. Not more than one evaluation: its time stands already.
void SearchChain::relist() {
  const double noise = draw() < 0.3 ? 0 : 0.5 * draw() * draw();
  for (double& factor : factors_) factor = 1 + noise * (2 * draw() - 1);
  candidate_.seconds = scheduler_.list_perturbed(candidate_.options, factors_, quick_limits, candidate_.order);
  listed_ = true;
}

// The new pieces stand where the old ones did, in proportion.
void SearchChain::replace_pieces(int task, int option) {
  const int before = scheduler_.pieces_of(task, candidate_.options[task]), now = scheduler_.pieces_of(task, option);
  scratch_.clear();
  int old = 0, fresh = 0;
  for (const OrderedPiece& ordered : candidate_.order) {
    if (ordered.task != task) {
      scratch_.push_back(ordered);
      continue;
    }
    ++old;
    while (fresh < now && fresh * before < old * now) scratch_.push_back({task, fresh++, ordered.ahead});
  }
  std::swap(scratch_, candidate_.order);
}

int SearchChain::find(const OrderedPiece& piece) const {
  for (int i = 0; i < std::ssize(candidate_.order); ++i)
    if (candidate_.order[i].task == piece.task && candidate_.order[i].piece == piece.piece) return i;
  return 0;
}

// The same order, told from another piece on: what goes from the begin of a period to its end belongs to the period
// before, one iteration ahead.
void SearchChain::turn_until_last(int position) {
  for (int i = 0; i <= position; ++i) ++candidate_.order[i].ahead;
  std::rotate(candidate_.order.begin(), candidate_.order.begin() + position + 1, candidate_.order.end());
}

void SearchChain::normalize() {
  int least = std::numeric_limits<int>::max();
  for (const OrderedPiece& ordered : candidate_.order) least = std::min(least, ordered.ahead);
  for (OrderedPiece& ordered : candidate_.order) ordered.ahead -= least;
}

// A target that stands behind the moved piece is that of the period before.
void SearchChain::place_before(int moved, int target) {
  if (target > moved) {
    turn_until_last(moved);
    target -= moved + 1;
    moved = static_cast<int>(candidate_.order.size()) - 1;
  }
  std::rotate(candidate_.order.begin() + target, candidate_.order.begin() + moved,
              candidate_.order.begin() + moved + 1);
  normalize();
}

// A target that stands before the moved piece is that of the next period.
void SearchChain::place_behind(int moved, int target) {
  if (target < moved) {
    const int pieces = static_cast<int>(candidate_.order.size());
    turn_until_last(target);
    moved -= target + 1;
    target = pieces - 1;
  }
  std::rotate(candidate_.order.begin() + moved, candidate_.order.begin() + moved + 1,
              candidate_.order.begin() + target + 1);
  normalize();
}

void SearchChain::place_operation_before(int task, const OrderedPiece& target) {
  const int pieces = scheduler_.pieces_of(task, candidate_.options[task]);
  for (int piece = 0; piece < pieces; ++piece) {
    const int moved = find({task, piece, 0}), place = find(target);
    if (moved > place) place_before(moved, place);
  }
}

}  // namespace plait::plan::joint
