// Where the data of a type lie, for memory that the caller's own packing must not touch.
#pragma once

#include <vector>

#include "runtime/layer.h"
#include "runtime/types/type_reader.h"

namespace plait::runtime {

// The data of one element in the order in which they are packed; what is gapless is one run. `type` is of `reader`,
// which tells `facts` of it. Throws std::bad_alloc.
std::vector<ByteRun> runs_of(const TypeFacts& facts, TypeHandle type, const TypeReader& reader);

}  // namespace plait::runtime
