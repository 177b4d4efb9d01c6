// The trials of a communicator (docs/tuning.md), one a class of calls: which class a call belongs to, for how many
// calls nothing is planned for it, what its candidates are, and what is known from before.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/choose/planner.h"
#include "plan/model/collective.h"
#include "runtime/layer.h"
#include "runtime/trial/learned.h"
#include "runtime/trial/trial.h"

namespace plait::runtime {

struct TrialClass {
  Trial trial;
  std::vector<std::string> plans;  // by candidate, from the second one on
  bool in_order = false;           // it was asked for by a call that all ranks make between the same others
  const char* reason() const;      // of a call that the host has
};

// When a class is asked for: in the order of the communicator's calls, the same on all ranks, or at a moment of this
// rank's own, as what the operations under way need.
enum class Moment : bool { in_order, own };

// Not thread-safe. The same on all ranks, given what the calls and `known` are.
class Trials {
 public:
  // Tries nothing before start().
  explicit Trials(Planner& planner) : planner_(planner) {}
  ~Trials();
  Trials(const Trials&) = delete;
  Trials& operator=(const Trials&) = delete;

  // `shape`: as in a tuning table. `known`: the same on all ranks.
  void start(std::string shape, std::vector<TuningRecord> known);

  // That of a call's class; nullptr: it has no trial. Valid until clear(). In the order of calls it is one that nothing
  // is planned for (Trial::planned()) until plan() is told of that. `changed`: whether its calls go by another
  // candidate from now on than what was asked for at moments of this rank's own has been told.
  struct Found {
    TrialClass* tried = nullptr;
    bool changed = false;
  };
  Found find(const Call& call, Moment moment);
  TrialClass* of(const Call& call) { return find(call, Moment::in_order).tried; }
  // From now on the calls of this class, which nothing was planned for, go by plans.
  void plan(const TrialClass& unplanned);
  // A plan of the class, for a call of it. `candidate`: not the host.
  Choice choose(const Call& call, const TrialClass& tried, int candidate);
  // After the ranks agreed on what the class's calls take.
  void note_concluded(const TrialClass& concluded);
  // The planner may answer differently from now on.
  void clear();

 private:
  struct Key {
    Collective collective;
    int size_class;
    bool commutative;
    auto operator<=>(const Key&) const = default;
  };
  struct Class {
    std::unique_ptr<TrialClass> unplanned;  // kept, as what was prepared by it may still run
    std::unique_ptr<TrialClass> tried;      // null: not made, or without a trial
    bool waits = false;                     // in the order of calls it is `unplanned`
    bool ordered = false, made = false;     // whether it was asked for in that order, and at all
  };
  std::uint32_t calls_by_host(const Call& call, const Key& key) const;
  std::unique_ptr<TrialClass> make(const Call& call, const Key& key);
  TrialTerms terms_of(const Call& call, const Key& key, double predicted_seconds);
  std::optional<Trial::Known> known_of(const Key& key, const std::vector<std::string>& plans) const;
  const TuningRecord* tuning_record(const Key& key) const;
  Prospect host_prospect(const Key& key, Moment moment) const;
  // What the rounds between the ranks of a trial are predicted to take.
  struct Rounds {
    std::uint64_t meeting = 0, agreeing = 0;  // nanoseconds
  };
  const Rounds& rounds();
  std::uint64_t predicted_nanoseconds(const Call& call);
  void keep(const Key& key, const TrialClass& tried) const;

  Planner& planner_;
  bool on_ = false;
  std::optional<bool> can_agree_;  // not known before the first class
  std::optional<Rounds> rounds_;   // likewise
  std::string shape_;
  std::vector<TuningRecord> known_;
  std::map<Key, Class> classes_;
};

// Whether the job's settings leave anything to trials.
bool trials_wanted();

// What the ranks of a trial run by themselves, as the model plans it: before a timed call, so that none waits for
// another one in it; and to bring their samples together.
Call meeting_call();
Call agreement_call();

}  // namespace plait::runtime
