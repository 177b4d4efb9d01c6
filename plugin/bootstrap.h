// The set-up of a communicator: finds where its ranks are, connects them, and agrees that all of them can go on.
#pragma once

#include <memory>

#include "core/status.h"
#include "plugin/communicator.h"
#include "plugin/machinery.h"

namespace plait::plugin {

// Collective over the communicator, with the same extent on all ranks; blocks. `before` is what the communicator has so
// far, or nullptr. A set-up for short calls turns into one for all calls where the short one does not work. All ranks
// succeed or all fail. Holds no lock while it communicates, so that threads may set up several communicators at once,
// in any order.
Result<std::unique_ptr<Machinery>> set_up(const Communicator& communicator, Extent extent,
                                          std::unique_ptr<Machinery> before);

// For a rank that cannot, while the others call set_up() with nothing before: they fail at once. Needs no memory of
// ours.
void decline_set_up(const Communicator& communicator) noexcept;

}  // namespace plait::plugin
