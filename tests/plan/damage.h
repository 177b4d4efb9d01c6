// What may be wrong with a plan, for tests of its proofs.
#pragma once

#include <random>
#include <string>

#include "plan/algorithm/program.h"
#include "plan/model/schedule.h"

namespace plait::plan {

// Changes one thing in the schedule, or nothing where what was drawn does not fit; says what. `ordered`: the order of
// operands counts (where it does not, one that is turned round gives other bits, which only some plans forbid).
std::string damage(Schedule& schedule, int ranks, bool ordered, std::mt19937& random);

// The algorithm with something wrong in what it says, the same for each member alone as among all. One at a time: the
// value is the next call's, too.
const Algorithm& damaged(const Algorithm& algorithm, std::mt19937& random);
std::string describe_damage();

}  // namespace plait::plan
