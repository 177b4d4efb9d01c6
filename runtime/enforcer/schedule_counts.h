// What became of the job's schedule in this process, for the report. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/json.h"
#include "runtime/layer.h"

namespace plait::runtime {

class ScheduleCounts {
 public:
  static ScheduleCounts& instance();

  // The job has a schedule of that name, by which an iteration takes so long.
  void start(const std::string& step, double predicted_seconds);
  // It is not kept to here, or not any more.
  void refuse(const std::string& reason);
  // What became of one that the job makes itself; the last few are kept.
  void note(const std::string& what);
  void note_iteration(std::uint64_t nanoseconds);  // from its first call to the next one's
  void count_enforced() { enforced_.fetch_add(1, std::memory_order_relaxed); }
  void count_plain() { plain_.fetch_add(1, std::memory_order_relaxed); }
  // A piece began before its turn, as the program or another rank waited for it.
  void count_early() { early_.fetch_add(1, std::memory_order_relaxed); }
  // The schedule was left, as the program made another call.
  void count_other_call() { other_calls_.fetch_add(1, std::memory_order_relaxed); }

  // Null where there is no schedule.
  SortedJson facts() const;

 private:
  std::atomic<std::uint64_t> enforced_{0}, plain_{0}, early_{0}, other_calls_{0};
  std::atomic<std::uint64_t> iterations_{0}, iterations_ns_{0};
  mutable std::mutex guard_;
  bool started_ = false;
  std::string step_, refusal_;
  std::vector<std::string> notes_;
  double predicted_seconds_ = 0;
};

// ---- Over the ranks of the job ----

struct ScheduleReport {
  int ranks = 0;  // that had the schedule; numbers are the largest of any
  std::string step, refusal;
  std::vector<std::string> notes;
  double predicted_s = 0, iteration_s = 0;
  std::uint64_t iterations = 0, enforced = 0, plain = 0, early = 0, other_calls = 0;
};

void merge_schedule_facts(ScheduleReport& report, const SortedJson& facts);
// Nothing where no rank had a schedule.
std::vector<std::string> schedule_report_lines(const ScheduleReport& report);
SortedJson schedule_report_json(const ScheduleReport& report);

}  // namespace plait::runtime
