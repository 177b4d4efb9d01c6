#include "runtime/enforcer/schedule_control.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/attempt.h"
#include "core/reduction.h"
#include "plan/step/step_plan.h"
#include "runtime/enforcer/background.h"
#include "runtime/enforcer/schedule_counts.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

constexpr std::size_t word_numbers = 2;
constexpr std::size_t text_numbers = 250;   // what is connected for short calls takes as many
constexpr std::size_t bytes_of_number = 7;  // none is negative
constexpr std::int64_t longest_text = std::int64_t{16} << 20;

// A rank that has not prepared a schedule by then leaves all with what they had.
constexpr std::uint64_t longest_preparing_ns = 20'000'000'000;

// Iterations that a median is taken of, before and after.
constexpr std::size_t compared_iterations = 8, judged_iterations = 16;
// The measured time is off by more: it is planned again.
constexpr double planned_again_beyond = 0.05;
// Less is no difference.
constexpr double noise = 0.02;

const Reducer& word_reducer() {
  static const Reducer reducer = make_reducer(Op::max, Element::i64);
  return reducer;
}

double median_of(std::span<const std::uint64_t> values) {
  std::vector<std::uint64_t> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return static_cast<double>(sorted[sorted.size() / 2]);
}

}  // namespace

ScheduleControl::ScheduleControl(Team& talk, std::unique_ptr<ScheduleSource> source, Prepare prepare)
    : source_(std::move(source)), prepare_(std::move(prepare)), part_(text_numbers) {
  words_.prepare(talk, word_numbers, word_reducer());
  texts_.prepare(talk, text_numbers, word_reducer());
  if (!words_.possible() || !texts_.possible()) state_ = State::over;
}

ScheduleControl::~ScheduleControl() {
  if (preparer_.joinable()) preparer_.join();
}

void ScheduleControl::say(const std::string& what) const {
  if (source_ != nullptr) ScheduleCounts::instance().note(what);
}

void ScheduleControl::note_iteration(std::uint64_t nanoseconds) noexcept {
  iterations_[iterations_noted_++ % iterations_.size()] = nanoseconds;
}

// ---- The first rank's words ----

// Of the schedule that the source has.
std::int64_t ScheduleControl::word_of_offer() {
  const ScheduleSource::State state = source_->state();  // which may change meanwhile
  if (state == ScheduleSource::State::without) {
    if (keeps_) {
      revising_ = false;
      return static_cast<std::int64_t>(Word::nothing);
    }
    say("none is kept to: " + source_->reason());
    return static_cast<std::int64_t>(Word::give_up);
  }
  if (state == ScheduleSource::State::working) return static_cast<std::int64_t>(Word::nothing);
  std::string text = plan::step::schedule_text(source_->schedule());
  revising_ = false;
  if (text == offered_) return static_cast<std::int64_t>(Word::nothing);
  predicted_s_ = source_->schedule().seconds;
  offered_ = std::move(text);
  return static_cast<std::int64_t>(Word::first_length) + static_cast<std::int64_t>(offered_.size());
}

// Of the schedule in force, by what its iterations took.
std::int64_t ScheduleControl::judge() {
  if (iterations_noted_ < judged_iterations) return static_cast<std::int64_t>(Word::nothing);
  const double measured_ns = median_of(iterations_);
  char line[160];
  if (measured_ns > plain_ns_ * (judged_ ? 1 + noise : 1) || (!best_.empty() && measured_ns > best_ns_ * (1 + noise))) {
    if (!best_.empty() && best_ != offered_) {
      revisions_left_ = 0;
      offered_ = best_;
      say("the revised one was slower: back to the one before");
      return static_cast<std::int64_t>(Word::first_length) + static_cast<std::int64_t>(offered_.size());
    }
    if (measured_ns > plain_ns_) {
      std::snprintf(line, sizeof line, "dropped, as it did not pay: an iteration took %.3f ms by it, %.3f ms without",
                    measured_ns * 1e-6, plain_ns_ * 1e-6);
      say(line);
      return static_cast<std::int64_t>(Word::drop);
    }
  }
  if (!judged_) {
    std::snprintf(line, sizeof line, "an iteration takes %.3f ms by it, %.3f ms without; %.3f ms predicted",
                  measured_ns * 1e-6, plain_ns_ * 1e-6, predicted_s_ * 1e3);
    say(line);
    best_ = offered_;
    best_ns_ = measured_ns;
  }
  const double slowness = measured_ns * 1e-9 / predicted_s_;
  if (!judged_ && std::abs(slowness - 1) > planned_again_beyond && revisions_left_ > 0) {
    --revisions_left_;
    revising_ = true;
    source_->begin_again(slowness);
  }
  judged_ = true;
  return revising_ ? word_of_offer() : static_cast<std::int64_t>(Word::nothing);
}

std::int64_t ScheduleControl::own_word() {
  if (source_ == nullptr) return static_cast<std::int64_t>(Word::nothing);
  switch (state_) {
    case State::watching:
      return word_of_offer();
    case State::preparing:
      if (monotonic_ns() - preparing_since_ns_ < longest_preparing_ns) break;
      say("none is kept to: a rank did not prepare it in time");
      return static_cast<std::int64_t>(Word::drop);
    case State::comparing:
      if (iterations_noted_ < compared_iterations) break;
      plain_ns_ = median_of({iterations_.data(), std::min(iterations_noted_, iterations_.size())});
      return static_cast<std::int64_t>(Word::keep);
    case State::in_force:
      return judge();
    case State::over:
      break;
  }
  return static_cast<std::int64_t>(Word::nothing);
}

// ---- Talking ----

Result<ScheduleControl::Outcome> ScheduleControl::consult(bool may_call_host) {
  return talk_ == Talk::text ? hear_text(may_call_host) : talk(may_call_host);
}

Result<ScheduleControl::Outcome> ScheduleControl::talk(bool may_call_host) {
  if (words_.needs_host() && !may_call_host) return Outcome::waiting;
  const bool begins = talk_ == Talk::none;
  if (begins) numbers_ = {own_word(), -prepared_.load(std::memory_order_acquire)};
  talk_ = Talk::words;
  const Result<bool> complete =
      begins ? words_.start(std::span<const std::int64_t>(numbers_), may_call_host) : words_.progress(may_call_host);
  if (!complete.ok()) return complete.status();
  if (!*complete) return begins || words_.moved() ? Outcome::moved : Outcome::waiting;
  words_.answer(std::span(numbers_));
  talk_ = Talk::none;
  if (numbers_[0] < static_cast<std::int64_t>(Word::first_length)) {
    decide(numbers_[0], -numbers_[1]);
    return Outcome::decided;
  }
  const std::int64_t length = numbers_[0] - static_cast<std::int64_t>(Word::first_length);
  if (length > longest_text) return Status(Code::internal, "a schedule of " + std::to_string(length) + " bytes");
  length_ = static_cast<std::size_t>(length);
  heard_ = 0;
  text_.assign(length_, '\0');
  talk_ = Talk::text;
  send_part();
  return Outcome::moved;
}

void ScheduleControl::send_part() {
  std::ranges::fill(part_, 0);
  if (source_ == nullptr) return;
  for (std::size_t i = 0; i < part_.size() && heard_ + i * bytes_of_number < length_; ++i) {
    const std::size_t at = heard_ + i * bytes_of_number;
    std::memcpy(&part_[i], offered_.data() + at, std::min(bytes_of_number, length_ - at));
  }
}

void ScheduleControl::take_part() {
  for (std::size_t i = 0; i < part_.size() && heard_ < length_; ++i) {
    const std::size_t bytes = std::min(bytes_of_number, length_ - heard_);
    std::memcpy(text_.data() + heard_, &part_[i], bytes);
    heard_ += bytes;
  }
}

Result<ScheduleControl::Outcome> ScheduleControl::hear_text(bool may_call_host) {
  if (texts_.needs_host() && !may_call_host) return Outcome::waiting;
  const bool begins = !std::exchange(part_under_way_, true);
  const Result<bool> complete =
      begins ? texts_.start(std::span<const std::int64_t>(part_), may_call_host) : texts_.progress(may_call_host);
  if (!complete.ok()) return complete.status();
  if (!*complete) return begins || texts_.moved() ? Outcome::moved : Outcome::waiting;
  part_under_way_ = false;
  texts_.answer(std::span(part_));
  take_part();
  if (heard_ < length_) {
    send_part();
    return Outcome::moved;
  }
  talk_ = Talk::none;
  begin_preparing();
  return Outcome::decided;
}

// ---- Deciding: the same on all ranks ----

void ScheduleControl::begin_preparing() {
  if (preparer_.joinable()) preparer_.join();
  candidate_.reset();
  prepared_.store(0, std::memory_order_relaxed);
  preparing_since_ns_ = monotonic_ns();
  state_ = State::preparing;
  const Status started = attempt([&]() -> Status {
    preparer_ = std::thread([this] {
      run_in_the_background();
      const Status made = attempt([&]() -> Status {
        const Result<plan::step::StepSchedule> schedule = plan::step::parse_schedule(text_);
        if (!schedule.ok()) return schedule.status();
        Result<std::unique_ptr<KnownSchedule>> known = prepare_(*schedule);
        if (!known.ok()) return known.status();
        candidate_ = std::move(*known);
        return {};
      });
      prepared_.store(made.ok() ? 1 : -1, std::memory_order_release);
    });
    return {};
  });
  if (!started.ok()) prepared_.store(-1, std::memory_order_relaxed);
}

void ScheduleControl::end_preparing() {
  prepared_.store(0, std::memory_order_relaxed);
  iterations_noted_ = 0;
  judged_ = false;
}

// `least`: how far the rank is that is least far with the candidate.
void ScheduleControl::decide(std::int64_t word, std::int64_t least) {
  change_ = Change::none;
  if (word == static_cast<std::int64_t>(Word::give_up)) {
    state_ = State::over;
  } else if (state_ == State::preparing) {
    if (word == static_cast<std::int64_t>(Word::drop) || least < 0) {
      if (least < 0) say("not kept to: a rank could not prepare it");
      state_ = keeps_ ? State::in_force : State::over;
    } else if (least == 1) {
      change_ = keeps_ ? Change::keep : Change::look_up;
      state_ = keeps_ ? State::in_force : State::comparing;
      end_preparing();
    }
  } else if (word == static_cast<std::int64_t>(Word::keep)) {
    change_ = Change::keep;
    keeps_ = true;
    state_ = State::in_force;
    end_preparing();
  } else if (word == static_cast<std::int64_t>(Word::drop)) {
    change_ = Change::drop;
    keeps_ = false;
    state_ = State::over;
  }
}

bool ScheduleControl::changes(std::unique_ptr<KnownSchedule>& schedule) {
  const Change change = std::exchange(change_, Change::none);
  if (change == Change::none) return false;
  if (change == Change::drop) {
    schedule.reset();
    return true;
  }
  if (candidate_ != nullptr) schedule = std::move(candidate_);
  schedule->in_force = change == Change::keep;
  schedule->matcher.restart();
  return true;
}

}  // namespace plait::runtime
