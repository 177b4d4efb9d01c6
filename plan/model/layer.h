// The namespace of this layer, in which the names of the layers below it (topology) need no prefix.
#pragma once

namespace plait::topo {}
namespace plait::plan {
using namespace topo;
}  // namespace plait::plan
