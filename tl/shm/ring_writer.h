// The sending end of one ring.
#pragma once

#include <vector>

#include "tl/shm/ring.h"

namespace plait::tl::detail {

class RingWriter {
 public:
  RingWriter() = default;
  explicit RingWriter(Ring ring) : ring_(ring) {}

  // True when the whole message already lies in slots.
  bool start(Transfer& transfer);
  // At most one fragment, or one piece of a single copy. Completed transfers are appended.
  Status progress(std::vector<Transfer*>& completed, bool& moved);
  bool idle() const { return queue_.empty() && accepted_.empty(); }
  void forget() { queue_ = accepted_ = {}; }

 private:
  enum class Written { nothing, part, whole };

  Written write(Transfer& transfer);
  bool has_free_slot();
  bool announce(Transfer& transfer, Slot& slot);
  void hear_answer(bool& moved);
  void publish(Slot& slot) {
    slot.sequence.store(++written_, std::memory_order_release);
    ring_.wake_peer();
  }
  std::size_t fragment_bytes(const Transfer& transfer) const;
  void finish_accepted(std::vector<Transfer*>& completed, bool& moved);
  Status push_piece(Transfer& transfer, bool& moved);

  Ring ring_;
  std::uint32_t written_ = 0;     // slots
  std::uint32_t drained_ = 0;     // of them, as last seen
  TransferQueue queue_;           // not yet wholly in slots
  bool awaiting_answer_ = false;  // the first of them is announced; nothing may follow it yet
  TransferQueue accepted_;        // single copies under way
  std::uint32_t pushed_ = 0;      // pieces of the first of them copied by this side
};

}  // namespace plait::tl::detail
