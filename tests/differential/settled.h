// What became of the trials of Plait's calls, as a program sees it: by which candidate each of its calls went.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <string>

#include "tests/differential/trial.h"

namespace plait::test {

class Settled {
 public:
  // All blocking calls of a trial of this test.
  void note(const Trial& trial);

  struct Counts {
    std::size_t calls = 0;                            // in classes that were called often enough to say anything about
    std::size_t in_trials = 0;                        // of these: before the last change of candidate
    std::size_t on_plans = 0, on_host = 0, open = 0;  // classes that were tried, by what they came to
    // Classes that went by one candidate from the set-up on, by an earlier job's trial or without any.
    std::size_t known_plans = 0, known_host = 0;
  };
  Counts counts() const;

 private:
  // Calls that Plait tries out together (docs/tuning.md).
  struct Class {
    std::size_t party;
    Collective collective;
    int size_class;
    bool commutative;
    auto operator<=>(const Class&) const = default;
  };
  struct ClassCounts {
    std::string plan;  // the last call's
    std::size_t calls = 0;
    std::size_t changes = 0;  // of candidate, from one call to the next, not counting those before the set-up
    std::size_t same = 0;     // calls since the last one
    std::size_t longest_turn = 1;
  };
  std::map<Class, ClassCounts> classes_;
};

}  // namespace plait::test
