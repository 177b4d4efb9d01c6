// The namespace of this layer, in which the names of the layers below it (transports, plans and topology) need no
// prefix.
#pragma once

namespace plait::topo {}
namespace plait::plan {}
namespace plait::tl {}
namespace plait::runtime {
using namespace topo;
using namespace plan;
using namespace tl;
}  // namespace plait::runtime
