// A run of a call whose data lie in pieces (lists.h), in the hands of Execution: what it packs before, runs, and
// unpacks after.
#pragma once

#include <cstddef>

#include "core/reduction.h"
#include "plan/lower/bound_schedule.h"
#include "plan/model/routes.h"
#include "runtime/device/call_memory.h"
#include "runtime/execution/piece.h"
#include "runtime/layer.h"
#include "tl/channel.h"

namespace plait::runtime {

// Keeps its memory from call to call.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Packs what is given, for the schedule that runs first. Returns a code of the caller's; throws std::bad_alloc.
  virtual int begin(const BoundSchedule& first) = 0;
  // After the first schedule: what else is to be run, with buffers(), or nullptr. May throw std::bad_alloc.
  virtual const BoundSchedule* rest(const Routes&) { return nullptr; }
  // Whether the call's plan is what runs first; else rest() is.
  virtual bool runs_plan_first() const { return true; }
  // After the last one: unpacks. Returns a code of the caller's.
  virtual int end() = 0;

  // What combines the data of the schedule that runs; nullptr: it only moves them.
  virtual const Reducer* reducer() const { return nullptr; }

  const Buffers& buffers() const { return buffers_; }
  // Data in memory of a device come after what that flow comes after, besides; it is not over before. For the next
  // begin().
  void follow(const DeviceFlow& flow) { followed_ = &flow; }
  virtual std::size_t bytes() const = 0;  // of memory that it keeps

 protected:
  // The memory that a call of these pieces works in, and its flow, which is begun later; a code of the caller's for
  // what fails. May throw std::bad_alloc.
  std::byte* reserve(CallMemory& memory, std::size_t bytes, const Piece* on_device) const;
  int start_flow(CallMemory& memory, const Piece* on_device);

  Buffers buffers_;

 private:
  const DeviceFlow* followed_ = nullptr;
};

}  // namespace plait::runtime
