#include "runtime/fusion/overlap_counts.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <tuple>
#include <utility>

#include "core/immortal.h"
#include "core/text_hash.h"
#include "runtime/progress/progress_share.h"
#include "tl/trace.h"

namespace plait::runtime {

using json = SortedJson;

// ---- ExposedTime ----

void ExposedTime::begin(std::uint64_t now_ns) {
  const std::scoped_lock lock(guard_);
  if (under_way_++ == 0) since_ns_ = now_ns;
}

void ExposedTime::end(std::uint64_t now_ns) {
  const std::scoped_lock lock(guard_);
  if (--under_way_ == 0) whole_ns_ += now_ns - since_ns_;
}

void ExposedTime::note_turn(std::uint64_t now_ns) {
  const std::uint64_t last = last_turn_ns_.exchange(now_ns, std::memory_order_relaxed);
  if (last == 0 || now_ns - last > longest_gap_ns) return;
  const std::scoped_lock lock(guard_);
  if (under_way_ > 0 && now_ns > since_ns_) exposed_ns_ += now_ns - std::max(last, since_ns_);
}

std::uint64_t ExposedTime::whole_ns() const {
  const std::scoped_lock lock(guard_);
  return whole_ns_;
}

std::uint64_t ExposedTime::exposed_ns() const {
  const std::scoped_lock lock(guard_);
  return exposed_ns_;
}

// ---- OverlapCounts ----

OverlapCounts& OverlapCounts::instance() {
  static Immortal<OverlapCounts> all;  // never destroyed: calls may come until the process ends
  return *all;
}

namespace {

// What a process, or a report of many, lists of what its communicators have learned.
constexpr std::size_t most_plans = 64, most_groups = 4096, most_kinds = 64;
constexpr std::size_t most_lines = 8;

constexpr std::size_t not_listed = ~std::size_t{0} / 2;  // a plan's first group

// Plans are equal where they do the same, whatever they predict.
std::uint64_t hash_of(const OverlapPlan& plan, int ranks) {
  std::string text = std::to_string(ranks) + ' ' + plan.model;
  for (const OverlapCall& call : plan.calls) text += ' ' + std::to_string(call.bytes);
  for (const OverlapGroup& group : plan.groups)
    text += ',' + std::to_string(group.calls) + ' ' + share_text(group.share);
  return hash_text(text);
}

constexpr LearnedKind other_kinds{};

LearnedOutcome& outcome_of(std::map<LearnedKind, LearnedOutcome>& learned, LearnedKind& kind) {
  if (learned.size() >= most_kinds && !learned.contains(kind)) kind = other_kinds;
  return learned[kind];
}

}  // namespace

void LearnedOutcome::take(const std::string& other, bool runs_by_plan) {
  const int told = runs_by_plan ? 2 : other.starts_with("planned") ? 1 : 0;
  if (told < telling) return;
  verdict = other;
  telling = told;
}

std::size_t OverlapCounts::add(const OverlapPlan& plan, int ranks) {
  const std::uint64_t hash = hash_of(plan, ranks);
  const std::scoped_lock lock(guard_);
  model_ = plan.model;
  if (const auto found = std::ranges::find(plans_, hash, &Plan::hash); found != plans_.end()) return found->first_group;
  const bool full = plans_.size() >= most_plans || groups_.size() + plan.groups.size() > most_groups;
  if (full && ranks != 0) return not_listed;
  plans_.push_back({.hash = hash,
                    .kind = {.ranks = ranks, .calls = plan.calls.size()},
                    .first_group = groups_.size(),
                    .groups = plan.groups.size()});
  for (const OverlapGroup& group : plan.groups) groups_.push_back({.share = group.share});
  return plans_.back().first_group;
}

void OverlapCounts::note_verdict(Place& place, const LearnedKind& kind, bool planned, const std::string& verdict) {
  if (verdict.empty()) return;
  const std::scoped_lock lock(guard_);
  if (place.taken) {
    LearnedOutcome& before = learned_[place.kind];
    before.planned -= place.planned ? 1 : 0;
    if (before.planned == 0) before.telling = 0;  // its verdict may be this one's: the next one tells
    if (--before.communicators == 0) learned_.erase(place.kind);
  }
  place = {.taken = true, .planned = planned, .kind = kind};
  LearnedOutcome& outcome = outcome_of(learned_, place.kind);
  ++outcome.communicators;
  outcome.planned += planned ? 1 : 0;
  outcome.take(verdict, planned);
}

void OverlapCounts::count_fused(std::size_t group, std::size_t bytes) {
  const std::scoped_lock lock(guard_);
  Group& counted = group < groups_.size() ? groups_[group] : others_;
  ++counted.runs;
  counted.bytes += bytes;
}

void OverlapCounts::count_alone(const char* reason, std::uint64_t calls) {
  const std::scoped_lock lock(guard_);
  alone_[reason] += calls;
}

json OverlapCounts::facts() const {
  if (!started()) return json();
  const std::scoped_lock lock(guard_);
  json plans = json::array(), learned = json::array();
  for (const Plan& plan : plans_) {
    json groups = json::array();
    for (std::size_t i = plan.first_group; i < plan.first_group + plan.groups; ++i) {
      const Group& group = groups_[i];
      const CommunicationShare in_use = ProgressShare::instance().in_use(group.share);
      groups.push_back({group.share.threads, group.share.duty, group.runs, group.bytes, in_use.threads, in_use.duty});
    }
    plans.push_back({plan.hash, plan.kind.ranks, plan.kind.calls, groups});
  }
  for (const auto& [kind, outcome] : learned_)
    learned.push_back({kind.ranks, kind.calls, outcome.communicators, outcome.planned, outcome.verdict});
  return {{"model", model_},
          {"learned", learned},
          {"plans", plans},
          {"others", {others_.runs, others_.bytes}},
          {"alone", alone_},
          {"early", early_.load()},
          {"agreements", agreements_.load()},
          {"whole", static_cast<double>(time.whole_ns()) * 1e-9},
          {"exposed", static_cast<double>(time.exposed_ns()) * 1e-9}};
}

// ---- The report ----

namespace {

std::uint64_t of_a_rank(std::uint64_t sum, const OverlapReport& report) {
  const auto ranks = static_cast<std::uint64_t>(std::max(report.ranks, 1));
  return (sum + ranks / 2) / ranks;
}

std::uint64_t fused_runs(const OverlapReport& report) {
  std::uint64_t runs = report.others.runs;
  for (const OverlapReport::Group& group : report.groups) runs += group.runs;
  return runs;
}

// "1 x 0.25 (3 groups), 1 x 1 (7 groups)"
std::string shares_in_use(const OverlapReport& report) {
  std::map<std::string, int> groups;
  int fewer = 0;  // threads that have the shares of more
  for (const OverlapReport::Group& group : report.groups) {
    ++groups[share_text(group.in_use)];
    if (group.in_use.threads < group.threads) fewer = std::max(fewer, group.in_use.threads);
  }
  std::string text;
  for (const auto& [share, count] : groups)
    text += (text.empty() ? "" : ", ") + share + " (" + std::to_string(count) + (count == 1 ? " group)" : " groups)");
  if (fewer == 0) return text;
  return text + (fewer == 1 ? "; one helper thread has the shares of several"
                            : "; " + std::to_string(fewer) + " helper threads have the shares of more");
}

std::string times(const OverlapReport& report) {
  char text[128];
  const double ranks = std::max(report.ranks, 1);
  std::snprintf(text, sizeof text, "%.3f s of communication a rank, %.3f s hidden, %.3f s exposed",
                report.whole_s / ranks, (report.whole_s - report.exposed_s) / ranks, report.exposed_s / ranks);
  return text;
}

// ---- What the ranks' communicators have learned ----

// A plan's groups among those of the report; nullptr: it lists no more.
OverlapReport::Group* groups_of(OverlapReport& report, const json& plan) {
  const std::uint64_t hash = plan[0];
  if (const auto found = std::ranges::find(report.plans, hash, &OverlapReport::Plan::hash); found != report.plans.end())
    return &report.groups[found->first_group];
  const LearnedKind kind{.ranks = plan[1], .calls = plan[2]};
  const json& groups = plan[3];
  const bool full = report.plans.size() >= most_plans || report.groups.size() + groups.size() > most_groups;
  if (groups.empty() || (full && kind.ranks != 0)) return nullptr;
  report.plans.push_back({.hash = hash, .first_group = report.groups.size()});
  for (const json& group : groups)
    report.groups.push_back(
        {.threads = group[0], .duty = group[1], .in_use = {0, 0}, .runs = 0, .bytes = 0, .kind = kind});
  return &report.groups[report.plans.back().first_group];
}

void merge_plan(OverlapReport& report, const json& plan) {
  OverlapReport::Group* group = groups_of(report, plan);
  for (const json& counted : plan[3]) {
    OverlapReport::Group& sums = group != nullptr ? *group++ : report.others;
    sums.runs += counted[2].get<std::uint64_t>();
    sums.bytes += counted[3].get<std::uint64_t>();
    // Of the rank that has the fewest.
    if (const int threads = counted[4]; sums.in_use.threads == 0 || threads < sums.in_use.threads)
      sums.in_use = {.threads = threads, .duty = counted[5]};
  }
}

void merge_learned(OverlapReport& report, const json& learned) {
  LearnedKind kind{.ranks = learned[0], .calls = learned[1]};
  LearnedOutcome& outcome = outcome_of(report.learned, kind);
  outcome.communicators += learned[2].get<std::uint64_t>();
  outcome.planned += learned[3].get<std::uint64_t>();
  outcome.take(learned[4], learned[3] != 0);
}

using Learned = std::pair<LearnedKind, LearnedOutcome>;

// Those with plans first, then those with most communicators.
std::vector<Learned> in_order(const OverlapReport& report) {
  std::vector<Learned> all(report.learned.begin(), report.learned.end());
  std::ranges::stable_sort(all, std::ranges::greater(), [](const Learned& learned) {
    const auto& [kind, outcome] = learned;
    return std::make_tuple(kind != other_kinds, outcome.planned != 0, outcome.communicators);
  });
  return all;
}

// "2 ranks (3 communicators, 1 with a plan): planned after ..."
std::string text_of(const Learned& learned) {
  const auto& [kind, outcome] = learned;
  std::string text = std::to_string(kind.ranks) + " ranks";
  if (outcome.communicators > 1)
    text += " (" + std::to_string(outcome.communicators) + " communicators, " + std::to_string(outcome.planned) +
            " with a plan)";
  return text + ": " + outcome.verdict;
}

// What the groups of one kind of communicators are.
std::string groups_of_kind(const OverlapReport& report, const LearnedKind& kind) {
  OverlapReport own;
  own.ranks = report.ranks;
  for (const OverlapReport::Group& group : report.groups)
    if (group.kind == kind) own.groups.push_back(group);
  if (own.groups.empty()) return {};
  return "steps of " + std::to_string(kind.calls) + " calls on " + std::to_string(kind.ranks) +
         " ranks: " + std::to_string(of_a_rank(fused_runs(own), own)) +
         " groups a rank, threads x share of a core beside computation: " + shares_in_use(own);
}

std::vector<std::string> learned_lines(const OverlapReport& report) {
  std::vector<std::string> lines;
  LearnedOutcome others;
  std::size_t kinds = 0;
  for (const Learned& learned : in_order(report)) {
    const bool listed = learned.first != other_kinds && kinds++ < most_lines;
    if (listed) {
      lines.push_back("overlap: auto: " + text_of(learned));
      continue;
    }
    others.communicators += learned.second.communicators;
    others.planned += learned.second.planned;
  }
  if (others.communicators != 0)
    lines.push_back("overlap: auto: " + std::to_string(others.communicators) + " communicators of other kinds, " +
                    std::to_string(others.planned) + " with a plan");
  return lines;
}

// Where there are several: which plan has which.
std::vector<std::string> share_lines(const OverlapReport& report) {
  if (report.plans.size() < 2)
    return {"overlap: threads x share of a core beside computation: " + shares_in_use(report)};
  std::vector<std::string> lines;
  for (const Learned& learned : in_order(report)) {
    const std::string text = groups_of_kind(report, learned.first);
    if (!text.empty() && lines.size() < most_lines) lines.push_back("overlap: " + text);
  }
  return lines;
}

std::string name_of_plans(const OverlapReport& report) {
  const std::string plans = report.plans.size() < 2 ? "the plan"
                                                    : std::to_string(report.plans.size()) +
                                                          (report.others.runs != 0 ? " and more" : "") + " plans";
  return plans + (report.model.empty() ? "" : " for " + report.model);
}

}  // namespace

void merge_overlap_facts(OverlapReport& report, const json& facts) {
  if (!facts.is_object()) return;
  ++report.ranks;
  if (facts["model"] != "") report.model = facts["model"];  // the rank's communicators may have no plan
  for (const json& learned : facts["learned"]) merge_learned(report, learned);
  for (const json& plan : facts["plans"]) merge_plan(report, plan);
  report.others.runs += facts["others"][0].get<std::uint64_t>();
  report.others.bytes += facts["others"][1].get<std::uint64_t>();
  for (const auto& [reason, calls] : facts["alone"].items()) report.alone[reason] += calls.get<std::uint64_t>();
  report.early += facts["early"].get<std::uint64_t>();
  report.agreements += facts["agreements"].get<std::uint64_t>();
  report.whole_s += facts["whole"].get<double>();
  report.exposed_s += facts["exposed"].get<double>();
}

std::vector<std::string> overlap_report_lines(const OverlapReport& report) {
  if (report.ranks == 0) return {};
  std::vector<std::string> lines = learned_lines(report);
  if (report.groups.empty()) return lines;
  lines.push_back("overlap: " + std::to_string(of_a_rank(fused_runs(report), report)) + " groups a rank of " +
                  name_of_plans(report) + ", " + std::to_string(of_a_rank(report.early, report)) +
                  " begun before they were full; " + times(report));
  for (std::string& line : share_lines(report)) lines.push_back(std::move(line));
  for (const auto& [reason, calls] : report.alone)
    lines.push_back("overlap: " + std::to_string(of_a_rank(calls, report)) + " calls a rank alone: " + reason);
  return lines;
}

json overlap_report_json(const OverlapReport& report) {
  json groups = json::array(), alone = json::object();
  for (const OverlapReport::Group& group : report.groups)
    groups.push_back({{"communicator_ranks", group.kind.ranks},
                      {"step_calls", group.kind.calls},
                      {"threads", group.threads},
                      {"duty", group.duty},
                      {"threads_in_use", group.in_use.threads},
                      {"duty_in_use", group.in_use.duty},
                      {"runs", of_a_rank(group.runs, report)},
                      {"bytes", of_a_rank(group.bytes, report)}});
  for (const auto& [reason, calls] : report.alone) alone[reason] = of_a_rank(calls, report);
  const double ranks = std::max(report.ranks, 1);
  json object = {{"model", report.model},
                 {"groups", groups},
                 {"begun_early", of_a_rank(report.early, report)},
                 {"agreements", of_a_rank(report.agreements, report)},
                 {"alone", alone},
                 {"communication_seconds", report.whole_s / ranks},
                 {"hidden_seconds", (report.whole_s - report.exposed_s) / ranks},
                 {"exposed_seconds", report.exposed_s / ranks}};
  if (report.others.runs != 0)
    object["more_groups"] = {{"runs", of_a_rank(report.others.runs, report)},
                             {"bytes", of_a_rank(report.others.bytes, report)}};
  if (report.learned.empty()) return object;
  for (const auto& [kind, outcome] : in_order(report))
    object["learned"].push_back({{"communicator_ranks", kind.ranks},
                                 {"step_calls", kind.calls},
                                 {"communicators", outcome.communicators},
                                 {"planned", outcome.planned},
                                 {"verdict", outcome.verdict}});
  object["auto"] = object["learned"][0]["verdict"];
  return object;
}

}  // namespace plait::runtime
