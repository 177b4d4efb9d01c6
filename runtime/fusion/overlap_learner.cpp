#include "runtime/fusion/overlap_learner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <utility>

#include "core/text_hash.h"
#include "plan/overlap/overlap_planner.h"

namespace plait::runtime {
namespace {

constexpr std::uint64_t first_question = 32, last_question = 8192;  // calls; doubled in between
constexpr int most_changes = 3;

// The first share is next to nothing: what the program computes then, it computes alone.
constexpr std::array shares = {least_duty, 0.25, 0.5, 1.0};
constexpr std::size_t steps_of_share = 5;  // the first of which may still have what went before it
constexpr std::size_t steps_to_settle = 2, steps_of_check = 6;

// A plan that is not quicker by this much is not worth its packing.
constexpr double least_gain = 0.005;

// An answer to the question for a plan: for each call what is computed before it; then of each share but the first
// these; then an agreement's time and the start-up with their signs changed, so that the least counts: ranks that wait
// for others see more.
struct ShareAnswer {
  double slowdown = 1, overlapped_rate = 0, alone_rate = 0, step = 0;
};
constexpr std::size_t values_of_share = 4;

ShareAnswer share_answer(std::span<const double> values) { return {values[0], values[1], values[2], values[3]}; }

OverlapModel model_of(const std::vector<ShareAnswer>& answers, double startup, double agreement) {
  double quickest = 0, alone = 0;
  for (const ShareAnswer& answer : answers) {
    quickest = std::max(quickest, answer.overlapped_rate);
    alone = std::max(alone, answer.alone_rate);
  }
  if (alone == 0) alone = quickest;
  OverlapModel model;
  model.agreement = agreement;
  std::vector<double> rates;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    model.shares.push_back({.threads = 1, .duty = shares[i + 1]});
    model.slowdown.push_back(answers[i].slowdown);
    rates.push_back(answers[i].overlapped_rate > 0 ? answers[i].overlapped_rate : alone);
  }
  model.overlapped = [rates, startup](double bytes, std::size_t share) { return startup + bytes / rates[share]; };
  model.alone = [alone, startup](double bytes, std::size_t) { return startup + bytes / alone; };
  return model;
}

// So that equal texts are told from others by the largest value of both.
std::vector<double> with_sign(std::vector<double> values) {
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}
bool all_alike(const std::vector<double>& largest) {
  const std::size_t half = largest.size() / 2;
  for (std::size_t i = 0; i < half; ++i)
    if (largest[i] != -largest[half + i]) return false;
  return true;
}

constexpr double no_figures = std::numeric_limits<double>::max();

}  // namespace

// Records are noted where nothing may be thrown.
OverlapLearner::OverlapLearner() : ask_at_(first_question) {
  records_.reserve(std::max<std::size_t>(last_question, shares.size() * steps_of_share * most_calls_of_step));
}

// ---- Before a call ----

double OverlapLearner::duty(std::uint64_t call) const {
  if (state_ != State::measuring) return duty_alone_;
  if (call < recorded_from_) return 0;
  return shares[std::min<std::size_t>((call - recorded_from_) / steps_of(steps_of_share), shares.size() - 1)];
}

std::vector<double> OverlapLearner::question(std::uint64_t call, double posted) {
  if (state_ == State::settled || call < ask_at_) return {};
  switch (state_) {
    case State::watching:
      return pattern_question();
    case State::measuring:
      return figures_question(posted);
    case State::comparing:
      return with_sign({static_cast<double>(made_ == nullptr ? 0 : hash_text(overlap_plan_json(*made_)) >> 12)});
    default:
      return check_question(posted);
  }
}

void OverlapLearner::answer(std::uint64_t call, const std::vector<double>& largest, double seconds) {
  exchange_seconds_ = exchange_seconds_ == 0 ? seconds : std::min(exchange_seconds_, seconds);
  switch (state_) {
    case State::watching:
      return begin_measuring(call, largest);
    case State::measuring:
      return make_plan(largest);
    case State::comparing:
      return begin_checking(call, largest);
    default:
      return end_checking(largest);
  }
}

void OverlapLearner::settle(const std::string& verdict) {
  state_ = State::settled;
  verdict_ = verdict;
  records_ = {};
}

void OverlapLearner::watch_on(std::uint64_t call) {
  state_ = State::watching;
  pattern_ = {};
  plan_ = made_ = nullptr;
  duty_alone_ = 0;
  records_.clear();
  recorded_from_ = call;
  // What looked like steps was perhaps a part of them.
  ask_at_ = call + (first_question << (2 * ++changes_));
  if (changes_ == most_changes) settle("the program's steps change; each call by itself");
}

// ---- The step ----

std::span<RecordedCall> OverlapLearner::calls_that_may_begin() {
  return std::span(records_).last(std::min(records_.size(), calls_that_tell));
}

// Where a step may begin, all ranks must have seen it: what a rank saw by chance, another one did not. The sizes are
// the same on all of them.
std::vector<double> OverlapLearner::pattern_question() {
  std::vector<double> values;
  for (const RecordedCall& call : calls_that_may_begin()) values.push_back(call.all_done_before ? 0 : 1);
  return values;
}

void OverlapLearner::begin_measuring(std::uint64_t call, const std::vector<double>& largest) {
  for (std::size_t i = 0; i < largest.size(); ++i) calls_that_may_begin()[i].all_done_before = largest[i] == 0;
  pattern_ = step_pattern(records_);
  if (pattern_.calls == 0) {
    ask_at_ = recorded_from_ + 2 * (ask_at_ - recorded_from_);
    if (ask_at_ - recorded_from_ > last_question) settle("no steps of always the same calls; each call by itself");
    return;
  }
  pattern_.first = (pattern_.first + recorded_from_) % pattern_.calls;
  // The last whole step of what was recorded has the sizes.
  const std::uint64_t length = pattern_.calls, begins = call - call % length + pattern_.first;
  const std::uint64_t last_begin = begins <= call ? begins : begins - length;
  const auto step = records_.end() - static_cast<std::ptrdiff_t>(call - last_begin + length);
  step_bytes_.clear();
  for (std::size_t i = 0; i < length; ++i) step_bytes_.push_back((step + static_cast<std::ptrdiff_t>(i))->bytes);
  state_ = State::measuring;
  recorded_from_ = last_begin == call ? call : last_begin + length;
  records_.clear();
  ask_at_ = recorded_from_ + steps_of(shares.size() * steps_of_share);
}

bool OverlapLearner::fits(std::uint64_t number, const RecordedCall& call) const {
  if (state_ == State::watching || number < recorded_from_) return true;
  return call.bytes == step_bytes_[(number - recorded_from_) % pattern_.calls];
}

void OverlapLearner::note(const RecordedCall& call) {
  const std::uint64_t number = noted_++;
  if (state_ == State::settled || number < recorded_from_) return;
  const bool fitting = fits(number, call);
  // A plan is in force until the next question: some ranks may have begun its groups.
  if (!fitting && state_ != State::checking) return watch_on(noted_);
  changed_ |= !fitting;
  records_.push_back(call);
}

// ---- The plan ----

// Of whole steps, and the call after them, which was posted then if it has not run yet.
std::vector<RecordedCall> OverlapLearner::records_between(std::size_t from_step, std::size_t to_step,
                                                          double posted) const {
  const auto at = [&](std::size_t i) { return records_.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::size_t from = steps_of(from_step), to = steps_of(to_step);
  std::vector<RecordedCall> calls(at(from), at(to));
  calls.push_back(to < records_.size() ? records_[to] : RecordedCall{.posted = posted});
  return calls;
}

std::vector<RecordedCall> OverlapLearner::records_of_share(std::size_t share, double posted) const {
  return records_between(share * steps_of_share + 1, (share + 1) * steps_of_share, posted);
}

std::vector<double> OverlapLearner::figures_question(double posted) const {
  const std::vector<RecordedCall> undisturbed = records_of_share(0, posted);
  std::vector<double> values = step_computation(undisturbed, pattern_.calls);
  double computation = 0;
  for (const double seconds : values) computation += seconds;
  const double startup = startup_of(records_of_share(shares.size() - 1, posted), exchange_seconds_);
  const double alone_rate = step_figures(undisturbed, pattern_.calls, startup).alone_rate;
  for (std::size_t share = 1; share < shares.size(); ++share) {
    const StepFigures figures = step_figures(records_of_share(share, posted), pattern_.calls, startup);
    for (const double value : {slowdown_of(computation, figures), figures.overlapped_rate,
                               std::max(figures.alone_rate, alone_rate), figures.step})
      values.push_back(value);
  }
  values.push_back(-exchange_seconds_);
  values.push_back(-startup);
  return values;
}

void OverlapLearner::make_plan(const std::vector<double>& largest) {
  state_ = State::comparing;
  planned_after_ = noted_ / pattern_.calls;
  BackwardPass pass;
  pass.computation.assign(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(pattern_.calls));
  std::vector<ShareAnswer> answers;
  const std::span<const double> figures = std::span(largest).subspan(pattern_.calls);
  step_alone_ = no_figures;
  for (std::size_t share = 1; share < shares.size(); ++share) {
    answers.push_back(share_answer(figures.subspan((share - 1) * values_of_share, values_of_share)));
    if (answers.back().step <= step_alone_) duty_alone_ = shares[share];
    step_alone_ = std::min(step_alone_, answers.back().step);
  }
  LayerTable table{.model = "this program's step", .layers = {}};
  for (std::size_t i = 0; i < pattern_.calls; ++i)
    table.layers.push_back({.name = std::to_string(i), .bytes = step_bytes_[i], .seconds = pass.computation[i]});
  for (const std::size_t bytes : step_bytes_) pass.bytes.push_back(static_cast<double>(bytes));
  const double startup = -largest.back();
  const double agreement = -largest[largest.size() - 2];
  const OverlapModel model = model_of(answers, startup, agreement);
  const bool known =
      std::ranges::all_of(answers, [&](const ShareAnswer& answer) { return std::isfinite(answer.step); });
  if (!known || !(pass.total() > 0) || !(model.alone(pass.bytes[0], 0) < no_figures)) return;
  const OverlapComparison comparison = compare_overlap(pass, model, {}, startup);
  made_ = std::make_shared<const OverlapPlan>(overlap_plan_of(table, {}, comparison.best()));
}

void OverlapLearner::begin_checking(std::uint64_t call, const std::vector<double>& largest) {
  if (made_ == nullptr || !all_alike(largest))
    return settle("no plan could be made of what was measured; each call by itself");
  state_ = State::checking;
  plan_ = made_;
  recorded_from_ = call;
  records_.clear();
  ask_at_ = call + steps_of(steps_to_settle + steps_of_check);
  char text[160];
  std::snprintf(text, sizeof text,
                "planned after %llu steps: %zu groups of %zu calls, %.1f ms of backward pass predicted",
                static_cast<unsigned long long>(planned_after_), plan_->groups.size(), plan_->calls.size(),
                plan_->backward_seconds * 1e3);
  verdict_ = text;
}

// ---- Whether it was worth it ----

std::vector<double> OverlapLearner::check_question(double posted) const {
  return {
      step_figures(records_between(steps_to_settle, steps_to_settle + steps_of_check, posted), pattern_.calls, 0).step};
}

void OverlapLearner::end_checking(const std::vector<double>& largest) {
  if (changed_) {
    plan_ = nullptr;
    return settle(verdict_ + "; the program's steps change: not taken");
  }
  char text[96];
  std::snprintf(text, sizeof text, "; a step takes %.1f ms, with each call by itself %.1f ms", largest[0] * 1e3,
                step_alone_ * 1e3);
  const bool worth_it = largest[0] < step_alone_ * (1 - least_gain);
  if (!worth_it) plan_ = nullptr;
  settle(verdict_ + text + (worth_it ? "" : ": not taken"));
}

}  // namespace plait::runtime
