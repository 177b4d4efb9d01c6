// Floating-point sums and products whose bits do not depend on the order of the operands (PLAIT_REPRODUCIBLE=order,
// core/reproducible/ordered_reduction.h, docs/reproducible.md): how the ranks of a call bring its operands together. In
// which of the ways is the same on all ranks; the bits of the result are the same in all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/reproducible/ordered_reduction.h"
#include "plan/lower/bound_schedule.h"
#include "runtime/execution/exchange.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"
#include "runtime/team/team.h"

namespace plait::runtime {

// Which ways an operand may go.
enum class OrderedWay : std::uint8_t {
  at_once,    // the call's own plan is one step of a node's memory, which combines all operands of an element at once
  gathered,   // all operands to all ranks that get a result, which combine them
  exchanged,  // each rank gets all operands of its share, combines them, and gives the share on
  wide,       // keys are reduced, then steps, by any plan (WideSum)
};

// One call at a time; keeps its memory from call to call.
class OrderedExchange final : public Exchange {
 public:
  // Precondition: request.ordered, and it is no scan. What is to be run first, which is not accelerated where the call
  // is the host's; it is as long as it is held. Before all else of a call, and for all of its runs. Sets the request's
  // reducer where the call runs by its own plan, as others do. May throw std::bad_alloc.
  std::shared_ptr<const PreparedCall> take(Team& team, int rank, Request& request);
  // Whether the call runs as this exchange.
  bool runs_apart() const { return way_ != OrderedWay::at_once; }
  // Lets go of the call; of large memory as well.
  void leave(std::size_t most_bytes_kept);

  int begin(const BoundSchedule& first) override;
  const BoundSchedule* rest(const Routes& routes) override;
  int end() override;
  const Reducer* reducer() const override { return reducer_; }
  std::size_t bytes() const override { return memory_.bytes(); }

 private:
  struct Part {
    std::size_t first = 0, count = 0;  // elements of the vector
  };
  using Prepared = std::shared_ptr<const PreparedCall>;

  Prepared choose(Team& team);
  Prepared own_plan(Team& team);
  Prepared prepare_gathered(Team& team);
  Prepared prepare_exchanged(Team& team);
  Prepared prepare_wide(Team& team);
  Prepared look_up(Team& team, const Call& call, bool in_place = false) const;
  Prepared both(Prepared first);
  bool gets_result() const { return request_.output.type != nullptr; }
  std::size_t elements() const { return request_.input.bytes / element_bytes_; }
  Part part_of(int rank) const;
  Part result() const;

  int begin_gathered(const BoundSchedule& first);
  int begin_exchanged(const BoundSchedule& first);
  int begin_wide(const BoundSchedule& first);
  void rest_exchanged();
  void rest_wide();
  int end_gathered();
  int end_wide();
  int take_input(std::byte* room);
  std::byte* result_or(std::byte* room) const;
  int give_result(const std::byte* from) const;
  void combine(const std::byte* segments, std::size_t segment_bytes, std::size_t offset, std::byte* to,
               std::size_t count);

  Request request_;
  const OrderedReduction* reduction_ = nullptr;
  const WideSum* wide_ = nullptr;
  int rank_ = 0, ranks_ = 1;
  std::size_t element_bytes_ = 1;
  std::size_t share_ = 0;  // exchanged: elements of a rank's slot
  OrderedWay way_ = OrderedWay::at_once;
  Prepared second_;                   // what is run after the first; nullptr: nothing
  const Reducer* reducer_ = nullptr;  // of what runs
  std::vector<std::size_t> real_counts_;
  std::vector<const std::byte*> sources_;
  CallMemory memory_;
  const std::byte* input_ = nullptr;  // packed
  std::byte *first_ = nullptr, *second_data_ = nullptr, *sums_ = nullptr, *result_ = nullptr,
            *scratch_ = nullptr;  // in the memory
};

}  // namespace plait::runtime
