// A kilobyte from each rank to another over a new channel, before anything relies on it.
#pragma once

#include <cstdint>

#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "tl/channel.h"
#include "topo/hierarchy.h"

namespace plait::runtime {

struct TrialPartners {
  int to = 0, from = 0;
};
// The rank whose vrank lies as far behind this one's as the largest node is large, which is on another node; and the
// one that takes this rank for that.
TrialPartners trial_partners(const Hierarchy& hierarchy, int rank);

// Collective; all ranks name the partners of trial_partners(). True when both messages went through within
// `limit_ns` and the right bytes came; false early where a partner leaves. Blocks so long at most; what is
// still on its way out of band moves on meanwhile. A channel that failed is good for nothing more.
bool trial_succeeds(Channel& channel, Oob& oob, TrialPartners partners, std::uint64_t limit_ns);

// For a rank that cannot take part, or in no further trial: its partners' trials on `oob` fail, and they pass it on to
// theirs. Needs no memory of ours. What was said so stays in `oob`, which is good for nothing more.
void leave_trials(Oob& oob, TrialPartners partners) noexcept;

}  // namespace plait::runtime
