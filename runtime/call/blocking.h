// Blocking calls: when a communicator is set up for them, and how they run.
#pragma once

#include <cstdint>

#include "runtime/execution/communicator.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"
#include "runtime/team/extent.h"

namespace plait::runtime {

// What became of a request: `reason` is why the host must take the call, nullptr when it is done with `code`.
struct Outcome {
  const char* reason = nullptr;
  int code = 0;
};

// Runs an eligible request, or says why not. The first eligible calls of a communicator are the host's; then it is set
// up, collectively. Throws nothing. `begin_ns`: of the call, 0 when nobody measures.
Outcome accelerate(Communicator& communicator, Request& request, std::uint64_t begin_ns);

// After the host has taken a call for which `communicator.timed` is set.
void end_host_call(Communicator& communicator);

// Sets up a communicator that waits for it, or that is set up for less; collective over it. Afterwards it is
// accelerated, or the host's for ever, or broken where a rank had failed before.
void set_up_now(Communicator& communicator, TeamExtent extent);

// For what is thrown before a call has begun.

// Where the others leave the call to the host, this rank does so as well: true until a communicator is set up. The call
// counts as an eligible one, as it does with the others unless its arguments are none of Plait's. Where they set up at
// this call, they hear that this rank cannot.
bool stay_with_host(Communicator& communicator) noexcept;

}  // namespace plait::runtime
