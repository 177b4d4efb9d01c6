// An operator of the program's own, as core combines by its kernels.
#pragma once

#include <cstddef>

#include "core/aligned_bytes.h"
#include "core/reduction.h"
#include "runtime/execution/caller.h"
#include "runtime/layer.h"
#include "runtime/types/layout.h"

namespace plait::runtime {

// On elements of one layout, by the caller, behind a Reducer. Elements travel packed: where their layout in the
// program's memory differs, both operands are unpacked, combined and packed again, a piece at a time.
//
// The operator may rely on the alignment that the host's operands have, as code for 16-byte elements does (__float128,
// SSE). It runs on data wherever that lies, in a slot of the shared segment or in another rank's buffer; operands that
// lie where none of the host's would are copied first.
class UserOperator {
 public:
  // Must stay at its address while `reducer()` is in use. Keeps its memory from call to call.
  void start(OperatorHandle op, const Layout& type);
  // Before operands are combined; throws where memory is short. Not a part of start(), so that a rank that lacks memory
  // does so where the others can learn of it.
  void make_room() const;
  const Reducer& reducer() const { return reducer_; }
  // The first error of the operator's: a code of the caller's; 0: there was none.
  int error() const { return error_; }

 private:
  static void apply(const Reducer& self, void* result, const void* left, const void* right, std::size_t count);
  void combine(std::byte* result, const std::byte* left, const std::byte* right, std::size_t count) const;
  void combine_packed(std::byte* result, const std::byte* left, const std::byte* right, std::size_t count) const;
  void note(int error) const {
    if (error_ == 0) error_ = error;
  }
  bool is_aligned(const std::byte* operand, std::size_t bytes) const;
  // Bytes of memory that `count` elements cover in the layout of the program.
  std::size_t span_bytes(std::size_t count) const;

  OperatorHandle op_{};
  const Layout* type_ = nullptr;
  mutable AlignedBytes operands_;  // room for two
  std::size_t piece_ = 1;          // elements combined at a time
  std::size_t operand_bytes_ = 0;  // that one of the two has room for
  std::size_t alignment_ = 1;      // of every element of a vector that begins at the host's alignment
  mutable int error_ = 0;
  Reducer reducer_;
};

}  // namespace plait::runtime
