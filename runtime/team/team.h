// Everything that the ranks of a communicator which is accelerated have: its connections, plans and engine, and how a
// failure is told.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "core/status.h"
#include "plan/choose/planner.h"
#include "runtime/device/call_memory.h"
#include "runtime/device/device_calls.h"
#include "runtime/layer.h"
#include "runtime/oob/failure_notice.h"
#include "runtime/oob/oob.h"
#include "runtime/record/call_trace.h"
#include "runtime/team/neighborhood.h"
#include "runtime/team/schedule_cache.h"
#include "runtime/team/segment_share.h"
#include "runtime/team/slot_size.h"
#include "runtime/team/sockets.h"
#include "tl/channel.h"
#include "tl/engine.h"
#include "tl/shm/peer_buffers.h"

namespace plait::runtime {

// What connects the ranks, before anything is planned.
struct Connections {
  SegmentShare share;
  DescriptorShare descriptors;
  std::unique_ptr<PeerBuffers> buffers;                          // nullptr: the ranks do not reach each other's buffers
  std::array<std::unique_ptr<Channel>, channel_kinds> channels;  // by ChannelKind; nullptr: not used

  void take(std::unique_ptr<Channel> channel) {
    std::unique_ptr<Channel>& slot = channels[index_of(channel->kind())];
    slot = std::move(channel);
  }
  Channel* of(ChannelKind kind) const { return channels[index_of(kind)].get(); }
  Channels all() const;
  // What a rank that shares memory with this one says there of its failure.
  Status peer_failure() const;
};

// How the engine waits.
struct WaitSettings {
  bool yield = false;  // its processing unit is not its own
  void (*move_operations_on)() = nullptr;
};

struct Team {
  Team(std::unique_ptr<FailureNotice> notice, Connections made, Hierarchy hierarchy, int rank, PlannerOptions options,
       WaitSettings waits);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // This rank has failed: no other waits for it for ever.
  void give_up(const Status& cause) noexcept;
  // The same without a word to the others, who learn of it some other way; the host is not called.
  void close(const Status& cause) noexcept;
  // What to say of a failed call: where a peer has left, its reason is on its way by the notice, or by the marks of the
  // node, and is waited for once. What this rank has found itself stays as it is. Blocks for half a second, beside what
  // the host's progress takes, which it drives.
  Status reason_of(const Status& failure) noexcept;
  // The same of an operation that does not block: its channels are closed, once the others are told where this thread
  // may drive the host. The reason as it is known then.
  Status break_off(const Status& failure, bool may_drive_host) noexcept;
  // The same, which is told to the others.
  Status agree_on_reason(const Status& failure) noexcept;
  // A glance for a rank of another node that has.
  void look_at_notice() { notice->look(); }
  // Tells the other ranks, and the user where no rank has said it to this one.
  void tell(const Status& cause) noexcept;
  bool known_to_others() noexcept;
  const Routes& routes() const { return planner.routes(); }

  std::unique_ptr<Oob> oob;               // of these ranks alone
  std::unique_ptr<FailureNotice> notice;  // by way of the oob
  Connections connections;
  void (*move_operations_on)();  // what else this process is to do while the engine waits
  bool awaited_reason = false;   // once is enough: then nothing runs any more
  Planner planner;
  Engine engine;
  Trials trials;
  ScheduleCache schedules;
  CallMemory memory;
  DeviceCalls device_calls;
  HostSizes host_sizes;  // which calls are the host's
  SlotSizes slots;       // of blocking calls
  // Of posted ones, which learn in the order in which they run. Only where on no rank several threads move them on:
  // what they take is looked for when they begin.
  SlotSizes posted_slots;
  bool posted_learn = false;
  std::unique_ptr<Neighborhood> neighborhood;  // nullptr: it has no topology, or none that fits together
  bool short_calls_only = false;               // set up as TeamExtent::short_calls says
  std::unique_ptr<CommunicatorTrace> trace;    // nullptr: off
  // Through a node's rails, as measured: the planner has it to a power of two. 0: not known.
  double network_seconds_per_byte = 0;
};

// At the begin of a schedule's run: where its steps are recorded, or nullptr.
inline StepTrace* begin_trace(Team& team) {
  if (team.trace == nullptr) return nullptr;
  team.trace->steps.begin_call();
  return &team.trace->steps;
}

}  // namespace plait::runtime
