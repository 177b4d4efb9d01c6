// How long the slots of an exchange by pairs are (pair_exchange.h). Long slots carry more messages at once, short ones
// waste less on pairs with little data. Each rank wishes by its own messages and says so in its slots, so that after a
// call all ranks know all wishes, and take the same size for the next one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plugin/piece.h"

namespace plait {

inline constexpr std::size_t slot_header_bytes = 8;
inline constexpr int slot_classes = 6;
constexpr std::size_t slot_bytes(int slot_class) { return std::size_t{16} << (2 * slot_class); }  // 16 .. 16384

// The class that suits messages to `ranks` ranks; those to `self` do not travel.
int wished_class(const Piece* sends, int ranks, int self);

// The sizes of one kind of call on one communicator: the smallest of the last few calls' wishes, since a slot that is
// too long costs in each call and one that is too short a second step.
class SlotSize {
 public:
  explicit SlotSize(int ranks) : ranks_(ranks) {}
  std::size_t bytes() const { return slot_bytes(class_); }
  // After each call: the sum of slot_bytes() of the wishes of `wishes` ranks, the same on all ranks.
  void learn(std::size_t wished_bytes, int wishes);

 private:
  int ranks_;
  int class_ = 2;
  std::array<std::int8_t, 4> recent_ = {2, 2, 2, 2};
  std::size_t calls_ = 0;
};

}  // namespace plait
