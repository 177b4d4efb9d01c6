// Combines elements, by the kernels chosen for this processor or by a user's operator.
#pragma once

#include <cstddef>

#include "core/element.h"
#include "core/reduce_kernel.h"

namespace plait {

// The kernel for (op, element), chosen for this processor; nullptr where MPI does not define the
// combination (MPI 3.1, section 5.9.2). Thread-safe; the pointer stays valid for the life of the
// process.
ReduceKernel reduce_kernel(Op op, Element element);

// How one call combines two operands: a predefined kernel, or a user's operator behind `apply`.
struct Reducer {
  // result = left op right over `count` elements; aliasing as for ReduceKernel.
  void (*apply)(const Reducer& self, void* result, const void* left, const void* right, std::size_t count) = nullptr;
  ReduceKernel kernel = nullptr;
  ManyKernel many = nullptr;      // nullptr: reduce_many() works with `kernel` or `apply`
  const void* context = nullptr;  // what a user-defined `apply` needs; not owned
  std::size_t element_bytes = 1;
  bool exact = false;  // the bits of the result do not depend on the order in which operands are combined
  Op op = Op::count_;  // of a predefined one
  Element element = Element::count_;
};

// With a null `kernel` and `apply` where MPI does not define the combination.
Reducer make_reducer(Op op, Element element);

// result = left op right, aliasing as for ReduceKernel; of a predefined operator by the calling thread's team
// (work_team.h) where there is enough of it.
void combine(const Reducer& reducer, std::byte* result, const std::byte* left, const std::byte* right,
             std::size_t elements);

// results[j] = (((sources[0] op sources[1]) op sources[2]) ...), element by element and for every j,
// in one pass over memory: the bits that the two-operand kernel gives when it is applied from the
// left. One source is copied. A result may be one of the sources exactly (the same address);
// otherwise results overlap neither sources nor each other. No alignment is required. What a
// result's padding holds afterwards is not promised.
//
// Streamed results bypass the caches in whole vectors, in those results that are aligned as the
// first one is; a later release store of this thread covers them.
//
// By the calling thread's team, as combine(). Thread-safe where the reducer is. Allocates only for a user's type of
// more than 4 KiB an element.
void reduce_many(const Reducer& reducer, const ManyOperands& operands);

}  // namespace plait
