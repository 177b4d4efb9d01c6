// What a collective call's arguments are read into, kept from call to call so that it keeps its memory.
#pragma once

#include "plugin/layer.h"
#include "plugin/mpi/types/datatype.h"
#include "runtime/arguments/reductions.h"
#include "runtime/execution/lists.h"
#include "runtime/execution/request.h"

namespace plait::plugin {

struct CallSpace : Lists {
  // Of a single call.
  Datatype input_type, output_type;
  Operator op;
};

// Where a request of ours has its lists.
inline CallSpace& space_of(const Request& request) { return static_cast<CallSpace&>(*request.lists); }

}  // namespace plait::plugin
