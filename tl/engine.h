// Runs one rank's bound schedule over the channels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "plan/lower/bound_schedule.h"
#include "tl/channel.h"
#include "tl/layer.h"
#include "tl/trace.h"
#include "tl/wait_strategy.h"

namespace plait::tl {

// One engine a communicator; one schedule at a time, because messages meet in the order of the steps.
// After the first run of a schedule of some size, runs of no larger schedules allocate nothing.
class Engine {
 public:
  Engine(const Channels& channels, WaitPolicy wait);

  // Blocks until every step is complete. On an error the transfers are abandoned and the first error is returned, or
  // the reason that `WaitPolicy::agree_on_reason` knows for it.
  // `reducer` may be null for schedules without reductions. `trace` may be null.
  Status run(const BoundSchedule& schedule, const Buffers& buffers, const Reducer* reducer, StepTrace* trace);

  // The same without blocking: true when every step is complete. All that is passed stays in place until then; after
  // start() has returned false, progress() is called until it returns true or fails. On an error the caller gives up,
  // once the other ranks are told.
  Result<bool> start(const BoundSchedule& schedule, const Buffers& buffers, const Reducer* reducer, StepTrace* trace);
  Result<bool> progress();
  // Whether the last of these two calls moved anything.
  bool moved() const { return moved_; }

  // Whether whoever moves it on had better give the core away at once where nothing moves.
  bool yields() const { return wait_strategy_.yields(); }

  // Takes the memory that a run of this schedule can need at most, whatever its timing. Not while one runs.
  void make_room(const BoundSchedule& schedule);

  // Abandons all channels, as run() does on an error: for a rank that fails otherwise and will not run what the others
  // wait for.
  void give_up(const Status& cause);

 private:
  enum class Turn : std::uint8_t { complete, moved, idle };

  // Steps that may start, in the order in which they became so. Each step enters once, so it needs no wrap-around.
  struct Queue {
    std::vector<std::uint32_t> steps;
    std::uint32_t head = 0, tail = 0;
    bool empty() const { return head == tail; }
    void push(std::uint32_t step) { steps[tail++] = step; }
  };

  Result<bool> begin(const BoundSchedule& schedule, const Buffers& buffers, const Reducer* reducer, StepTrace* trace);
  Result<bool> move_on();
  void take_on(const BoundSchedule& schedule, const Buffers& buffers, const Reducer* reducer, StepTrace* trace);
  void prepare();
  void size_for(const BoundSchedule& schedule);
  Result<Turn> turn();
  Result<Turn> turn_alone();
  Result<bool> start_alone();
  Status run_turns();
  bool drives_host() const;
  void give_up();
  Status absent_channel(std::uint32_t index) const;
  void fill(Transfer& transfer, std::uint32_t index) const;
  Status start_ready();
  Status start_step(std::uint32_t step);
  void run_local_piece();
  Result<bool> glance();
  Result<bool> glance_at_flow();
  bool is_through() const;
  bool wait(bool may_progress_host);
  void complete(std::uint32_t step);
  void offer(std::uint32_t step);
  void record(std::uint32_t step);
  Memory memory(SpanList list) const;

  std::span<Channel* const> present() const { return {present_.data(), present_count_}; }

  Channels channels_;
  Channels present_{};  // the first `present_count_`: those that there are, in their order
  std::size_t present_count_ = 0;
  const Channel* over_host_ = nullptr;  // the one of them that calls the host MPI
  WaitStrategy wait_strategy_;
  const Status* failure_;  // of another rank, told by the host's progress
  Status (*agree_on_reason_)(void* context, const Status& cause) noexcept;
  void* context_;

  const BoundSchedule* schedule_ = nullptr;
  const Buffers* buffers_ = nullptr;
  const Reducer* reducer_ = nullptr;
  StepTrace* trace_ = nullptr;
  DataFlow* flow_ = nullptr;                // of the buffers
  std::vector<std::uint32_t> released_;     // steps whose data the flow has brought
  std::vector<std::uint32_t> waiting_for_;  // by step: predecessors not yet complete
  std::vector<std::uint32_t> lane_next_;    // by lane: position of the next step to start
  std::vector<Transfer> transfers_;         // by step; only those of started sends and receives are set
  std::vector<std::uint64_t> begin_ns_;     // by step; only with a trace
  std::vector<Transfer*> completed_;
  Queue ready_;                   // sends and receives
  Queue local_;                   // copies and reductions: they run when nothing can be started
  std::uint64_t local_done_ = 0;  // bytes of the local step at hand that are done
  std::uint32_t remaining_ = 0;
  bool in_flight_ = false;  // some channel had transfers at the last glance
  bool moved_ = false;
  bool alone_ = false;  // the schedule is a single message or shared-memory collective: nothing to order
};

}  // namespace plait::tl
