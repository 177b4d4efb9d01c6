// What the runtime asks of UCC.
#pragma once

#include "plugin/layer.h"
#include "runtime/execution/caller.h"

namespace plait::plugin {

// Its codes are ucc_status_t. Lives for ever.
const Caller& ucc_caller();

}  // namespace plait::plugin
