// The order in which the ranks of a communicator run its persistent collectives.
//
// MPI lets every rank start them in an order of its own, but the messages of a set of connections meet in order. So a
// start only says that it was made. A collective runs once all ranks have started it, and those for which that holds
// run in one order everywhere: each can come to its end without any other start of anybody. Within a node the ranks
// count in shared memory, and the last one goes on. Between nodes one rank of each, its leader, tells rank 0's what
// the whole node has started; once all nodes have, that one tells all of them. A start then costs a message to rank 0's
// node and one back beyond what the collective itself does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/status.h"
#include "runtime/layer.h"
#include "runtime/progress/start_table.h"
#include "tl/channel.h"
#include "tl/shm/shm_channel.h"

namespace plait::runtime {

// Who counts together in one table: the ranks of a node, or each alone where there is no shared memory.
struct NodeLeaders {
  std::vector<int> leaders;  // of all nodes, the same on all ranks; the first is that of rank 0's
  int own = 0;               // this rank's node
  int rank = 0;              // this rank
  std::uint32_t ranks = 1;   // of this node
};

class StartOrder {
 public:
  // `table` is shared by the node's ranks, and empty. `channel` connects the leaders and serves nothing else; not
  // owned, nullptr where there is one node.
  StartOrder(NodeLeaders nodes, SharedSegment table, Channel* channel);
  StartOrder(const StartOrder&) = delete;
  StartOrder& operator=(const StartOrder&) = delete;

  static constexpr std::size_t table_bytes = sizeof(StartTable);

  // The node's ranks have all attached to the table.
  void all_attached() { memory_.close_descriptor(); }

  // This rank has started what is in that slot. Thread-safe, wait-free.
  void announce(std::uint32_t slot);

  // The next one to run. The rest is for one thread at a time, while something that was announced has yet to run.
  std::optional<std::uint32_t> next() { return table().everywhere.next(read_everywhere_); }

  // Does a leader's part; does not block. True when something moved.
  Result<bool> progress();

  // This rank has failed, or another one of its node.
  void fail() { table().failed.store(1, std::memory_order_release); }
  bool failed() const { return table().failed.load(std::memory_order_relaxed) != 0; }

 private:
  struct Message {
    static constexpr std::size_t most = 31;
    std::uint16_t count = 0;
    std::array<std::uint16_t, most> slots{};
  };
  // Between rank 0's leader and another one. Both know what the other one will send, so that no receive is left over.
  struct Link {
    Message out, in;
    Buffers buffers;
    std::array<BoundSpan, 2> spans{};
    Transfer send, receive;
    bool sending = false, receiving = false;
    std::vector<std::uint16_t> unsent;
    int awaited = 0;          // slots that the other side has yet to name
    std::vector<bool> named;  // by slot; rank 0's leader: the other side has started it
  };

  StartTable& table() const { return *reinterpret_cast<StartTable*>(memory_.data()); }
  bool leads_node() const { return nodes_.leaders[static_cast<std::size_t>(nodes_.own)] == nodes_.rank; }
  bool leads_all() const { return nodes_.own == 0; }
  void started_here(std::uint32_t slot);
  void started_at(Link& link, std::uint32_t slot);
  void look_whether_complete(std::uint32_t slot);
  void hear(Link& link);
  Result<bool> exchange(Link& link);
  Result<bool> start(Link& link, Transfer& transfer);
  void done(Link& link, const Transfer& transfer);
  bool all_sent() const;

  NodeLeaders nodes_;
  SharedSegment memory_;
  Channel* channel_;
  std::uint64_t read_here_ = 0, read_everywhere_ = 0;
  std::vector<std::unique_ptr<Link>> links_;  // rank 0's leader: to each other one; they: to it; others: none
  std::vector<bool> started_here_;            // by slot; rank 0's leader
  std::vector<std::uint32_t> complete_;       // rank 0's leader: everywhere, but for this node, which runs it last
  std::vector<Transfer*> completed_;
};

}  // namespace plait::runtime
