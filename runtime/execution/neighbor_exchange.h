// Data on its way between neighbours: which pieces are used where they lie, and which are packed beside one another.
#pragma once

#include <cstddef>

#include "runtime/execution/exchange.h"
#include "runtime/execution/lists.h"
#include "runtime/execution/request.h"
#include "runtime/job/work_memory.h"
#include "runtime/layer.h"
#include "runtime/team/neighborhood.h"

namespace plait::runtime {

// One call at a time.
class NeighborExchange final : public Exchange {
 public:
  // What is to be done: before all else of a call. The request's pieces are the cells of plan/neighbor, and stay in
  // place until end(). May throw std::bad_alloc.
  void take(const Request& request);
  // As the neighbourhood is asked for a schedule.
  const NeighborShape& shape() const { return shape_; }

  int begin(const BoundSchedule& first) override;
  int end() override;
  std::size_t bytes() const override { return memory_.bytes(); }

 private:
  // The pieces of a side are all used where they lie, or all packed.
  struct Side {
    const std::vector<Piece>* pieces = nullptr;
    std::byte* lowest = nullptr;       // where they lie
    std::size_t packed_bytes = 0;      // 0: they are used where they lie
    const Piece* on_device = nullptr;  // the first that is; nullptr: none is
  };
  static Side lay_out(const std::vector<Piece>& pieces, std::vector<NeighborShape::Cell>& cells);

  int give();
  void take_away();

  Side out_, in_;
  NeighborShape shape_;
  CallMemory memory_;
};

}  // namespace plait::runtime
