// A call that the trial of its class wants to be timed: what the ranks do together before and after it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "runtime/team/team.h"

namespace plait::runtime {

// Before the call: where it begins a sample, returns at about the same time on all ranks, so that none of them waits in
// the call for a late one; and no rank goes to the host where another one has failed. Collective; blocks.
Status meet_for_timed_call(Team& team, const Trial& trial);

// After it; `bytes`: payload_bytes(). Where the trial has all its samples the ranks agree on them: collective, and
// blocks, then.
Status end_timed_call(Team& team, TrialClass& tried, std::uint64_t nanoseconds, std::size_t bytes);

}  // namespace plait::runtime
