// How a call combines its operands: one of core's kernels, or the program's own operator run by the host.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "core/aligned_bytes.h"
#include "core/reduction.h"
#include "plugin/layer.h"
#include "plugin/mpi/types/datatype.h"
#include "runtime/execution/request.h"

namespace plait::plugin {

// A user-defined operator on elements of one type, as a Reducer. Elements travel packed: where their layout in the
// program's memory differs, both operands are unpacked, combined and packed again, a piece at a time.
//
// The operator may rely on the alignment that the host's operands have, as code for 16-byte elements does (__float128,
// SSE). It runs on data wherever that lies, in a slot of the shared segment or in another rank's buffer; operands that
// lie where none of the host's would are copied first.
class UserReduction final : public UserOperator {
 public:
  // `operands` is memory to work in, kept by the caller from call to call. Must stay at its address while `reducer()`
  // is in use.
  void start(MPI_Op op, const Datatype& type, AlignedBytes& operands);
  // Before operands are combined; throws where memory is short. Not a part of start(), so that a rank that lacks memory
  // does so where the others can learn of it.
  void make_room() const override;
  const Reducer& reducer() const { return reducer_; }
  int error() const override { return error_; }

 private:
  static void apply(const Reducer& self, void* result, const void* left, const void* right, std::size_t count);
  void combine(std::byte* result, const std::byte* left, const std::byte* right, std::size_t count) const;
  void combine_packed(std::byte* result, const std::byte* left, const std::byte* right, std::size_t count) const;
  void note(int error) const {
    if (error_ == MPI_SUCCESS) error_ = error;
  }
  bool is_aligned(const std::byte* operand, std::size_t bytes) const;
  // Bytes of memory that `count` elements cover in the layout of the program.
  std::size_t span_bytes(std::size_t count) const;

  MPI_Op op_ = MPI_OP_NULL;
  const Datatype* type_ = nullptr;
  AlignedBytes* operands_ = nullptr;  // room for two
  std::size_t piece_ = 1;             // elements combined at a time
  std::size_t operand_bytes_ = 0;     // that one of the two has room for
  std::size_t alignment_ = 1;         // of every element of a vector that begins at the host's alignment
  mutable int error_ = MPI_SUCCESS;
  Reducer reducer_;
};

}  // namespace plait::plugin
