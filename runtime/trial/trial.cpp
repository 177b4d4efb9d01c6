#include "runtime/trial/trial.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

namespace plait::runtime {
namespace {

// The candidate that is taken is timed before all others: its times are what theirs are compared with, and cost
// nothing.
constexpr int samples_of_reference = 3, samples_of_round = 2;
constexpr int most_rounds = 24, most_of_one = 8;

// A first call sets up connections and touches memory.
constexpr double longer_first = 0.5;                    // octaves
constexpr double least_noise = 0.06, most_noise = 0.7;  // octaves
constexpr double octaves_of_deviation = 1.44 * 1.5;     // 1/ln 2; from the median deviation to the standard deviation

// Another plan, and the host or instead of it a plan, has to be faster by more than medians of so few calls differ by
// chance: which of two equal plans is taken would else change from job to job, and the bits of sums with it.
constexpr double clearly_faster = 0.97, faster_than_host = 0.99;
constexpr int samples_to_take = 3;

// A trial whose next sample lies so far ahead is over.
constexpr double times_ahead = 16, calls_ahead = 2048;
constexpr double longest_wait = 1e9;  // calls
// A part of a call's time.
constexpr double hardly_any = 0.005;

// The model's predictions may be off by such a factor without anything to be learned from it; and where they are off by
// more, those of plans beside each other are less sure by such a factor at most.
constexpr double usual_error = 2, most_doubt = 2;

// How far from the truth a limit may be that follows from rates which were measured in a moment.
constexpr double limit_is_sure = 0.95;

// The samples that gave the reference were disturbed, or the machine has changed, when the taken candidate takes so
// many times as long or as short.
constexpr double reference_is_off_by = 2;

// What is expected when a settled candidate has become slower.
constexpr double spread_when_changed = 0.5;

constexpr std::size_t samples_of_look = 5;
// What a rank brings to the others with the samples of an open trial.
enum Besides : std::size_t { of_round, of_making, besides };
static_assert(samples_of_look <= Trial::most_samples && samples_of_reference + besides <= Trial::most_samples);
constexpr std::uint32_t confirming_interval = 32;
constexpr double slower_by = 1.2;

constexpr double never = std::numeric_limits<double>::infinity();

std::uint64_t median(std::vector<std::uint64_t> times) {
  if (times.empty()) return 0;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

double number(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds); }

// How far times vary, in octaves: of candidates that are close to each other a few samples say nothing where the
// machine is a noisy one.
double noise_of(const std::vector<std::uint64_t>& times) {
  const std::uint64_t middle = median(times);
  std::vector<std::uint64_t> deviations;
  for (const std::uint64_t time : times) deviations.push_back(time > middle ? time - middle : middle - time);
  const double deviation = middle > 0 ? number(median(std::move(deviations))) / number(middle) : 0;
  return std::clamp(octaves_of_deviation * deviation, least_noise, most_noise);
}

int most_promising(const std::vector<Prospect>& prospects) {
  int best = 1;
  for (int candidate = 0; candidate < static_cast<int>(prospects.size()); ++candidate)
    if (prospects[static_cast<std::size_t>(candidate)].ratio <
        clearly_faster * prospects[static_cast<std::size_t>(best)].ratio)
      best = candidate;
  return best;
}

}  // namespace

Trial::Trial(std::vector<Prospect> prospects, const TrialTerms& terms)
    : taken_(most_promising(prospects)), terms_(terms), prospects_(std::move(prospects)), call_bytes_(terms.bytes) {
  assert(prospects_.size() >= 2 && prospects_.size() <= most_candidates && terms.burst > 0);
  samples_.reserve(most_samples);
  begin(terms.calls_before);
}

Trial::Trial(std::uint32_t calls_by_host)
    : untimed_(calls_by_host + 1), granted_(calls_by_host + 1), taken_(host), call_bytes_(0) {}

Trial::Trial(std::vector<Prospect> prospects, const TrialTerms& terms, const Known& known)
    : taken_(known.candidate),
      terms_(terms),
      prospects_(std::move(prospects)),
      call_bytes_(terms.bytes),
      taken_nanoseconds_(known.taken_nanoseconds),
      host_nanoseconds_(known.host_nanoseconds),
      plan_nanoseconds_(known.candidate == host ? 0 : known.taken_nanoseconds) {
  samples_.reserve(most_samples);
  double& hosts = prospects_[host].ratio;
  if (known.candidate == host)
    hosts = std::min(hosts, faster_than_host);
  else if (known.taken_nanoseconds > 0 && known.host_nanoseconds > 0)
    hosts = number(known.host_nanoseconds) / number(known.taken_nanoseconds) *
            prospects_[static_cast<std::size_t>(known.candidate)].ratio;
  watch();
}

// Where samples may take nothing, none is taken, not of the taken candidate either: the ranks would meet for it.
void Trial::begin(std::uint32_t calls_before) {
  ++trials_;
  slower_ = false;
  rounds_ = 0;
  candidates_.clear();
  if (terms_.part <= 0) return rest();
  open_ = true;
  std::array<int, samples_of_reference> reference{};
  reference.fill(taken_);
  begin_round(reference, calls_before);
}

void Trial::begin_round(std::span<const int> turns, std::uint32_t calls_before) {
  samples_.clear();
  std::ranges::copy(turns, turns_.begin());
  wanted_ = turns.size();
  untimed_ = granted_ = calls_before + 1;
}

void Trial::rest() {
  open_ = false;
  watch_after(std::numeric_limits<std::uint32_t>::max());
}

bool Trial::expect_of_host(Prospect prospect) {
  if (host_nanoseconds_ != 0 || taken_nanoseconds_ != 0) return false;
  prospects_[host] = prospect;
  const int before = std::exchange(taken_, most_promising(prospects_));
  if (taken_ == before) return false;
  std::ranges::replace(turns_, before, taken_);
  return true;
}

int Trial::candidate() const { return open_ ? turns_[std::min(samples_.size(), wanted_ - 1)] : taken_; }

// All calls since the last one that was timed have gone by the taken candidate.
void Trial::pass() {
  saved_ += saved_lately();
  calls_ += granted_;
  passed_ += number(granted_) * number(taken_nanoseconds_);
  untimed_ = granted_ = 1;
}

// The first call of a burst comes from another candidate's memory, and does not count for that, but as spent.
void Trial::note(std::uint64_t nanoseconds, std::size_t bytes) {
  pass();
  call_bytes_ = bytes;
  const std::uint64_t usual = at_usual_size(nanoseconds, bytes);
  (in_burst_ == 0 && terms_.burst > 1 ? first_ : partial_) += usual;
  if (++in_burst_ < terms_.burst) return;
  const auto counted = static_cast<std::uint64_t>(std::max(terms_.burst - 1, 1));
  const std::uint64_t sample = std::max<std::uint64_t>(partial_ / counted, 1);
  if (first_ > sample) besides_ += first_ - sample;
  samples_.push_back(sample);
  first_ = partial_ = 0;
  in_burst_ = 0;
  if (!open_ || samples_.size() != wanted_) return;
  for (const std::uint64_t spent : {std::exchange(besides_, 0), own_making_}) samples_.push_back(spent);
}

void Trial::note_making(int candidate, std::uint64_t nanoseconds) {
  own_making_ = std::max(own_making_, nanoseconds);
  if (open_ && candidate != taken_) besides_ += nanoseconds;
}

// A call takes as long as some bytes more than it has, each taking the same time.
std::uint64_t Trial::at_usual_size(std::uint64_t nanoseconds, std::size_t bytes) const {
  if (bytes == terms_.bytes) return nanoseconds;
  const double here = terms_.fixed_bytes + static_cast<double>(bytes);
  const double usual = terms_.fixed_bytes + static_cast<double>(terms_.bytes);
  return here > 0 ? static_cast<std::uint64_t>(number(nanoseconds) * usual / here) : nanoseconds;
}

bool Trial::conclude() {
  const int before = taken_;
  if (open_)
    conclude_round();
  else
    conclude_look();
  return taken_ != before;
}

void Trial::conclude_round() {
  take_what_was_spent();
  if (candidates_.empty())
    take_reference();
  else
    for (std::size_t i = 0; i < wanted_; ++i) take_sample(turns_[i], samples_[i]);
  ++rounds_;
  take_faster();
  taken_nanoseconds_ = time_of(taken_);
  const double current = number(taken_nanoseconds_);
  if (current > reference_is_off_by * reference_ || reference_is_off_by * current < reference_) refer_to_taken();
  if (const std::uint64_t hosts = time_of(host); hosts != 0) host_nanoseconds_ = hosts;
  if (const std::uint64_t fastest = time_of_fastest_plan(); fastest != 0) plan_nanoseconds_ = fastest;
  go_on();
}

std::uint64_t Trial::nanoseconds_besides(std::size_t samples) const {
  return samples * terms_.meeting_nanoseconds + terms_.agreeing_nanoseconds;
}

void Trial::take_what_was_spent() {
  spent_ += number(nanoseconds_besides(wanted_) + samples_[wanted_ + of_round]);
  making_ = std::max(making_, samples_[wanted_ + of_making]);
  samples_.resize(wanted_);
}

void Trial::take_reference() {
  noise_ = noise_of(samples_);
  referred_ = taken_;
  candidates_.assign(prospects_.size(), Candidate({}));
  of(taken_).times = samples_;
  of(taken_).seen = static_cast<int>(samples_.size());
  refer_to_taken();
  if (taken_nanoseconds_ == 0) passed_ = calls_ * reference_;
}

// What is expected of candidates that were not tried counts from the time that the referred one has shown; what others
// have shown does not.
void Trial::refer_to_taken() {
  reference_ = std::max(1.0, number(time_of(taken_)));
  unit_ = std::max(1.0, number(time_of(referred_))) / prospects_[static_cast<std::size_t>(referred_)].ratio;
  for (int candidate = 0; candidate < static_cast<int>(candidates_.size()); ++candidate) {
    Belief belief(expected_of(candidate));
    for (const std::uint64_t time : of(candidate).times) belief.see(number(time) / reference_, noise_);
    of(candidate).belief = belief;
  }
}

// Where the first plan takes longer than predicted, something was not foreseen: less is known of the other plans; and
// the host, of which nothing was predicted, may do without it.
Prospect Trial::expected_of(int candidate) const {
  const double shown = number(time_of(referred_));
  if (candidate == referred_) return {std::max(1.0, shown) / reference_, least_noise};
  double unforeseen = 1;
  if (referred_ == host + 1 && terms_.predicted_nanoseconds > 0)
    unforeseen = std::max(1.0, shown / number(terms_.predicted_nanoseconds) / usual_error);
  const Prospect& prospect = prospects_[static_cast<std::size_t>(candidate)];
  const double ratio = prospect.ratio * unit_ / reference_;
  if (candidate == host) return {ratio / std::sqrt(unforeseen), prospect.spread};
  return {ratio, prospect.spread * std::min(unforeseen, most_doubt)};
}

void Trial::take_sample(int candidate, std::uint64_t nanoseconds) {
  Candidate& sampled = of(candidate);
  const bool first = sampled.seen++ == 0 && candidate != taken_ && terms_.burst == 1;
  const double time = number(nanoseconds);
  const double ratio = std::max(time, 1.0) / reference_;
  if (first)
    sampled.belief.see_first(ratio, noise_, noise_ + longer_first);
  else
    sampled.belief.see(ratio, noise_);
  const double current = number(time_of(taken_));
  if (candidate != taken_) spent_ += terms_.burst * std::max(0.0, time - current);
  if (!first || time < current) sampled.times.push_back(nanoseconds);
  if (candidate == taken_) noise_ = noise_of(sampled.times);
}

std::uint64_t Trial::time_of(int candidate) const { return candidates_.empty() ? 0 : median(of(candidate).times); }

std::uint64_t Trial::time_of_fastest_plan() const {
  std::uint64_t fastest = 0;
  for (int plan = host + 1; plan < static_cast<int>(candidates_.size()); ++plan)
    if (const std::uint64_t time = time_of(plan); time != 0 && (fastest == 0 || time < fastest)) fastest = time;
  return fastest;
}

double Trial::must_be_below(int candidate) const {
  return candidate == host || taken_ == host ? faster_than_host : clearly_faster;
}

void Trial::take_faster() {
  for (int candidate = 0; candidate < static_cast<int>(candidates_.size()); ++candidate) {
    if (candidate == taken_ || of(candidate).times.size() < samples_to_take) continue;
    if (number(time_of(candidate)) < must_be_below(candidate) * number(time_of(taken_))) taken_ = candidate;
  }
}

// Both samples of a round are taken one after the other, the taken candidate's first in every second round: a program
// that makes calls of two lengths in turn gives both to both.
void Trial::go_on() {
  const std::optional<Turn> next = rounds_ < most_rounds ? next_turn() : std::nullopt;
  if (!next) return settle();
  const bool taken_first = rounds_ % 2 != 0;
  const std::array<int, samples_of_round> turns = {taken_first ? taken_ : next->candidate,
                                                   taken_first ? next->candidate : taken_};
  const double wait = std::clamp(next->due - calls_ - 1, 0.0, longest_wait);
  begin_round(turns, static_cast<std::uint32_t>(wait));
}

std::optional<Trial::Turn> Trial::next_turn() const {
  std::optional<Turn> next;
  for (int candidate = 0; candidate < static_cast<int>(candidates_.size()); ++candidate) {
    if (candidate == taken_ || of(candidate).seen >= most_of_one) continue;
    const double pays = pays_of(candidate);
    if (pays > std::max(times_ahead * calls_, calls_ahead)) continue;
    if (const double due = std::max(pays, fits_of(candidate)); !next || due < next->due) next = Turn{candidate, due};
  }
  return next;
}

double Trial::cost_of(int candidate) const {
  const double current = number(time_of(taken_)) / reference_;
  return terms_.burst * of(candidate).belief.loss(current) + number(besides_of(candidate)) / reference_;
}

// After so many calls as many again, which is what can be said of a program's end, would gain what a sample costs.
double Trial::pays_of(int candidate) const {
  const double gain = gain_of(candidate) * number(time_of(taken_)) / reference_;
  if (gain <= 0 || terms_.part <= 0) return never;
  return cost_of(candidate) / gain * (TrialTerms::usual_part / terms_.part);
}

// After so many all samples together have their part of the time at most. A disturbed sample makes the next one wait
// for long, but ends nothing.
double Trial::fits_of(int candidate) const {
  const double paid_after = (spent_ + cost_of(candidate) * reference_) / terms_.part;
  return calls_ + std::max(0.0, paid_after - passed_) / number(time_of(taken_));
}

double Trial::gain_of(int candidate) const {
  const double current = number(time_of(taken_)) / reference_;
  return of(candidate).belief.gain(must_be_below(candidate) * current, least_ratio(candidate)) / current;
}

std::uint64_t Trial::besides_of(int candidate) const {
  const bool to_make = candidate != host && of(candidate).seen == 0;
  const std::uint64_t making = making_ != 0 ? making_ : terms_.making_nanoseconds;
  return nanoseconds_besides(samples_of_round) + (to_make ? making : 0);
}

// A limit that was clearly fallen below is none.
double Trial::least_ratio(int candidate) const {
  const double least = number(candidate == host ? terms_.hosts_least_nanoseconds : terms_.least_nanoseconds);
  const double current = number(time_of(taken_));
  return limit_is_sure * least <= current ? std::min(least, current) / reference_ : 0;
}

void Trial::settle() {
  for (std::size_t candidate = 0; candidate < candidates_.size(); ++candidate)
    if (const std::uint64_t time = median(candidates_[candidate].times); time != 0)
      prospects_[candidate].ratio = number(time) / unit_;
  std::vector<Candidate>().swap(candidates_);
  open_ = false;
  // What was opened again before is looked at less often: the machine is a noisy one.
  interval_ = std::min(first_interval << std::min(trials_ - 1, 5), longest_interval);
  watch();
}

// A look keeps to the part of the time as well, at most so often.
void Trial::watch() {
  if (terms_.part <= 0) return rest();
  const double look = number(nanoseconds_besides(samples_of_look)), call = number(taken_nanoseconds_);
  const double paid = call > 0 ? std::min(look / (terms_.part * call), longest_wait) : 0;
  watch_after(std::max(interval_, static_cast<std::uint32_t>(paid)));
}

void Trial::watch_after(std::uint32_t calls) {
  samples_.clear();
  wanted_ = samples_of_look;
  untimed_ = granted_ = calls;
}

// Slower at two looks, shortly one after the other: the trial is opened again. What the others took before is not sure
// any more.
void Trial::conclude_look() {
  if (terms_.part <= 0) return rest();
  spent_ += number(nanoseconds_besides(samples_of_look));
  const bool slower = number(median({samples_.begin(), samples_.end()})) > slower_by * number(taken_nanoseconds_);
  if (slower && slower_) {
    for (Prospect& prospect : prospects_) prospect.spread = std::max(prospect.spread, spread_when_changed);
    begin(0);
    return;
  }
  slower_ = slower;
  if (slower) return watch_after(confirming_interval);
  interval_ = std::min(2 * interval_, longest_interval);
  watch();
}

bool Trial::informed() const {
  for (int candidate = 0; candidate < static_cast<int>(candidates_.size()); ++candidate)
    if (candidate != taken_ && of(candidate).times.empty() && gain_of(candidate) > hardly_any) return false;
  return !open_ || !candidates_.empty();
}

// Of the size that the program's calls have.
std::uint64_t Trial::less_than_host() const {
  if (taken_ == host || host_nanoseconds_ <= taken_nanoseconds_) return 0;
  const std::uint64_t usual = host_nanoseconds_ - taken_nanoseconds_;
  const double whole = terms_.fixed_bytes + static_cast<double>(terms_.bytes);
  if (call_bytes_ == terms_.bytes || whole <= 0) return usual;
  return static_cast<std::uint64_t>(number(usual) * (terms_.fixed_bytes + static_cast<double>(call_bytes_)) / whole);
}

// Of the calls since the last one that was timed. While the trial is open those that are timed are not counted.
std::uint64_t Trial::saved_lately() const {
  return (granted_ - std::max<std::uint32_t>(untimed_, open_ ? 1 : 0)) * less_than_host();
}

}  // namespace plait::runtime
