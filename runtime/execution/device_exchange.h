// A call that may run between the devices of its ranks (tl/device/device_collective.h): first the ranks tell each other
// where their data are, and where all are on devices the call runs there. Else it goes on by its plan, as if nothing
// had been asked: data on a device go through the processor's memory.
#pragma once

#include <cstddef>
#include <memory>

#include "plan/lower/bound_schedule.h"
#include "runtime/device/call_memory.h"
#include "runtime/device/device_calls.h"
#include "runtime/execution/exchange.h"
#include "runtime/execution/request.h"
#include "runtime/execution/staging.h"
#include "runtime/layer.h"
#include "runtime/team/team.h"

namespace plait::runtime {

// Whether the call is tried. Asked once a call, by all ranks of the communicator alike, in the order in which their
// calls run.
bool asks_devices_of_other(Team& team, const Request& request);
inline bool asks_devices(Team& team, const Request& request) {
  return team.device_calls.allowed() && asks_devices_of_other(team, request);
}

// One call at a time; keeps its memory from call to call.
class DeviceExchange final : public Exchange {
 public:
  // Precondition: the call asks devices. `schedule` is that of its plan; `laid_out`: its staging, where that was made
  // beforehand, else nullptr. All stay in place until the end. May throw std::bad_alloc.
  void take(Team& team, int rank, const Request& request, const BoundSchedule& schedule, CallMemory& memory,
            const Staging* laid_out);
  // What is to be run first.
  const BoundSchedule& question() const { return question_; }

  int begin(const BoundSchedule& first) override;
  const BoundSchedule* rest(const Routes& routes) override;
  int end() override;
  const Reducer* reducer() const override { return request_->reducer; }
  bool runs_plan_first() const override { return false; }
  std::size_t bytes() const override { return 0; }

 private:
  void make_question(int ranks);
  void place(tl::DeviceCall& call) const;

  Team* team_ = nullptr;
  int rank_ = 0;
  const Request* request_ = nullptr;
  const BoundSchedule* schedule_ = nullptr;
  CallMemory* memory_ = nullptr;
  const Staging* laid_out_ = nullptr;
  BoundSchedule question_;
  Staging staging_;
  std::unique_ptr<tl::DataFlow> failed_;  // what stands in for data that could not be staged
  int error_ = 0;                         // likewise: a code of the caller's
  bool on_devices_ = false;
};

}  // namespace plait::runtime
