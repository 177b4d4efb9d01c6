// The namespace of this layer, in which the names of the layers below it (plans and topology) need no prefix.
#pragma once

namespace plait::topo {}
namespace plait::plan {}
namespace plait::tuner {
using namespace topo;
using namespace plan;
}  // namespace plait::tuner
