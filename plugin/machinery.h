// Everything that an accelerated communicator has: its connections, plans and engine, and how a failure is told.
#pragma once

#include <mpi.h>

#include <memory>
#include <utility>

#include "core/status.h"
#include "plan/choose/planner.h"
#include "plugin/failure_notice.h"
#include "plugin/layer.h"
#include "plugin/pair_exchange.h"
#include "plugin/private_communicator.h"
#include "plugin/schedule_cache.h"
#include "plugin/segment_share.h"
#include "plugin/sockets.h"
#include "plugin/trace_file.h"
#include "runtime/job/work_memory.h"
#include "tl/channel.h"
#include "tl/engine.h"
#include "tl/shm/peer_buffers.h"

namespace plait::plugin {

// What connects the ranks, before anything is planned.
struct Connections {
  PrivateCommunicator messages;
  SegmentShare share;
  DescriptorShare descriptors;
  std::unique_ptr<PeerBuffers> buffers;  // nullptr: the ranks do not reach each other's buffers
  std::unique_ptr<Channel> shm;          // nullptr: not used
  std::unique_ptr<Channel> ucx;
  std::unique_ptr<Channel> mpi;
};

struct Machinery {
  Machinery(Connections made, Hierarchy hierarchy, int rank, PlannerOptions options, FailureNotice notice, bool yield,
            void (*move_operations_on)());
  ~Machinery();
  Machinery(const Machinery&) = delete;
  Machinery& operator=(const Machinery&) = delete;

  // This rank has failed: no other waits for it for ever. `messages`: ours, where another set-up has them already.
  void give_up(const Status& cause) noexcept;
  void give_up(const Status& cause, MPI_Comm messages) noexcept;
  // What to say of a failed call: where a peer has left, its reason is on its way by the notice, or by the marks of the
  // node, and is waited for once. What this rank has found itself stays as it is. Blocks for half a second, beside what
  // the host's progress takes, which it drives.
  Status reason_of(const Status& failure) noexcept;
  // The same, which is told to the others.
  Status agree_on_reason(const Status& failure) noexcept;
  // A glance for a rank of another node that has.
  void look_at_notice() { notice.look(connections.messages.handle()); }
  // Tells the other ranks, and the user where no rank has said it to this one.
  void tell(MPI_Comm messages, const Status& cause) noexcept;
  bool known_to_others() noexcept;

  Connections connections;
  void (*move_operations_on)();  // what else this process is to do while the engine waits
  FailureNotice notice;
  bool awaited_reason = false;  // once is enough: then nothing runs any more
  Links links;
  Planner planner;
  Engine engine;
  Trials trials;
  ScheduleCache schedules;
  WorkMemory memory;
  PairExchange pairs;                        // of the blocking calls
  SlotSize to_all, from_root;                // of alltoallv and alltoallw, and of scatterv
  bool short_calls_only = false;             // set up as Extent::short_calls says
  std::unique_ptr<CommunicatorTrace> trace;  // nullptr: off
};

// At the begin of a schedule's run: where its steps are recorded, or nullptr.
inline StepTrace* begin_trace(Machinery& machinery) {
  if (machinery.trace == nullptr) return nullptr;
  machinery.trace->steps.begin_call();
  return &machinery.trace->steps;
}

}  // namespace plait::plugin
