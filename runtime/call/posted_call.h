// A blocking call that is posted among the communicator's operations and waited for: where their grouping says so.
#pragma once

#include <cstdint>

#include "runtime/execution/communicator.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"

namespace plait::runtime {

// Returns what the call is to return. Precondition: Grouping::takes_blocking() said so just now. May throw
// std::bad_alloc. `begin_ns`: of the call, 0 when nobody measures.
int post_and_wait(Communicator& communicator, const Request& request, std::uint64_t begin_ns);

}  // namespace plait::runtime
