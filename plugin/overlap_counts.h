// What became of an overlap plan in this process, for the report: groups, calls that were none's, and how much of the
// communication was hidden behind the program's computation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "plan/overlap/overlap_plan.h"

namespace plait {

// Whether the program waits in MPI, as far as it can be seen: what the host's progress calls tells nothing of who
// called the host. Turns of it that follow each other at once are a wait. Any thread.
class HostTurns {
 public:
  // The program's thread is within MPI.
  void note(std::uint64_t now_ns);
  // It has just posted something new, and goes back to what it computes.
  void forget();
  // Whether it was there a moment ago, and probably still is.
  bool recent(std::uint64_t now_ns) const { return now_ns - last_ns_.load(std::memory_order_relaxed) < moment_ns; }
  // When the program's thread was there last, since the last forget(); 0: not.
  std::uint64_t last_ns() const { return last_ns_.load(std::memory_order_relaxed); }
  // Whether it waits, or asks so often that it must be taken for waiting.
  bool waits() const;

 private:
  static constexpr std::uint64_t longest_gap_ns = 200'000, moment_ns = 100'000;
  static constexpr std::uint32_t turns_of_wait = 32, turns_in_all = 256;

  std::atomic<std::uint64_t> last_ns_{0};
  std::atomic<std::uint32_t> in_a_row_{0}, in_all_{0};
};

// Time with communication of the plan under way, and the part of it in which the program waited in MPI. Thread-safe.
class ExposedTime {
 public:
  void begin(std::uint64_t now_ns);
  void end(std::uint64_t now_ns);
  // A turn of the program's in MPI: it waited since the last one, unless that is long ago.
  void note_turn(std::uint64_t now_ns);
  // The program has just posted something, and did not wait before.
  void forget_turn() { last_turn_ns_.store(0, std::memory_order_relaxed); }
  std::uint64_t whole_ns() const;
  std::uint64_t exposed_ns() const;

 private:
  // Longer than a process that shares its core is kept from it.
  static constexpr std::uint64_t longest_gap_ns = 20'000'000;

  mutable std::mutex guard_;
  int under_way_ = 0;
  std::uint64_t since_ns_ = 0, whole_ns_ = 0, exposed_ns_ = 0;
  std::atomic<std::uint64_t> last_turn_ns_{0};
};

class OverlapCounts {
 public:
  static OverlapCounts& instance();

  // Once, where the job may have plans.
  void start() { started_.store(true, std::memory_order_release); }
  // A plan's groups count from the number that it returns on.
  std::size_t add(const OverlapPlan& plan);
  bool started() const { return started_.load(std::memory_order_acquire); }

  HostTurns turns;
  ExposedTime time;

  void count_fused(std::size_t group, std::size_t bytes);
  void count_alone(const char* reason, std::uint64_t calls = 1);          // `reason` lives for ever
  void count_early() { early_.fetch_add(1, std::memory_order_relaxed); }  // a group that was begun before it was full
  void count_agreement() { agreements_.fetch_add(1, std::memory_order_relaxed); }

  // What a communicator has learned of its steps; the last one's stands in the report, of those that made a plan.
  void note_verdict(const std::string& verdict);

  nlohmann::json facts() const;

 private:
  struct Group {
    CommunicationShare share;
    std::uint64_t runs = 0, bytes = 0;
  };

  std::atomic<bool> started_{false};
  std::atomic<std::uint64_t> early_{0}, agreements_{0};
  mutable std::mutex guard_;
  std::string model_, verdict_;
  std::vector<Group> groups_;
  std::map<std::string, std::uint64_t> alone_;
};

// ---- Over the ranks of the job ----

struct OverlapReport {
  std::string model;
  std::string verdict;  // of a rank; empty: nothing was learned
  struct Group {
    int threads = 1;
    double duty = 1;
    CommunicationShare in_use{.threads = 0, .duty = 0};  // what was made of it where there were not so many threads
    std::uint64_t runs = 0, bytes = 0;
  };
  std::vector<Group> groups;
  std::map<std::string, std::uint64_t> alone;  // calls, by reason
  std::uint64_t early = 0, agreements = 0;
  double whole_s = 0, exposed_s = 0;
  int ranks = 0;  // that had a plan; the numbers are sums over them
};

void merge_overlap_facts(OverlapReport& report, const nlohmann::json& facts);
// What stands below the table; nothing where no rank had a plan.
std::vector<std::string> overlap_report_lines(const OverlapReport& report);
// The object "overlap" of the file (report.h).
nlohmann::json overlap_report_json(const OverlapReport& report);

}  // namespace plait
