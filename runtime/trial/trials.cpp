#include "runtime/trial/trials.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "runtime/record/report_rows.h"
#include "runtime/trial/host_prospects.h"

namespace plait::runtime {
namespace {

// Each plan that is tried is lowered and proven for all ranks, which grows with their number.
constexpr int ranks_for_all_plans = 64;

// Classes of sizes up to 4 KiB, and up to 64 KiB.
constexpr int short_class = 12, longer_class = 16;

// Of calls that take less than a microsecond the clock and the barrier before them show in a single one. In short calls
// that have a root the ranks run ahead of each other, as far as there is room; that shows only where many follow.
int burst_of(Collective collective, int size_class) {
  if (size_class <= short_class) return rooted(collective) ? 32 : 4;
  return rooted(collective) && size_class <= longer_class ? 8 : 1;
}

// What is computed when the ranks have agreed, and what it takes to make a plan, of few ranks: measured.
constexpr std::uint64_t concluding = 6'000, making = 60'000;

// A trial makes plans and brings ranks together: no use for a class that the program hardly calls, or for calls that
// are so short that its first round would take more than its part. Long calls are worth it sooner.
std::uint32_t calls_before_trial(int size_class, std::uint64_t meeting, std::uint64_t predicted) {
  constexpr std::uint32_t sooner = 32, most = 1 << 20;
  const Config& config = job().config;
  const auto calls = static_cast<std::uint32_t>(config.trial_after);
  if (size_class > longer_class) return calls / sooner;
  if (config.trial_percent == 0 || predicted == 0) return calls;
  const double paid = static_cast<double>(meeting) * 100 / config.trial_percent / static_cast<double>(predicted);
  return std::max(calls, static_cast<std::uint32_t>(std::min<double>(paid, most)));
}

// The rates of a set-up are rounded to powers of two, so that all ranks plan alike.
constexpr double rates_are_rounded_by = 2;

// How far the model's predictions of two plans' times are apart from what they are, in octaves.
constexpr double spread_of_plans = 0.2;

// What a neighbouring class has shown of the host, by its distance in classes.
constexpr int farthest_neighbor = 3;
double spread_of_neighbor(int distance) { return 0.1 + 0.15 * distance; }

// What a message takes besides its bytes, as bytes, on the outermost level.
double fixed_bytes(const Machine& machine, int nodes) {
  if (machine.levels.empty()) return 0;
  const LinkLevel& link = nodes > 1 ? machine.levels.front() : machine.levels.back();
  const double byte = std::max(link.port_seconds_per_byte, link.cpu_seconds_per_byte);
  constexpr double most = 1e12;
  return byte > 0 ? std::min((link.latency + link.overhead) / byte, most) : 0;
}

// A machine file may make plans as long as it likes, or endless.
std::uint64_t clamped_nanoseconds(double seconds) {
  constexpr double longest = 1e9;
  return seconds > 0 ? static_cast<std::uint64_t>(std::min(seconds, longest) * 1e9) : 0;
}
double ratio_of(double seconds, double first) {
  constexpr double most = 64;
  const double ratio = first > 0 ? seconds / first : 1;
  return ratio >= 1 ? std::min(ratio, most) : 1;
}

// What the ranks of a trial meet and agree by must be planned, too.
bool can_agree(Planner& planner) {
  const auto has_plan = [&](const Call& call) { return planner.choose(call).plan != nullptr; };
  return has_plan(meeting_call()) && has_plan(agreement_call());
}

}  // namespace

Call meeting_call() { return {.collective = Collective::barrier, .count = 0, .element_bytes = 0}; }

// Of one length, whatever the number of samples: it is one class, which has a plan or has none.
Call agreement_call() {
  return {.collective = Collective::allreduce, .count = Trial::most_samples, .element_bytes = sizeof(std::uint64_t)};
}

bool trials_wanted() {
  const Config& config = job().config;
  return config.trial != TrialMode::none && config.host_when_faster && config.plan.empty();
}

const char* TrialClass::reason() const { return trial.open() ? reasons::trial : plan::reasons::host_is_faster; }

Trials::~Trials() { clear(); }

void Trials::start(std::string shape, std::vector<TuningRecord> known) {
  shape_ = std::move(shape);
  known_ = std::move(known);
  on_ = trials_wanted();
}

void Trials::clear() {
  for (const auto& [key, tried] : classes_)
    if (tried != nullptr) note_saved(tried->trial.saved_nanoseconds());
  classes_.clear();
  can_agree_.reset();
}

TrialClass* Trials::of(const Call& call) {
  if (!on_ || !planned(call.collective)) return nullptr;
  const auto bytes = payload_bytes(call, planner_.hierarchy().ranks());
  const Key key{call.collective, class_of_payload(bytes), call.commutative};
  const auto found = classes_.find(key);
  if (found != classes_.end()) return found->second.get();
  if (!can_agree_.has_value()) can_agree_ = can_agree(planner_);
  return classes_.emplace(key, *can_agree_ ? make(call, key) : nullptr).first->second.get();
}

std::unique_ptr<TrialClass> Trials::make(const Call& call, const Key& key) {
  std::vector<Rival> rivals = planner_.rivals(call);
  const std::size_t most = planner_.hierarchy().ranks() <= ranks_for_all_plans ? Trial::most_candidates - 1 : 1;
  if (rivals.size() > most) rivals.resize(most);
  if (rivals.empty()) return nullptr;
  std::vector<std::string> plans;
  std::vector<Prospect> prospects = {host_prospect(key)};
  const double first = rivals.front().seconds;
  for (const Rival& rival : rivals) {
    plans.push_back(rival.name);
    prospects.push_back({ratio_of(rival.seconds, first), spread_of_plans});
  }
  const Hierarchy& hierarchy = planner_.hierarchy();
  const std::uint64_t meeting = meeting_nanoseconds();
  const TrialTerms terms{.bytes = payload_bytes(call, hierarchy.ranks()),
                         .fixed_bytes = fixed_bytes(planner_.machine(), hierarchy.nodes()),
                         .burst = burst_of(key.collective, key.size_class),
                         .calls_before = calls_before_trial(key.size_class, meeting, clamped_nanoseconds(first)),
                         .part = job().config.trial_percent / 100.0,
                         .meeting_nanoseconds = meeting,
                         .making_nanoseconds = making,
                         .predicted_nanoseconds = clamped_nanoseconds(first),
                         .least_nanoseconds = clamped_nanoseconds(planner_.least_seconds(call) / rates_are_rounded_by)};
  if (const TuningRecord* known = tuning_record(key); known != nullptr) {
    const auto plan = std::ranges::find(plans, known->plan);
    const int candidate = plan != plans.end() ? static_cast<int>(plan - plans.begin()) + 1 : Trial::host;
    if (candidate != Trial::host || known->plan == host_plan) {
      const Trial::Known settled{candidate, known->nanoseconds, known->host_nanoseconds};
      return std::make_unique<TrialClass>(TrialClass{Trial(std::move(prospects), terms, settled), std::move(plans)});
    }
  }
  return std::make_unique<TrialClass>(TrialClass{Trial(std::move(prospects), terms), std::move(plans)});
}

// Of a round: its ranks meet twice, and agree once.
std::uint64_t Trials::meeting_nanoseconds() {
  const auto predicted = [&](const Call& call) {
    const std::vector<Rival> ways = planner_.rivals(call);
    return ways.empty() ? 0 : clamped_nanoseconds(ways.front().seconds);
  };
  return concluding + 2 * predicted(meeting_call()) + predicted(agreement_call());
}

// By the nearest size of the collective at which the host was timed, in this communicator or before; else as usual.
Prospect Trials::host_prospect(const Key& key) const {
  Prospect prospect = usual_host_prospect(key.collective, key.size_class, planner_.hierarchy().nodes() > 1);
  int nearest = farthest_neighbor + 1;
  const auto see = [&](int size_class, double host, double plans) {
    const int distance = std::abs(size_class - key.size_class);
    if (host <= 0 || plans <= 0 || distance >= nearest) return;
    nearest = distance;
    prospect = {host / plans, std::min(prospect.spread, spread_of_neighbor(distance))};
  };
  for (const auto& [other, tried] : classes_) {
    if (tried == nullptr || other.collective != key.collective || other.commutative != key.commutative) continue;
    const Trial& trial = tried->trial;
    if (trial.taken() != Trial::host)
      see(other.size_class, static_cast<double>(trial.host_nanoseconds()),
          static_cast<double>(trial.taken_nanoseconds()));
  }
  if (!key.commutative) return prospect;
  for (const TuningRecord& record : known_)
    if (record.collective == key.collective && record.plan != host_plan)
      see(record.size_class, static_cast<double>(record.host_nanoseconds), static_cast<double>(record.nanoseconds));
  return prospect;
}

// Tables, and so the cache, know only operators that commute.
const TuningRecord* Trials::tuning_record(const Key& key) const {
  if (!key.commutative) return nullptr;
  const auto found = std::ranges::find_if(known_, [&](const TuningRecord& known) {
    return known.collective == key.collective && known.size_class == key.size_class;
  });
  return found != known_.end() ? &*found : nullptr;
}

Choice Trials::choose(const Call& call, const TrialClass& tried, int candidate) {
  return planner_.choose(call, tried.plans[static_cast<std::size_t>(candidate - 1)]);
}

void Trials::note_concluded(const TrialClass& concluded) {
  if (!concluded.trial.informed()) return;
  for (const auto& [key, tried] : classes_)
    if (tried.get() == &concluded) keep(key, concluded);
}

void Trials::keep(const Key& key, const TrialClass& tried) const {
  if (shape_.empty() || !key.commutative) return;
  const int candidate = tried.trial.taken();
  keep_tuning_record(shape_, {.collective = key.collective,
                              .size_class = key.size_class,
                              .plan = candidate == Trial::host ? std::string(host_plan)
                                                               : tried.plans[static_cast<std::size_t>(candidate - 1)],
                              .nanoseconds = tried.trial.taken_nanoseconds(),
                              .host_nanoseconds = tried.trial.host_nanoseconds()});
}

}  // namespace plait::runtime
