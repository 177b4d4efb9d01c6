// The calls a communicator has made, ready to run: one look-up a call, the planner only for what is new.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plan/choose/planner.h"
#include "runtime/layer.h"
#include "runtime/record/report_rows.h"
#include "runtime/trial/trials.h"

namespace plait::runtime {

// How a call is planned: as its trial was settled, asked for at a moment of this rank's own (Moment) or in the order of
// the calls; as the planner alone chooses; or by the plan of that number in its trial.
inline constexpr int own_moment_candidate = -2, settled_candidate = -1, planners_candidate = 0;

// Everything that decides a bound schedule. `in_place` and `displacements` are local matters: they change where this
// rank's bytes lie, never which plan runs. The call is named, not copied: a copy shows in the time of a small call.
struct CallShape {
  const Call& call;
  bool in_place = false;
  const std::size_t* displacements = nullptr;  // as in Placement, by rank; nullptr: dense
  int candidate = settled_candidate;
};

// Of the data of all ranks, where each has a part of its own; else of the vector.
inline constexpr std::size_t short_call_bytes = 2048;
// Depends on nothing but the call, and is the same on all ranks.
bool is_short(const Call& call, int ranks);

struct PreparedCall {
  bool accelerated = false;
  bool too_long = false;      // for a cache that takes only short calls; nothing else is known then
  const char* plan = "host";  // interned, like the others
  const char* channels = "";
  const char* reason = "";      // of the host
  TrialClass* tried = nullptr;  // in settled_candidate; nullptr: the class has no trial
  BoundSchedule schedule;
  std::uint64_t payload = 0;            // payload_bytes()
  std::uint64_t saved_nanoseconds = 0;  // against the host, as a table says
  ReportRow* row = nullptr;             // where the call is counted; nullptr: nowhere
};

// Bounded in number and in bytes. Not thread-safe.
//
// Where a class of calls (class_of_payload) has one plan whose schedule grows with the data, one entry serves them all:
// it is bound anew to a call of another length, in place. Programs whose lengths are ever new (the columns of a
// factorization) plan and allocate nothing then. All other calls have an entry by their exact shape.
class ScheduleCache {
 public:
  ScheduleCache(Planner& planner, Trials& trials, int rank, int ranks)
      : planner_(planner), trials_(trials), rank_(rank), ranks_(ranks) {}

  // Valid until the next find().
  const PreparedCall& find(const CallShape& shape) {
    const Entry* last = last_[static_cast<std::size_t>(shape.call.collective)];
    if (last != nullptr && same(last->shape(), shape)) return last->prepared;
    return search(shape);
  }

  // The same, valid as long as it is held.
  std::shared_ptr<const PreparedCall> hold(const CallShape& shape) {
    const PreparedCall& prepared = find(shape);
    return {last_[static_cast<std::size_t>(shape.call.collective)]->shared_from_this(), &prepared};
  }

  // ReportKey::grid of the calls that are new from now on.
  void count_for(const char* grid) { grid_ = grid; }

  // From now on calls that are not short are not planned.
  void take_only_short_calls() { only_short_ = true; }

  // Goes up where calls were forgotten because they may be planned otherwise from now on.
  std::uint64_t changes() const { return changes_; }

  // Forgets all calls: the planner or the trials may answer differently from now on.
  void clear();
  // Likewise those that go as this trial was settled.
  void forget(const TrialClass& tried);
  // From now on the calls of this class, which nothing was planned for, go by plans.
  void plan(const TrialClass& unplanned);

 private:
  struct Entry : std::enable_shared_from_this<Entry> {
    Call call;  // its counts are those below
    bool in_place = false;
    bool displaced = false;
    int candidate = settled_candidate;
    std::vector<std::size_t> counts, displacements;
    std::uint64_t hash = 0;
    std::size_t bytes = 0;               // of memory, roughly
    bool by_class = false;               // serves all calls of its class: `call` is the latest
    const Schedule* schedule = nullptr;  // whose binding is `prepared.schedule`; the planner's
    PreparedCall prepared;
    CallShape shape() const { return {call, in_place, displaced ? displacements.data() : nullptr, candidate}; }
  };
  // Interned texts of a collective's last plan, so that the next call by it interns none.
  struct PlanNames {
    const ReadyPlan* of = nullptr;
    ChannelSet channels_used;
    const char* plan = "";
    const char* channels = "";
  };
  static constexpr std::size_t sets = 64, ways = 4;
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;

  bool same(const CallShape& a, const CallShape& b) const {
    return a.call.count == b.call.count && a.call.element_bytes == b.call.element_bytes && a.call.root == b.call.root &&
           a.in_place == b.in_place && a.candidate == b.candidate && a.call.commutative == b.call.commutative &&
           a.call.collective == b.call.collective && same_list(a.call.counts, b.call.counts) &&
           same_list(a.displacements, b.displacements);
  }
  bool same_list(const std::size_t* a, const std::size_t* b) const {
    return (a == nullptr && b == nullptr) || same_values(a, b);
  }
  bool same_values(const std::size_t* a, const std::size_t* b) const;
  bool has_class(const CallShape& shape) const;
  bool same_class(const CallShape& a, const CallShape& b) const;
  std::uint64_t hash(const CallShape& shape, bool by_class) const;
  std::size_t set_of(std::uint64_t hash) const { return (hash >> 32) % sets * ways; }
  const PreparedCall& search(const CallShape& shape);
  bool adapt(std::shared_ptr<Entry>& entry, const CallShape& shape);
  bool has_entry(std::uint64_t hash) const;
  std::size_t slot_for(std::uint64_t hash);
  std::shared_ptr<Entry> take_out(std::size_t slot);
  const PreparedCall& add(const CallShape& shape);

  // What the planner, or the trial of its class, says of a call before it is bound.
  struct Answer {
    bool too_long = false;
    TrialClass* tried = nullptr;     // PreparedCall::tried
    TrialClass* by_trial = nullptr;  // whose candidate was asked for; nullptr: the planner
    int candidate = Trial::host;     // that one
    Choice choice = {};
  };
  Answer ask(const CallShape& shape);
  void fill(Entry& entry, const CallShape& shape, const Answer& answer);
  void bind_to_call(Entry& entry, const ReadyPlan& plan);
  const PlanNames& names_of(const ReadyPlan& plan, Collective collective, ChannelSet channels_used);
  void store(std::size_t slot, std::shared_ptr<Entry> entry);
  void forget(std::size_t slot);
  void forget_all();

  Planner& planner_;
  Trials& trials_;
  int rank_;
  int ranks_;
  const char* grid_ = "";
  bool only_short_ = false;
  std::array<const Entry*, collective_count> last_{};
  std::array<PlanNames, collective_count> names_{};
  std::array<std::uint64_t, sets * ways> hashes_{};  // of the entries, so that a look at a set touches none of them
  std::array<std::shared_ptr<Entry>, sets * ways> entries_;
  std::size_t bytes_ = 0;
  std::uint64_t changes_ = 0;
  std::size_t next_victim_ = 0;
};

}  // namespace plait::runtime
