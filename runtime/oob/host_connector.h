// The messages that ranks have besides, as a channel of theirs.
#pragma once

#include <memory>

#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "tl/connector.h"

namespace plait::runtime {

// nullptr where the ranks of `oob` have none. `oob` outlives the connector and its channel.
std::unique_ptr<Connector> make_host_connector(Oob& oob);

}  // namespace plait::runtime
