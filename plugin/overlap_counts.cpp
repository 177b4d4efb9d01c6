#include "plugin/overlap_counts.h"

#include <algorithm>
#include <cstdio>

#include "plugin/progress_share.h"
#include "tl/trace.h"

namespace plait {

using nlohmann::json;

// ---- HostTurns ----

void HostTurns::note(std::uint64_t now_ns) {
  const bool at_once = now_ns - last_ns_.exchange(now_ns, std::memory_order_relaxed) < longest_gap_ns;
  in_a_row_.store(at_once ? in_a_row_.load(std::memory_order_relaxed) + 1 : 0, std::memory_order_relaxed);
  in_all_.fetch_add(1, std::memory_order_relaxed);
}

void HostTurns::forget() {
  last_ns_.store(0, std::memory_order_relaxed);
  in_a_row_.store(0, std::memory_order_relaxed);
  in_all_.store(0, std::memory_order_relaxed);
}

bool HostTurns::waits() const {
  return in_a_row_.load(std::memory_order_relaxed) >= turns_of_wait ||
         in_all_.load(std::memory_order_relaxed) >= turns_in_all;
}

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
  static auto* all = new OverlapCounts;  // never destroyed: calls may come until the process ends
  return *all;
}

std::size_t OverlapCounts::add(const OverlapPlan& plan) {
  const std::scoped_lock lock(guard_);
  const std::size_t first = groups_.size();
  model_ = plan.model;
  for (const OverlapGroup& group : plan.groups) groups_.push_back({.share = group.share});
  return first;
}

void OverlapCounts::note_verdict(const std::string& verdict) {
  constexpr std::string_view planned = "planned";
  const std::scoped_lock lock(guard_);
  if (verdict.starts_with(planned) || (!verdict.empty() && !verdict_.starts_with(planned))) verdict_ = verdict;
}

void OverlapCounts::count_fused(std::size_t group, std::size_t bytes) {
  const std::scoped_lock lock(guard_);
  ++groups_[group].runs;
  groups_[group].bytes += bytes;
}

void OverlapCounts::count_alone(const char* reason, std::uint64_t calls) {
  const std::scoped_lock lock(guard_);
  alone_[reason] += calls;
}

json OverlapCounts::facts() const {
  if (!started()) return json();
  const std::scoped_lock lock(guard_);
  json groups = json::array();
  for (const Group& group : groups_) {
    const CommunicationShare in_use = ProgressShare::instance().in_use(group.share);
    groups.push_back({group.share.threads, group.share.duty, group.runs, group.bytes, in_use.threads, in_use.duty});
  }
  return {{"model", model_},
          {"verdict", verdict_},
          {"groups", groups},
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
  std::uint64_t runs = 0;
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

}  // namespace

void merge_overlap_facts(OverlapReport& report, const json& facts) {
  if (!facts.is_object()) return;
  ++report.ranks;
  report.model = facts["model"];
  if (report.verdict.empty()) report.verdict = facts["verdict"];
  const json& groups = facts["groups"];
  report.groups.resize(std::max(report.groups.size(), groups.size()));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    OverlapReport::Group& group = report.groups[i];
    group.threads = groups[i][0];
    group.duty = groups[i][1];
    group.runs += groups[i][2].get<std::uint64_t>();
    group.bytes += groups[i][3].get<std::uint64_t>();
    // Of the rank that has the fewest.
    if (const int threads = groups[i][4]; group.in_use.threads == 0 || threads < group.in_use.threads)
      group.in_use = {.threads = threads, .duty = groups[i][5]};
  }
  for (const auto& [reason, calls] : facts["alone"].items()) report.alone[reason] += calls.get<std::uint64_t>();
  report.early += facts["early"].get<std::uint64_t>();
  report.agreements += facts["agreements"].get<std::uint64_t>();
  report.whole_s += facts["whole"].get<double>();
  report.exposed_s += facts["exposed"].get<double>();
}

std::vector<std::string> overlap_report_lines(const OverlapReport& report) {
  if (report.ranks == 0) return {};
  std::vector<std::string> lines;
  if (!report.verdict.empty()) lines.push_back("overlap: auto: " + report.verdict);
  if (report.groups.empty()) return lines;
  lines.push_back("overlap: " + std::to_string(of_a_rank(fused_runs(report), report)) + " groups a rank of the plan" +
                  (report.model.empty() ? "" : " for " + report.model) + ", " +
                  std::to_string(of_a_rank(report.early, report)) + " begun before they were full; " + times(report));
  lines.push_back("overlap: threads x share of a core beside computation: " + shares_in_use(report));
  for (const auto& [reason, calls] : report.alone)
    lines.push_back("overlap: " + std::to_string(of_a_rank(calls, report)) + " calls a rank alone: " + reason);
  return lines;
}

json overlap_report_json(const OverlapReport& report) {
  json groups = json::array(), alone = json::object();
  for (const OverlapReport::Group& group : report.groups)
    groups.push_back({{"threads", group.threads},
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
  if (!report.verdict.empty()) object["auto"] = report.verdict;
  return object;
}

}  // namespace plait
