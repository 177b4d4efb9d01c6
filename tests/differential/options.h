// The test program's command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/differential/memory.h"
#include "tests/differential/trial.h"

namespace plait::test {

// What must have become of the trials of Plait's calls.
enum class Expected { nothing, settled, known, host };

// A plan that calls are made by, and the collectives that it is one of.
struct ForcedPlan {
  std::string plan;
  std::vector<Collective> collectives;
};

struct Options {
  std::vector<Collective> collectives;
  double budget_s = 20;
  std::uint64_t seed = 1;
  bool large = false;
  std::size_t first = 0;           // number of the first case
  std::optional<std::size_t> end;  // one past the last; none: until the budget is spent
  std::string expected_plan;       // the name of a plan that some case must run, in whatever number of chunks
  std::vector<ForcedPlan> plans;   // each is forced in turn for its collectives, and must run; none: what is chosen
  std::size_t enough = 0;          // the run ends when that plan has run in so many cases; 0: it goes on
  bool expect_host = false;        // every call must go to the host
  bool any_road = false;           // calls may go to the host or not
  bool reference = false;          // the host against itself, without Plait
  bool settle = false;             // few classes of calls, each often enough that its trial settles
  std::size_t scenes = 0;          // of such classes: the run ends after so many; 0: by the budget
  Expected expected = Expected::nothing;
  int threads = 1;                             // that make Plait's calls, each on communicators of its own
  std::vector<Form> forms = {Form::blocking};  // of Plait's calls
  Origin memory = Origin::heap;
  std::string device;          // a driver, in whose memory some buffers of Plait's calls are; empty: none
  bool mostly_device = false;  // nearly all of them
  bool extras = true;
};

// Empty when the command line is wrong; the reason was printed when `speak`.
std::optional<Options> parse_options(int argc, char** argv, bool speak);

}  // namespace plait::test
