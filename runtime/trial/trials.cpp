#include "runtime/trial/trials.h"

#include <algorithm>
#include <utility>

#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "runtime/record/report_rows.h"

namespace plait::runtime {
namespace {

// Each plan that is tried is lowered and proven for all ranks, which grows with their number.
constexpr int ranks_for_all_plans = 64;

// Classes of sizes up to 4 KiB, and up to 64 KiB.
constexpr int short_class = 12, longer_class = 16;

// Of calls that take less than a microsecond the clock and the barrier before them show in a single one. In short calls
// that have a root the ranks run ahead of each other, as far as there is room; that shows only where many follow.
int burst_of(Collective collective, int size_class) {
  if (size_class <= short_class) return rooted(collective) ? 32 : 8;
  return rooted(collective) && size_class <= longer_class ? 4 : 1;
}

// A trial makes plans and brings ranks together: no use for a class that the program hardly calls. Long calls are worth
// it sooner.
std::uint32_t calls_before_trial(int size_class) {
  constexpr std::uint32_t sooner = 8;
  const auto calls = static_cast<std::uint32_t>(job().config.trial_after);
  return size_class <= longer_class ? calls : calls / sooner;
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
  std::vector<std::string> plans = planner_.rivals(call);
  const std::size_t most = planner_.hierarchy().ranks() <= ranks_for_all_plans ? Trial::most_candidates - 1 : 1;
  if (plans.size() > most) plans.resize(most);
  if (plans.empty()) return nullptr;
  const int candidates = static_cast<int>(plans.size()) + 1, burst = burst_of(key.collective, key.size_class);
  if (const TuningRecord* known = tuning_record(key); known != nullptr) {
    const auto plan = std::ranges::find(plans, known->plan);
    const int candidate = plan != plans.end() ? static_cast<int>(plan - plans.begin()) + 1 : Trial::host;
    if (candidate != Trial::host || known->plan == host_plan)
      return std::make_unique<TrialClass>(TrialClass{
          Trial(candidates, {candidate, known->nanoseconds, known->host_nanoseconds}, burst), std::move(plans)});
  }
  return std::make_unique<TrialClass>(
      TrialClass{Trial(candidates, burst, calls_before_trial(key.size_class)), std::move(plans)});
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

void Trials::note_settled(const TrialClass& settled) {
  if (shape_.empty() || settled.trial.open()) return;
  for (const auto& [key, tried] : classes_) {
    if (tried.get() != &settled || !key.commutative) continue;
    const int candidate = settled.trial.taken();
    keep_tuning_record(shape_,
                       {.collective = key.collective,
                        .size_class = key.size_class,
                        .plan = candidate == Trial::host ? std::string(host_plan)
                                                         : settled.plans[static_cast<std::size_t>(candidate - 1)],
                        .nanoseconds = settled.trial.taken_nanoseconds(),
                        .host_nanoseconds = settled.trial.host_nanoseconds()});
  }
}

}  // namespace plait::runtime
