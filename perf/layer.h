// The namespace of the measuring programs, in which the names of the layers that they measure need no prefix.
#pragma once

namespace plait::topo {}
namespace plait::plan {}
namespace plait::tl {}
namespace plait::tuner {}
namespace plait::perf {
using namespace topo;
using namespace plan;
using namespace tl;
using namespace tuner;
}  // namespace plait::perf
