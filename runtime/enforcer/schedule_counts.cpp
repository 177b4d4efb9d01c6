#include "runtime/enforcer/schedule_counts.h"

#include <algorithm>
#include <cstdio>

#include "core/immortal.h"

namespace plait::runtime {

using json = SortedJson;

namespace {
constexpr std::size_t most_notes = 8;
}  // namespace

ScheduleCounts& ScheduleCounts::instance() {
  static Immortal<ScheduleCounts> counts;
  return *counts;
}

void ScheduleCounts::start(const std::string& step, double predicted_seconds) {
  const std::scoped_lock lock(guard_);
  started_ = true;
  step_ = step;
  predicted_seconds_ = predicted_seconds;
}

void ScheduleCounts::refuse(const std::string& reason) {
  const std::scoped_lock lock(guard_);
  refusal_ = reason;
}

void ScheduleCounts::note(const std::string& what) {
  const std::scoped_lock lock(guard_);
  if (notes_.size() < most_notes) notes_.push_back(what);
}

void ScheduleCounts::note_iteration(std::uint64_t nanoseconds) {
  iterations_.fetch_add(1, std::memory_order_relaxed);
  iterations_ns_.fetch_add(nanoseconds, std::memory_order_relaxed);
}

SortedJson ScheduleCounts::facts() const {
  const std::scoped_lock lock(guard_);
  if (!started_) return nullptr;
  const std::uint64_t iterations = iterations_.load(), iterations_ns = iterations_ns_.load();
  const double seconds =
      iterations == 0 ? 0 : static_cast<double>(iterations_ns) * 1e-9 / static_cast<double>(iterations);
  return {{"step", step_},
          {"refusal", refusal_},
          {"notes", notes_},
          {"predicted_s", predicted_seconds_},
          {"iteration_s", seconds},
          {"iterations", iterations},
          {"enforced", enforced_.load()},
          {"plain", plain_.load()},
          {"early", early_.load()},
          {"other_calls", other_calls_.load()}};
}

// ---- Over the ranks of the job ----

void merge_schedule_facts(ScheduleReport& report, const SortedJson& facts) {
  if (!facts.is_object()) return;
  ++report.ranks;
  report.step = facts.value("step", report.step);
  if (report.refusal.empty()) report.refusal = facts.value("refusal", "");
  if (report.notes.empty()) report.notes = facts.value("notes", std::vector<std::string>{});
  report.predicted_s = facts.value("predicted_s", 0.0);
  report.iteration_s = std::max(report.iteration_s, facts.value("iteration_s", 0.0));
  const auto take = [&](const char* name, std::uint64_t& most) {
    most = std::max(most, facts.value(name, std::uint64_t{0}));
  };
  take("iterations", report.iterations);
  take("enforced", report.enforced);
  take("plain", report.plain);
  take("early", report.early);
  take("other_calls", report.other_calls);
}

std::vector<std::string> schedule_report_lines(const ScheduleReport& report) {
  if (report.ranks == 0) return {};
  if (!report.refusal.empty()) return {"schedule \"" + report.step + "\": not kept to: " + report.refusal};
  std::vector<std::string> lines;
  for (const std::string& note : report.notes) lines.push_back("schedule: " + note);
  char line[256];
  std::snprintf(line, sizeof line, "%llu iterations, %llu calls by it, %llu as without it",
                static_cast<unsigned long long>(report.iterations), static_cast<unsigned long long>(report.enforced),
                static_cast<unsigned long long>(report.plain));
  lines.push_back("schedule \"" + report.step + "\": " + line);
  if (report.iterations > 0 && report.predicted_s > 0) {
    std::snprintf(line, sizeof line, "schedule: an iteration took %.3f ms, %.3f ms predicted", report.iteration_s * 1e3,
                  report.predicted_s * 1e3);
    lines.emplace_back(line);
  }
  if (report.early + report.other_calls > 0) {
    std::snprintf(line, sizeof line,
                  "schedule: left %llu times, as the program made another call; %llu pieces before their turn, as "
                  "something waited for them",
                  static_cast<unsigned long long>(report.other_calls), static_cast<unsigned long long>(report.early));
    lines.emplace_back(line);
  }
  return lines;
}

SortedJson schedule_report_json(const ScheduleReport& report) {
  return {{"step", report.step},
          {"refusal", report.refusal},
          {"notes", report.notes},
          {"predicted_s", report.predicted_s},
          {"iteration_s", report.iteration_s},
          {"iterations", report.iterations},
          {"calls", {{"by_schedule", report.enforced}, {"plain", report.plain}}},
          {"pieces_early", report.early},
          {"left", report.other_calls}};
}

}  // namespace plait::runtime
