// The set-up of a communicator: finds where its ranks are, connects them, and agrees that all of them can go on.
#pragma once

#include <mpi.h>

#include <memory>
#include <utility>

#include "core/status.h"
#include "plan/choose/planner.h"
#include "plugin/communicator.h"
#include "plugin/failure_notice.h"
#include "plugin/layer.h"
#include "plugin/pair_exchange.h"
#include "plugin/private_communicator.h"
#include "plugin/schedule_cache.h"
#include "plugin/sockets.h"
#include "plugin/trace_file.h"
#include "plugin/work_memory.h"
#include "tl/channel.h"
#include "tl/engine.h"
#include "tl/shm/peer_buffers.h"
#include "topo/location.h"

namespace plait::plugin {

// Where this process runs, by its binding when it is first asked for. Thread-safe; the first call takes milliseconds.
const Location& own_location();

// Bytes of shared segments that this process has mapped, so that many communicators do not eat the machine's memory.
class SegmentShare {
 public:
  SegmentShare() = default;
  SegmentShare(std::size_t bytes, bool made);  // `made` by this process: it counts for the node
  SegmentShare(SegmentShare&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)), made_(std::exchange(other.made_, false)) {}
  SegmentShare& operator=(SegmentShare&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(made_, other.made_);
    return *this;
  }
  ~SegmentShare();
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
  bool made_ = false;
};

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

// Everything an accelerated communicator has.
struct Machinery {
  Machinery(Connections made, Hierarchy hierarchy, int rank, PlannerOptions options, FailureNotice notice, bool yield);
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

// Collective over the communicator, with the same extent on all ranks; blocks. `before` is what the communicator has so
// far, or nullptr. A set-up for short calls turns into one for all calls where the short one does not work. All ranks
// succeed or all fail. Holds no lock while it communicates, so that threads may set up several communicators at once,
// in any order.
Result<std::unique_ptr<Machinery>> set_up(const Communicator& communicator, Extent extent,
                                          std::unique_ptr<Machinery> before);

// For a rank that cannot, while the others call set_up() with nothing before: they fail at once. Needs no memory of
// ours.
void decline_set_up(const Communicator& communicator) noexcept;

}  // namespace plait::plugin
