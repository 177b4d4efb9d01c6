// Collectives in which only the two ranks of a pair know how much data there is for it: alltoallv, alltoallw, gatherv,
// scatterv.
//
// A call runs in two parts. The first is a plan of alltoall, gather or scatter for slots of one size, which all ranks
// know: a slot says how long the pair's data is, and holds the data where there is room. The second part is for what
// had none: a message of its own for each such pair, whose length both ends know by then. So a rank needs to know no
// more than its own counts, and short data, where it is the number of messages that costs, travels by as few of them as
// the plan has.
//
// Data that is longer than the receiver has room for is received all the same, in other memory, and the call returns
// the caller's code for that: the ranks' messages stay in step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/lower/bound_schedule.h"
#include "runtime/execution/exchange.h"
#include "runtime/execution/piece.h"
#include "runtime/job/work_memory.h"
#include "runtime/layer.h"
#include "runtime/team/slot_size.h"
#include "runtime/team/team.h"
#include "tl/channel.h"
#include "topo/hierarchy.h"

namespace plait::runtime {

// One call at a time.
class PairExchange final : public Exchange {
 public:
  struct Problem {
    Collective collective = Collective::alltoallv;
    int rank = 0, ranks = 1, root = 0;
    // By rank, of this rank; in place until end(). Nothing for those without data.
    const std::vector<Piece>* sends = nullptr;
    const std::vector<Piece>* receives = nullptr;
    std::size_t slot_bytes = 0;  // the same on all ranks
    // Likewise; nullptr: nobody learns of this call. With them a gatherv is an allgather of the slots.
    const HostSizes* hosts = nullptr;
  };

  // What the first part is: the plan of this call is to be run.
  static Call first_call(const Problem& problem);

  // What is to be done. Before all else of a call.
  void take(const Problem& problem) { problem_ = problem; }
  int begin(const BoundSchedule& first) override;
  const BoundSchedule* rest(const Routes& routes) override;
  int end() override;
  std::size_t bytes() const override { return memory_.bytes() + late_memory_.bytes(); }

  // What the ranks wished in this call (SlotSize::learn). After the first part.
  const Wishes& wishes() const { return wishes_; }

 private:
  // A side's slots: of all ranks, of one, or none.
  struct Side {
    int first = 0, count = 0;  // ranks
    std::byte* slots = nullptr;
  };
  struct Arrival {
    std::uint64_t bytes = 0;
    const std::byte* packed = nullptr;  // nullptr: it lies where the program wants it
  };

  void find_device();
  bool self_is_staged() const;
  void lay_out(const BoundSchedule& first);
  int give(const Piece& piece, std::byte* packed);
  bool is_at_root() const { return problem_.rank == problem_.root; }
  Wish own_wish();
  int fill_slots();
  void shorten_piece();
  void take_away();
  void read_slots();
  void place_late_arrivals();
  const std::byte* landing(int source) const;
  void take_bases();
  BoundSpan span(Space space, const std::byte* address, std::uint64_t bytes) const;
  void add_message(StepKind kind, ChannelKind channel, int peer, BoundSpan span);
  int exchange_with_self();
  bool fits(std::uint64_t bytes) const { return bytes + slot_header_bytes <= problem_.slot_bytes; }
  std::byte* slot(const Side& side, int rank) const {
    return side.slots + static_cast<std::size_t>(rank - side.first) * problem_.slot_bytes;
  }

  Problem problem_;
  Side out_, in_;
  CallMemory memory_, late_memory_;
  const Piece* on_device_ = nullptr;          // the first piece that is; nullptr: none is
  std::byte* self_ = nullptr;                 // packed, what this rank gives itself, where one end of it is on a device
  std::vector<std::size_t> lengths_;          // by rank: of what this rank wishes by
  std::vector<const std::byte*> long_sends_;  // by rank: where what fits no slot is sent from
  std::vector<Arrival> arrivals_;             // by rank
  Wishes wishes_;
  BoundSchedule rest_;
};

}  // namespace plait::runtime
