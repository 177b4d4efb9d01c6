// What the engine asks of a transport.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/reduction.h"
#include "core/status.h"
#include "plan/lower/bound_schedule.h"
#include "tl/layer.h"

namespace plait::tl {

class DataFlow;  // data_flow.h
class NodeTalk;  // node_talk.h

// Base addresses of the three spaces of one call.
struct Buffers {
  std::array<std::byte*, 3> base{};  // indexed by Space
  DataFlow* flow = nullptr;          // what brings the data there and takes it away meanwhile; nullptr: it is there
  NodeTalk* talk = nullptr;  // what a shared-memory collective is in place of work on the buffers; nullptr: that
  // Where each member of a gather gives a piece of so many bytes, only the first ones count, how many the others learn
  // with them. The same on all ranks; 0: all of every piece counts.
  std::uint64_t piece_limit = 0;
  std::uint64_t piece_used = 0;  // of this rank's
  std::byte* at(Space space) const { return base[static_cast<std::size_t>(space)]; }
};

// A list of spans in this process's memory.
struct Memory {
  const BoundSpan* spans = nullptr;
  std::uint32_t count = 0;
  const Buffers* buffers = nullptr;
  const RunGrid* grids = nullptr;  // those that the spans name
};

// One send, recv, recv_reduce or shared-memory collective in progress. The engine owns it, sets the first part before
// start() and leaves it in place until the channel reports completion; the second part belongs to the channel
// meanwhile.
struct Transfer {
  StepKind kind = StepKind::send;
  bool incoming_left = false;
  std::int8_t rail = any_rail;  // of a message over the network
  bool past_caches = false;     // the call's results are too large to be found in the caches afterwards
  bool last_of_lane = true;     // the schedule has no later message in the same lane
  std::int32_t peer = -1;
  std::uint32_t step = 0;  // the engine's index
  std::uint64_t bytes = 0;
  std::size_t element_bytes = 1;     // a message is cut only at multiples of it; the same on both sides
  Memory memory;                     // source of a send, destination of a receive
  Memory operand;                    // of recv_reduce; of a shared-memory collective what this rank gives
  const Reducer* reducer = nullptr;  // recv_reduce and shared-memory collectives; may be null where nothing is combined
  const BoundShmCollective* collective =
      nullptr;  // of a shared-memory collective, whose `memory` is what this rank gets

  std::uint64_t progressed = 0;    // bytes handed on so far; the engine sets it to 0
  std::uint64_t mark = 0;          // shm: the slot whose draining completes a single copy; mpi, ucx: pieces under way
  std::int8_t carrier = any_rail;  // ucx: the one rail that carries it; any_rail: it is dealt out over all
  Transfer* next = nullptr;        // in the channel's queue
};

// What ends a rank's sleep in a long wait.
struct WakeUp {
  std::vector<pollfd> descriptors;  // any of them
  // A word in memory shared by processes: peers change `value` and wake who sleeps there (futex). At most one.
  std::atomic<std::uint32_t>* word = nullptr;
  std::uint32_t value = 0;
  bool busy = false;  // there is something to do already: do not sleep
};

class Channel {
 public:
  virtual ~Channel() = default;
  virtual ChannelKind kind() const = 0;

  // Takes on a transfer. Starts to one peer in one direction are in message order: the k-th send meets the peer's k-th
  // receive; so are shared-memory collectives, of channels that can do them. A transfer may complete at once: then
  // true. Does not block.
  virtual Result<bool> start(Transfer& transfer) = 0;

  // A glance: moves what can be moved now without waiting, at most about one fragment a peer, and appends the transfers
  // that completed. True when anything moved. Does not block and does not allocate.
  virtual Result<bool> progress(std::vector<Transfer*>& completed) = 0;

  // Takes the memory that the schedule's messages of more than `longer_than` bytes (0: all of them) can need at once:
  // what allocates anything for a transfer otherwise does so at the first of its size.
  virtual void make_room(const BoundSchedule&, std::uint64_t /* longer_than */) {}

  // Transfers taken on and not yet completed; more where something else needs progress() until the schedule's last
  // message. progress() is only called when there are some.
  virtual int active() const = 0;

  // Before a sleep: adds to `wake_up` what peers touch when they give progress() something to do after this call. What
  // came before it progress() finds: call that once more before the sleep. False where nothing wakes; the caller then
  // looks again after a bounded time, as it should in any case, because peers may be gone. May make system calls and
  // allocate.
  virtual bool arm(WakeUp&) { return false; }
  // After the last of the sleeps. Also without arm().
  virtual void disarm() {}

  // This rank has failed, and abandon() follows: the peers that the channel can tell are told. Does not block, so that
  // those of all channels know before this rank waits for any of them.
  virtual void announce_failure(const Status& /* cause */) {}

  // Forgets all transfers after a failure of this rank, so that the memory they name may be reused. The peers' view of
  // the messages is lost with them: later starts fail, here, and the peers' waits as well where the channel can tell
  // them, which then say `cause`. Also where nothing is under way: later steps of the schedule will not come. Blocks
  // until nobody writes to that memory any more, and nobody takes what it holds later for a message.
  virtual void abandon(const Status& cause) = 0;

  // Whether a peer's abandon() is known here, to a rank that waits for something else: peer_failed, with its cause.
  virtual Status peer_failure() { return {}; }
};

// By ChannelKind, those of one communicator; nullptr: no schedule uses it. Not owned.
using Channels = std::array<Channel*, channel_kinds>;
inline Channels by_kind(std::initializer_list<Channel*> channels) {
  Channels made{};
  for (Channel* channel : channels) made[index_of(channel->kind())] = channel;
  return made;
}

}  // namespace plait::tl
