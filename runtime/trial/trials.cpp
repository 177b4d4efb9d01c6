#include "runtime/trial/trials.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
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

// What is computed when the ranks have agreed; and what it takes to make a plan, of few ranks, where the class's own
// has not shown that: measured.
constexpr std::uint64_t concluding = 10'000, making = 60'000;

// A trial makes plans and brings ranks together: no use for a class that the program hardly calls, or for calls that
// are so short that its first round would take more than its part of `usual` ones. Long calls are worth it sooner.
std::uint32_t calls_before_trial(int size_class, std::uint64_t round, std::uint64_t usual) {
  constexpr std::uint32_t sooner = 32, most = 1 << 20;
  const Config& config = job().config;
  const auto calls = static_cast<std::uint32_t>(config.trial_after);
  if (size_class > longer_class) return calls / sooner;
  if (config.trial_percent == 0 || usual == 0) return calls;
  const double paid = static_cast<double>(round) * 100 / config.trial_percent / static_cast<double>(usual);
  return std::max(calls, static_cast<std::uint32_t>(std::min<double>(paid, most)));
}

std::size_t shortest_of_class(int size_class) { return size_class == 0 ? 0 : std::size_t{1} << (size_class - 1); }

// The rates of a set-up are rounded to powers of two, so that all ranks plan alike.
constexpr double rates_are_rounded_by = 2;

// How far the model's predictions of two plans' times are apart from what they are, in octaves.
constexpr double spread_of_plans = 0.2;

// How much faster than the channels that a rate was measured over the host may be on the same network: they may be busy
// with the processor. Of sockets nothing is known: the host may have a network of its own.
double hosts_least_part(ChannelKind beyond) {
  if (beyond == ChannelKind::mpi) return 1;
  constexpr double half = 0.5;
  return beyond == ChannelKind::ucx ? half : 0;
}

// What a neighbouring class has shown of the host, by its distance in classes. Where the host has won, and nobody knows
// any more by how much:
constexpr int farthest_neighbor = 3;
constexpr Prospect host_has_won = {0.85, 0.15};
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
// The ends of what a trial tells apart (Belief) are nearer.
double ratio_of(double seconds, double first) {
  constexpr double most = 64;
  const double ratio = first > 0 ? seconds / first : 1;
  return ratio >= 1 ? std::min(ratio, most) : 1;
}

// What the shortest call of a class about takes by any plan, where call follows call: without planning it. Ranks that
// share a processor wait for it besides.
double usual_seconds(const Planner& planner, Collective collective, int size_class) {
  constexpr double turn_of_processor = 3e-6;
  constexpr int sides = 2, works_of_side = 2;
  const Machine& machine = planner.machine();
  const Hierarchy& hierarchy = planner.hierarchy();
  if (machine.levels.empty()) return 0;
  const LinkLevel& link = hierarchy.nodes() > 1 ? machine.levels.front() : machine.levels.back();
  const int ranks = hierarchy.ranks();
  const double rounds = std::bit_width(static_cast<unsigned>(ranks - 1));
  const double parts = counts_parts(collective) ? ranks : 1;
  const double byte = std::max(link.port_seconds_per_byte, sides * link.cpu_seconds_per_byte);
  const double message = sides * works_of_side * link.overhead + (link.network ? link.latency : 0) +
                         (machine.ranks_per_core > 1 ? turn_of_processor : 0);
  return rounds * message + byte * parts * static_cast<double>(shortest_of_class(size_class));
}

// Within a node the host's longer messages wait for an answer, and for the kernel: measured, of Open MPI.
double hosts_handshake_seconds(const Hierarchy& hierarchy, int size_class) {
  constexpr std::size_t from = 4096;
  constexpr double seconds = 2.5e-6;
  return hierarchy.nodes() == 1 && shortest_of_class(size_class) >= from ? seconds : 0;
}

// By how much a ratio is expected to be above 1 where it is: of the mean deviation, half is on that side.
double expected_beyond(const Prospect& prospect) {
  constexpr double of_octaves = 0.28;  // ln 2 / sqrt(2 pi)
  return std::max(prospect.ratio - 1, 0.0) + of_octaves * prospect.spread * prospect.ratio;
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

const char* TrialClass::reason() const {
  if (!trial.planned()) return reasons::few_calls;
  return trial.open() ? reasons::trial : plan::reasons::host_is_faster;
}

Trials::~Trials() { clear(); }

void Trials::start(std::string shape, std::vector<TuningRecord> known) {
  shape_ = std::move(shape);
  known_ = std::move(known);
  on_ = trials_wanted();
}

void Trials::clear() {
  for (const auto& [key, known] : classes_)
    if (known.tried != nullptr) note_saved(known.tried->trial.saved_nanoseconds());
  classes_.clear();
  can_agree_.reset();
  rounds_.reset();
}

Trials::Found Trials::find(const Call& call, Moment moment) {
  if (!on_ || !planned(call.collective)) return {};
  const auto bytes = payload_bytes(call, planner_.hierarchy().ranks());
  const Key key{call.collective, class_of_payload(bytes), call.commutative};
  Class& found = classes_[key];
  // Where memory is short here alone, and this rank goes on without what it asked for, the class is as if it had not.
  if (moment == Moment::in_order && !found.ordered) {
    if (const std::uint32_t calls = calls_by_host(call, key); calls != 0) {
      found.unplanned = std::make_unique<TrialClass>(TrialClass{Trial(calls), {}});
      found.waits = true;
    }
    found.ordered = true;
  }
  if (found.waits && moment == Moment::in_order) return {found.unplanned.get()};
  if (!found.made) {
    if (!can_agree_.has_value()) can_agree_ = can_agree(planner_);
    if (*can_agree_) found.tried = make(call, key);
    found.made = true;
  }
  TrialClass* tried = found.tried.get();
  if (tried == nullptr || tried->in_order || moment == Moment::own) return {tried};
  tried->in_order = true;
  return {tried, tried->trial.expect_of_host(host_prospect(key, Moment::in_order))};
}

void Trials::plan(const TrialClass& unplanned) {
  for (auto& [key, known] : classes_)
    if (known.unplanned.get() == &unplanned) known.waits = false;
}

// Until what the host's calls are expected to have taken longer is what it takes to plan the class, whatever the number
// of calls that come: no more than twice what the better of both takes is lost (as in renting skis). Not where that are
// hardly any calls.
std::uint32_t Trials::calls_by_host(const Call& call, const Key& key) const {
  constexpr int longer = 16;
  const auto most =
      static_cast<std::uint32_t>(std::min(job().config.trial_after, std::numeric_limits<int>::max() / longer) * longer);
  if (job().config.trial_percent == 0 || most == 0 || !planner_.is_to_choose(call)) return 0;
  const double gained =
      usual_seconds(planner_, key.collective, key.size_class) * expected_beyond(host_prospect(key, Moment::in_order)) +
      hosts_handshake_seconds(planner_.hierarchy(), key.size_class);
  constexpr double planning_seconds = 15e-6;
  constexpr std::uint32_t hardly_any = 6;
  const auto calls = planning_seconds < gained * most ? static_cast<std::uint32_t>(planning_seconds / gained) : most;
  return calls > hardly_any ? calls : 0;
}

// As at a moment of a rank's own.
std::unique_ptr<TrialClass> Trials::make(const Call& call, const Key& key) {
  std::vector<Rival> rivals = planner_.rivals(call);
  const std::size_t most = planner_.hierarchy().ranks() <= ranks_for_all_plans ? Trial::most_candidates - 1 : 1;
  if (rivals.size() > most) rivals.resize(most);
  if (rivals.empty()) return nullptr;
  std::vector<std::string> plans;
  std::vector<Prospect> prospects = {host_prospect(key, Moment::own)};
  const double first = rivals.front().seconds;
  for (const Rival& rival : rivals) {
    plans.push_back(rival.name);
    prospects.push_back({ratio_of(rival.seconds, first), spread_of_plans});
  }
  const TrialTerms terms = terms_of(call, key, first);
  const std::optional<Trial::Known> known = known_of(key, plans);
  Trial trial = known ? Trial(std::move(prospects), terms, *known) : Trial(std::move(prospects), terms);
  return std::make_unique<TrialClass>(TrialClass{std::move(trial), std::move(plans)});
}

// What is predicted is so for the shortest call of the class, whichever call comes first.
TrialTerms Trials::terms_of(const Call& call, const Key& key, double predicted_seconds) {
  const Hierarchy& hierarchy = planner_.hierarchy();
  const auto [meeting, agreeing] = rounds();
  const std::uint64_t predicted = clamped_nanoseconds(predicted_seconds);
  const std::uint64_t usual = clamped_nanoseconds(usual_seconds(planner_, key.collective, key.size_class));
  const double least = planner_.least_seconds(call) / rates_are_rounded_by;
  return {.bytes = shortest_of_class(key.size_class),
          .fixed_bytes = fixed_bytes(planner_.machine(), hierarchy.nodes()),
          .burst = burst_of(key.collective, key.size_class),
          .calls_before = calls_before_trial(key.size_class, agreeing + 2 * meeting, usual),
          .part = job().config.trial_percent / 100.0,
          .meeting_nanoseconds = meeting,
          .agreeing_nanoseconds = agreeing,
          .making_nanoseconds = making,
          .predicted_nanoseconds = predicted,
          .least_nanoseconds = clamped_nanoseconds(least),
          .hosts_least_nanoseconds = clamped_nanoseconds(least * hosts_least_part(planner_.routes().beyond()))};
}

std::optional<Trial::Known> Trials::known_of(const Key& key, const std::vector<std::string>& plans) const {
  const TuningRecord* known = tuning_record(key);
  if (known == nullptr) return {};
  const auto plan = std::ranges::find(plans, known->plan);
  if (plan == plans.end() && known->plan != host_plan) return {};
  const int candidate = plan != plans.end() ? static_cast<int>(plan - plans.begin()) + 1 : Trial::host;
  return Trial::Known{candidate, known->nanoseconds, known->host_nanoseconds};
}

const Trials::Rounds& Trials::rounds() {
  if (!rounds_) rounds_ = {predicted_nanoseconds(meeting_call()), concluding + predicted_nanoseconds(agreement_call())};
  return *rounds_;
}

std::uint64_t Trials::predicted_nanoseconds(const Call& call) {
  const std::vector<Rival> ways = planner_.rivals(call);
  return ways.empty() ? 0 : clamped_nanoseconds(ways.front().seconds);
}

// By the nearest size of the collective at which the host was timed, in this communicator or before; else as usual.
// What this communicator has shown so far is the same on all ranks only in the order of its calls.
Prospect Trials::host_prospect(const Key& key, Moment moment) const {
  Prospect prospect = usual_host_prospect(key.collective, key.size_class, planner_.hierarchy().nodes() > 1);
  int nearest = farthest_neighbor + 1;
  const auto see = [&](int size_class, double ratio, double spread) {
    const int distance = std::abs(size_class - key.size_class);
    if (ratio <= 0 || distance >= nearest) return;
    nearest = distance;
    prospect = {ratio, std::min(prospect.spread, spread + spread_of_neighbor(distance))};
  };
  const auto ratio = [](std::uint64_t host, std::uint64_t plan) {
    return plan != 0 ? static_cast<double>(host) / static_cast<double>(plan) : 0;
  };
  for (const auto& [other, known] : classes_) {
    const TrialClass* tried = known.tried.get();
    // A class that is known from before is among known_, in the same place on all ranks, whoever asked for it.
    if (moment == Moment::own || tried == nullptr || tried->trial.trials() == 0) continue;
    if (other.collective == key.collective && other.commutative == key.commutative)
      see(other.size_class, ratio(tried->trial.host_nanoseconds(), tried->trial.plan_nanoseconds()), 0);
  }
  if (!key.commutative) return prospect;
  for (const TuningRecord& record : known_) {
    if (record.collective != key.collective) continue;
    if (record.plan == host_plan)
      see(record.size_class, host_has_won.ratio, host_has_won.spread);
    else
      see(record.size_class, ratio(record.host_nanoseconds, record.nanoseconds), 0);
  }
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
  for (const auto& [key, known] : classes_)
    if (known.tried.get() == &concluded) keep(key, concluded);
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
