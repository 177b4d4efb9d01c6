// The namespace of this layer, in which the names of the layers below it (the runtime, transports, plans and topology)
// need no prefix.
#pragma once

namespace plait::topo {}
namespace plait::plan {}
namespace plait::tl {}
namespace plait::runtime {}
namespace plait::fused {
using namespace topo;
using namespace plan;
using namespace tl;
using namespace runtime;
}  // namespace plait::fused
