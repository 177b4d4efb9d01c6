// The arguments of collectives that combine data. As side.h says.
#pragma once

#include <cstddef>

#include "core/element.h"
#include "runtime/arguments/side.h"
#include "runtime/execution/caller.h"
#include "runtime/execution/communicator.h"
#include "runtime/execution/number_list.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"
#include "runtime/types/type_reader.h"

namespace plait::runtime {

// By one of core's operators, or by one of the program's own.
struct Operator {
  Op op = Op::count_;    // count_: the program's own
  OperatorHandle own{};  // then
  bool commutative = true;
};

// A type or an operator that is nullptr must be checked by the caller.
struct Operands {
  const void* send = nullptr;
  void* receive = nullptr;
  const TypeFacts* type = nullptr;
  const Operator* op = nullptr;
};

// The operands one by one: as one argument they would go through memory.
const char* prepare_allreduce(Request& request, const void* send, void* receive, std::ptrdiff_t count,
                              const TypeFacts* type, const Operator* op);
const char* prepare_reduce(const Communicator& communicator, Request& request, const Operands& operands,
                           std::ptrdiff_t count, int root);
const char* prepare_reduce_scatter_block(const Communicator& communicator, Request& request, const Operands& operands,
                                         std::ptrdiff_t count);
const char* prepare_reduce_scatter(const Communicator& communicator, Request& request, const Operands& operands,
                                   const NumberList& counts);
// Scans: inclusive or exclusive.
const char* prepare_scan(const Communicator& communicator, Request& request, const Operands& operands,
                         std::ptrdiff_t count, Prefix prefix);

}  // namespace plait::runtime
