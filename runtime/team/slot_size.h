// How long the slots of an exchange by pairs are (pair_exchange.h), and whether calls run here at all. Long slots carry
// more messages at once, short ones waste less on pairs with little data, and some lengths are the host's. Each rank
// wishes by its own messages and says so in its slots, so that after a call all ranks know all wishes, and decide alike
// on the next one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/choose/host_rows.h"
#include "runtime/layer.h"

namespace plait::runtime {

inline constexpr std::size_t slot_header_bytes = 8;
// All slots of one rank: what a node's ranks can exchange in a single step of their shared memory.
inline constexpr std::size_t most_slots_bytes = 64 * 1024;
inline constexpr int slot_classes = 12, usual_slot_class = 5;
// For 8 .. 16384 bytes of data: lengths are powers of two more often than not.
constexpr std::size_t slot_bytes(int slot_class) { return slot_header_bytes + (std::size_t{8} << slot_class); }
// Of one of so many ranks: the longest are as long as there is room for.
constexpr std::size_t slot_bytes(int slot_class, int ranks) {
  const std::size_t room = most_slots_bytes / static_cast<std::size_t>(ranks) / slot_header_bytes * slot_header_bytes;
  return std::min(slot_bytes(slot_class), std::max(room, slot_bytes(0)));
}

struct Wish {
  int slot_class = 0;
  bool host = false;
};

// What all ranks, or the root, wished in one call.
struct Wishes {
  int ranks = 0;
  int for_host = 0;
  std::size_t slot_bytes = 0;  // sum

  void add(Wish wish) {
    ++ranks;
    for_host += wish.host ? 1 : 0;
    slot_bytes += plait::runtime::slot_bytes(wish.slot_class);
  }
};

// What suits messages of these lengths, by rank: bytes. Those to `self` do not travel. `hosts`: which are the host's.
Wish wish_for(std::span<const std::size_t> lengths, int self, Collective collective, const HostSizes& hosts);

// The class that suits them.
int wished_class(std::span<const std::size_t> lengths, int self);

// When the ranks tell each other what they wish.
enum class Learns : bool {
  always,       // in each call
  now_and_then  // of a gatherv, whose plan brings wishes to its root alone: in calls that are allgathers of the slots
};

// The sizes of one kind of call on one communicator: the smallest of the last few calls' wishes, since a slot that is
// too long costs in each call and one that is too short a second step.
class SlotSize {
 public:
  explicit SlotSize(int ranks, Learns learns = Learns::always) : ranks_(ranks), learns_(learns) {}
  std::size_t bytes() const { return slot_bytes(class_, ranks_); }
  // Whether in the next call that runs here all ranks tell all: the first, and then after twice as many others each
  // time.
  bool learns() const { return learns_ == Learns::always || own_turns_ == 0; }
  // After a call that ran here without.
  void note_own_call() { --own_turns_; }
  // Whether the next call is the host's. After calls that most ranks wished for the host, it has the next ones; then
  // one runs here again to see whether that still holds, each time after twice as many.
  bool is_hosts() const { return host_turns_ > 0; }
  // After each such call.
  void note_host_call() { --host_turns_; }
  // After each call that ran here and learns: the same on all ranks.
  void learn(const Wishes& wishes);

 private:
  static constexpr int first_turns = 7, most_turns = 63;

  int ranks_;
  Learns learns_;
  int class_ = usual_slot_class;
  std::array<std::int8_t, 4> recent_ = {usual_slot_class, usual_slot_class, usual_slot_class, usual_slot_class};
  std::size_t calls_ = 0;
  int host_turns_ = 0;
  int next_turns_ = first_turns;
  int own_turns_ = 0, next_own_turns_ = 1;
};

// Of the calls of one communicator that come to run in one order on all ranks.
class SlotSizes {
 public:
  explicit SlotSizes(int ranks) : to_all_(ranks), from_root_(ranks), to_root_(ranks, Learns::now_and_then) {}
  // Of exchanges by pairs; nullptr: of none.
  SlotSize* of(Collective collective) {
    if (!by_pairs(collective)) return nullptr;
    if (collective == Collective::gatherv) return &to_root_;
    return collective == Collective::scatterv ? &from_root_ : &to_all_;
  }

 private:
  SlotSize to_all_, from_root_;  // of alltoallv and alltoallw, and of scatterv
  SlotSize to_root_;             // of gatherv: its slots stay as they are (usual_slot_bytes)
};

}  // namespace plait::runtime
