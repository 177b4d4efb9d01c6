// What UCC is told beforehand of the calls that would be left to its next transport layer.
#pragma once

#include <string>

#include "plan/choose/planner.h"
#include "plugin/layer.h"

namespace plait::plugin {

// In the words of UCC_TL_PLAIT_TUNE: `score` for the collectives and sizes that the table or a row of plan/choose
// leaves to the host; empty: for none. `measured`: also for those that UCC's own layer was measured to be faster with.
// The same on all ranks. Sizes are told as UCC counts them: for collectives of one part a rank those of all ranks,
// where we count a part. May throw std::bad_alloc.
std::string scores_of_host(const plan::Planner& planner, int score, bool measured);

}  // namespace plait::plugin
