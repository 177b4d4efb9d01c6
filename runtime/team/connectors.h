// The channels that a set-up connects by their connectors.
#pragma once

#include <memory>
#include <vector>

#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "tl/connector.h"

namespace plait::runtime {

// One of each channel that is registered in the source, for a set-up of the ranks of `oob`, which outlives them; of
// those that these ranks can have.
std::vector<std::unique_ptr<Connector>> make_connectors(Oob& oob);

}  // namespace plait::runtime
