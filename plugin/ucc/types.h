// UCC's types and operators in the words of the runtime.
#pragma once

#include <ucc/api/ucc.h>

#include "plugin/layer.h"
#include "runtime/arguments/reductions.h"
#include "runtime/types/type_reader.h"

namespace plait::plugin {

// nullptr: a type of the program's own. Lives for ever.
const TypeFacts* type_of(ucc_datatype_t type);

// nullptr: one that is none of ours. UCC_OP_AVG is a sum.
const Operator* operator_of(ucc_reduction_op_t op);

// What is left to do after a UCC_OP_AVG's sum: divides by the number of ranks. False for types that it is not defined
// for.
bool has_average(ucc_datatype_t type);
void divide(void* elements, std::size_t count, ucc_datatype_t type, int by);

}  // namespace plait::plugin
