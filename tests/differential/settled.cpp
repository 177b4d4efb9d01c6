#include "tests/differential/settled.h"

#include <algorithm>
#include <bit>

namespace plait::test {
namespace {

// In a trial a candidate has at most two turns in a row, each as long as a sample.
constexpr std::size_t turns_at_most = 2;

// Of a class that nothing was known of, so many calls have gone by another candidate: those before its trial, and what
// may come first in it.
std::size_t calls_to_judge(int size_class, std::size_t longest_turn) {
  constexpr std::size_t before_trial = 64, before_set_up = 3;
  return (size_class <= 16 ? before_trial : before_trial / 8) + before_set_up + 3 * longest_turn;
}

std::size_t longest_turn(const Case& test, std::size_t bytes) {
  if (bytes < 4096) return rooted(test.collective) ? 32 : 8;
  return bytes < 65536 && rooted(test.collective) ? 8 : 1;
}

bool commutes(const Case& test) {
  int commutes = 1;
  if (test.op != nullptr) MPI_Op_commutative(test.op->handle, &commutes);
  return commutes != 0;
}

}  // namespace

void Settled::note(const Trial& trial) {
  if (trial.party().ranks < 2) return;
  const std::size_t bytes = trial.payload();
  ClassCounts& seen = classes_[{.party = trial.test().party,
                                .collective = trial.test().collective,
                                .size_class = static_cast<int>(std::bit_width(bytes)),
                                .commutative = commutes(trial.test())}];
  seen.longest_turn = longest_turn(trial.test(), bytes);
  for (const std::string& plan : trial.plans()) {
    constexpr std::size_t before_set_up = 3;
    if (plan != seen.plan) {
      if (seen.calls > before_set_up) ++seen.changes;
      seen.same = 0;
    }
    seen.plan = plan;
    ++seen.calls;
    ++seen.same;
  }
}

Settled::Counts Settled::counts() const {
  Counts counts;
  for (const auto& [of, seen] : classes_) {
    if (seen.calls < calls_to_judge(of.size_class, seen.longest_turn)) continue;
    counts.calls += seen.calls;
    if (seen.changes == 0) {
      ++(seen.plan == "host" ? counts.known_host : counts.known_plans);
      continue;
    }
    counts.in_trials += seen.calls - seen.same;
    const bool settled = seen.same > turns_at_most * seen.longest_turn + 8;
    ++(!settled ? counts.open : seen.plan == "host" ? counts.on_host : counts.on_plans);
  }
  return counts;
}

}  // namespace plait::test
