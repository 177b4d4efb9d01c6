// How an algorithm says its messages: between the members of a group, numbered from 0, the root; of pieces of the data,
// numbered as well. Which ranks and which segments these are is known to who listens: the lowering, or a proof that
// holds for all ranks and all pieces.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "plan/model/schedule.h"

namespace plait::plan {

class Moves {
 public:
  using Pieces = std::span<const int>;

  static constexpr int everybody = -1;
  virtual ~Moves() = default;

  // The only member whose messages are wanted; the others' may be left out, and what they are of need not be found out.
  int self() const { return self_; }
  bool wants(int member) const { return self_ == everybody || member == self_; }
  bool wants(int one, int other) const { return wants(one) || wants(other); }

  // Of data in chunks, all chunks of a stage go before the next stage, so that messages of different chunks overlap.
  virtual void next_stage() {}

  // One message with `from`'s values of the pieces; `to` holds them afterwards, and `from` still does.
  virtual void move(int from, int to, Pieces pieces) = 0;
  // One message with `from`'s values, which `to` combines with its own, the lower member's on the left.
  virtual void combine(int from, int to, Pieces pieces) = 0;
  // Both directions at once: afterwards both hold the combination.
  virtual void exchange(int one, int other, Pieces pieces) = 0;
  // One operation of all members in the shared memory of their node, with all pieces; the root is member 0.
  virtual void together(ShmCollectiveKind kind) = 0;

  void move(int from, int to, int piece) { move(from, to, Pieces(&piece, 1)); }
  void combine(int from, int to, int piece) { combine(from, to, Pieces(&piece, 1)); }
  void exchange(int one, int other, int piece) { exchange(one, other, Pieces(&piece, 1)); }

 protected:
  explicit Moves(int self) : self_(self) {}

 private:
  int self_;
};

// Visits in ascending order the senders of a stage in which each of the first `members` sends one message: all, or
// those of `self`'s messages, its own and that of the one who sends to it.
template <class SenderTo, class Visit>
void for_each_sender(int members, int self, SenderTo sender_to, Visit visit) {
  if (self == Moves::everybody) {
    for (int member = 0; member < members; ++member) visit(member);
    return;
  }
  const int other = sender_to(self);
  visit(std::min(self, other));
  if (other != self) visit(std::max(self, other));
}

}  // namespace plait::plan
