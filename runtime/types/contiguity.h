// Whether a type is a plain array of bytes by another name.
#pragma once

#include <optional>

#include "runtime/layer.h"
#include "runtime/types/type_reader.h"

namespace plait::runtime {

// `type` is of `reader`, which tells `facts` of it.

// The data of one element, where they lie in memory as they are packed; nullopt: they do not. Throws std::bad_alloc.
std::optional<ByteRun> run_of(const TypeFacts& facts, TypeHandle type, const TypeReader& reader);

// Whether any number of elements lies in memory in the order and without the gaps of the packed form. Sizes and extents
// do not tell: an indexed type may visit a gapless block in another order, or one place twice and another one never.
// Throws std::bad_alloc.
bool is_contiguous(const TypeFacts& facts, TypeHandle type, const TypeReader& reader);

}  // namespace plait::runtime
