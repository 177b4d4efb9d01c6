// What became of an overlap plan in this process, for the report: groups, calls that were none's, and how much of the
// communication was hidden behind the program's computation.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "plan/overlap/overlap_plan.h"
#include "runtime/layer.h"

namespace plait::runtime {

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

// Communicators whose learned steps stand in one line of the report.
struct LearnedKind {
  int ranks = 0;
  std::size_t calls = 0;  // of the step; 0: none was found

  friend auto operator<=>(const LearnedKind&, const LearnedKind&) = default;
};

// What communicators of a kind have come to.
struct LearnedOutcome {
  std::uint64_t communicators = 0, planned = 0;  // the latter of the former run by a plan
  std::string verdict;  // of the last one, of those that run by a plan, else of those for which one was made
  int telling = 0;      // how much it says

  void take(const std::string& other, bool runs_by_plan);
};

class OverlapCounts {
 public:
  static OverlapCounts& instance();

  // Once, where the job may have plans.
  void start() { started_.store(true, std::memory_order_release); }
  // A plan's groups count from the number that it returns on, which is the same for equal plans. `ranks`: of the
  // communicator that has learned it; 0: it is the job's. Of many learned ones the rest is counted together.
  std::size_t add(const OverlapPlan& plan, int ranks = 0);
  bool started() const { return started_.load(std::memory_order_acquire); }

  ExposedTime time;

  void count_fused(std::size_t group, std::size_t bytes);
  void count_alone(const char* reason, std::uint64_t calls = 1);          // `reason` lives for ever
  void count_early() { early_.fetch_add(1, std::memory_order_relaxed); }  // a group that was begun before it was full
  void count_agreement() { agreements_.fetch_add(1, std::memory_order_relaxed); }

  // Where a communicator is counted.
  struct Place {
    bool taken = false, planned = false;
    LearnedKind kind;
  };
  // What a communicator has learned of its steps, at `place`, which is its own; again when it knows more. For one of
  // its ranks. Of many kinds the rest is counted as one, of no ranks.
  void note_verdict(Place& place, const LearnedKind& kind, bool planned, const std::string& verdict);

  SortedJson facts() const;

 private:
  struct Group {
    CommunicationShare share;
    std::uint64_t runs = 0, bytes = 0;
  };
  struct Plan {
    std::uint64_t hash = 0;
    LearnedKind kind;
    std::size_t first_group = 0, groups = 0;
  };

  std::atomic<bool> started_{false};
  std::atomic<std::uint64_t> early_{0}, agreements_{0};
  mutable std::mutex guard_;
  std::string model_;
  std::map<LearnedKind, LearnedOutcome> learned_;
  std::vector<Plan> plans_;
  std::vector<Group> groups_;
  Group others_;  // of plans that are not listed
  std::map<std::string, std::uint64_t> alone_;
};

// ---- Over the ranks of the job ----

struct OverlapReport {
  std::string model;
  std::map<LearnedKind, LearnedOutcome> learned;
  struct Group {
    int threads = 1;
    double duty = 1;
    CommunicationShare in_use{.threads = 0, .duty = 0};  // what was made of it where there were not so many threads
    std::uint64_t runs = 0, bytes = 0;
    LearnedKind kind;  // of the communicators; no ranks: the plan is the job's
  };
  std::vector<Group> groups;
  Group others;  // of plans that are not listed
  struct Plan {
    std::uint64_t hash = 0;
    std::size_t first_group = 0;
  };
  std::vector<Plan> plans;
  std::map<std::string, std::uint64_t> alone;  // calls, by reason
  std::uint64_t early = 0, agreements = 0;
  double whole_s = 0, exposed_s = 0;
  int ranks = 0;  // that had a plan; the numbers are sums over them
};

void merge_overlap_facts(OverlapReport& report, const SortedJson& facts);
// What stands below the table; nothing where no rank had a plan.
std::vector<std::string> overlap_report_lines(const OverlapReport& report);
// The object "overlap" of the file (report.h).
SortedJson overlap_report_json(const OverlapReport& report);

}  // namespace plait::runtime
