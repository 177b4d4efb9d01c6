// One collective call on its way from the program to the engine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/reduction.h"
#include "core/reproducible/ordered_reduction.h"
#include "plan/model/collective.h"
#include "runtime/execution/lists.h"
#include "runtime/execution/region.h"
#include "runtime/execution/user_operator.h"
#include "runtime/layer.h"

namespace plait::runtime {

// Which side's memory holds the other one's (MPI_IN_PLACE).
enum class Sharing : std::uint8_t { none, input_in_output, output_in_input };

// What becomes of the segments that a scan's ranks have brought together.
enum class Prefix : std::uint8_t { none, inclusive, exclusive };

struct Request {
  Call call;
  Region input, output;
  Sharing sharing = Sharing::none;
  std::size_t own_offset = 0;  // packed bytes before this rank's segment in the side that holds the other
  bool copy_input = false;     // the output overwrites the input in another order than it is read
  const std::size_t* displacements = nullptr;  // as in CallShape
  const Reducer* reducer = nullptr;
  const UserOperator* user = nullptr;         // that `reducer` runs; nullptr: it is one of core's kernels
  const OrderedReduction* ordered = nullptr;  // PLAIT_REPRODUCIBLE=order, where the operator's order matters
  // A scan runs as an allgather, of whose segments each rank then combines those of lower ranks. Its input is packed by
  // itself, whatever it shares with the output.
  Prefix prefix = Prefix::none;
  bool posted = false;     // the call does not block
  Lists* lists = nullptr;  // where the call's lists are kept; outlives the call

  int user_error() const { return user != nullptr ? user->error() : 0; }
};

// Whether the call runs by an OrderedExchange. A scan combines all operands at once as it is.
inline bool is_ordered(const Request& request) { return request.ordered != nullptr && request.prefix == Prefix::none; }

}  // namespace plait::runtime
