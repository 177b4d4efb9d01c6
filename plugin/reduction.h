// How a call combines its operands: one of core's kernels, or the program's own operator run by the host.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "core/element.h"
#include "plugin/types.h"

namespace plait::plugin {

// A user-defined operator on elements of one type, as a Reducer. Elements travel packed: where their layout in the
// program's memory differs, both operands are unpacked, combined and packed again, a piece at a time.
class UserReduction {
 public:
  // `operands` is memory to work in, kept by the caller from call to call. Must stay at its address while `reducer()`
  // is in use.
  void start(MPI_Op op, const Datatype& type, std::vector<std::byte>& operands);
  const Reducer& reducer() const { return reducer_; }
  int error() const { return error_; }  // the host's first error, MPI_SUCCESS if there was none

 private:
  static void apply(const Reducer& self, void* result, const void* left, const void* right, std::size_t count);
  void combine(std::byte* result, const std::byte* left, const std::byte* right, std::size_t count) const;
  void combine_packed(std::byte* result, const std::byte* left, const std::byte* right, std::size_t count) const;
  void note(int error) const {
    if (error_ == MPI_SUCCESS) error_ = error;
  }
  // Bytes of memory that `count` elements cover in the layout of the program.
  std::size_t span_bytes(std::size_t count) const;

  MPI_Op op_ = MPI_OP_NULL;
  const Datatype* type_ = nullptr;
  std::vector<std::byte>* operands_ = nullptr;
  std::size_t piece_ = 1;  // elements combined at a time
  mutable int error_ = MPI_SUCCESS;
  Reducer reducer_;
};

}  // namespace plait::plugin
