#include "runtime/trial/trial.h"

#include <algorithm>
#include <numeric>

namespace plait::runtime {
namespace {

// A trial goes on in stages, after each of which the ranks bring their times together, and candidates that are far
// behind are left out. The first calls of all candidates set up connections and touch memory, and do not count.
struct Stage {
  std::size_t rounds;  // in each of which every candidate has one call
  std::size_t uncounted;
  double most_behind;  // times the fastest one's: slower candidates are left out afterwards
};
constexpr std::array<Stage, 3> stages = {{{3, 1, 4.0}, {4, 0, 1.25}, {8, 0, 1.0}}};
static_assert(stages[2].rounds * Trial::most_candidates <= Trial::most_samples);

constexpr std::size_t samples_of_look = 5;
constexpr std::uint32_t confirming_interval = 32;
constexpr double slower_by = 1.2;

// Another plan than the best predicted one has to be faster by more than medians of so few calls differ by chance:
// which of two equal plans is taken would else change from job to job, and the bits of sums with it.
constexpr double clearly_faster = 0.97;

std::uint64_t median(std::vector<std::uint64_t> times) {
  if (times.empty()) return 0;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

double scaled(std::uint64_t nanoseconds, double factor) { return static_cast<double>(nanoseconds) * factor; }

}  // namespace

Trial::Trial(int candidates, int burst, std::uint32_t calls_before) : candidates_(candidates), burst_(burst) {
  samples_.reserve(most_samples);
  begin();
  untimed_ = granted_ = calls_before + 1;
}

Trial::Trial(int candidates, const Known& known, int burst)
    : taken_(known.candidate),
      candidates_(candidates),
      burst_(burst),
      taken_nanoseconds_(known.taken_nanoseconds),
      host_nanoseconds_(known.host_nanoseconds) {
  samples_.reserve(most_samples);
  watch_after(first_interval);
}

void Trial::begin() {
  ++trials_;
  open_ = true;
  slower_ = false;
  stage_ = 0;
  left_.resize(static_cast<std::size_t>(candidates_));
  std::iota(left_.begin(), left_.end(), host);
  for (auto& times : times_) times.clear();
  begin_stage();
}

void Trial::begin_stage() {
  samples_.clear();
  wanted_ = stages[stage_].rounds * left_.size();
  untimed_ = granted_ = 1;
}

// Each round begins with the candidate after that which began the last one: a program that makes calls of several
// lengths in turn gives all of them to each candidate.
int Trial::candidate_of(std::size_t sample) const { return left_[(sample + sample / left_.size()) % left_.size()]; }

int Trial::candidate() const { return open_ ? candidate_of(samples_.size()) : taken_; }

void Trial::note(std::uint64_t nanoseconds) {
  if (!open_) settled_calls_ += granted_;
  untimed_ = granted_ = 1;
  partial_ += nanoseconds;
  if (++in_burst_ < burst_) return;
  samples_.push_back(partial_ / static_cast<std::uint64_t>(burst_));
  partial_ = 0;
  in_burst_ = 0;
}

bool Trial::conclude() {
  const int before = taken_;
  if (open_)
    conclude_stage();
  else
    conclude_look();
  return taken_ != before;
}

void Trial::conclude_stage() {
  const std::size_t first = stages[stage_].uncounted * left_.size();
  for (std::size_t i = first; i < samples_.size(); ++i)
    times_[static_cast<std::size_t>(candidate_of(i))].push_back(samples_[i]);
  drop_slow_candidates();
  ++stage_;
  if (stage_ < stages.size() && left_.size() > 1)
    begin_stage();
  else
    settle();
}

// By the fastest of two calls in the first stage: a rank that lost its core in one of them is no reason to leave a
// candidate out.
std::uint64_t Trial::value_of(int candidate) const {
  const auto& times = times_[static_cast<std::size_t>(candidate)];
  return open_ && stage_ == 0 ? *std::ranges::min_element(times) : median(times);
}

void Trial::drop_slow_candidates() {
  std::uint64_t best = value_of(left_.front());
  for (const int candidate : left_) best = std::min(best, value_of(candidate));
  const double most = scaled(best, stages[stage_].most_behind);
  if (stage_ + 1 < stages.size())
    std::erase_if(left_, [&](int candidate) { return scaled(value_of(candidate), 1.0) > most; });
}

// The host where no plan is faster.
int Trial::fastest() const {
  int best = 0;
  for (const int candidate : left_) {
    if (candidate == host) continue;
    if (best == 0 || scaled(value_of(candidate), 1.0) < scaled(value_of(best), clearly_faster)) best = candidate;
  }
  const bool host_left = left_.front() == host;
  return best != 0 && (!host_left || value_of(best) < value_of(host)) ? best : host;
}

void Trial::settle() {
  taken_ = fastest();
  taken_nanoseconds_ = value_of(taken_);
  host_nanoseconds_ = median(times_[host]);
  open_ = false;
  settled_calls_ = 0;
  // What was opened again before is looked at less often: the machine is a noisy one.
  interval_ = std::min(first_interval << std::min(trials_ - 1, 5), longest_interval);
  watch_after(interval_);
}

void Trial::watch_after(std::uint32_t calls) {
  samples_.clear();
  wanted_ = samples_of_look;
  untimed_ = granted_ = calls;
}

// Slower at two looks, shortly one after the other: the trial is opened again.
void Trial::conclude_look() {
  const bool slower = scaled(median({samples_.begin(), samples_.end()}), 1.0) > scaled(taken_nanoseconds_, slower_by);
  if (slower && slower_) {
    saved_ += saved_since_settled();
    settled_calls_ = 0;
    begin();
    return;
  }
  slower_ = slower;
  if (!slower) interval_ = std::min(2 * interval_, longest_interval);
  watch_after(slower ? confirming_interval : interval_);
}

std::uint64_t Trial::saved_since_settled() const {
  if (open_ || taken_ == host || host_nanoseconds_ <= taken_nanoseconds_) return 0;
  return (settled_calls_ + granted_ - untimed_) * (host_nanoseconds_ - taken_nanoseconds_);
}

}  // namespace plait::runtime
