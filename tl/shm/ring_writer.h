// The sending end of one ring.
#pragma once

#include <vector>

#include "tl/shm/ring.h"

namespace plait::detail {

class RingWriter {
 public:
  RingWriter() = default;
  RingWriter(Ring ring, ShmTuning tuning) : ring_(ring), tuning_(tuning) {}

  // True when the whole message already lies in slots.
  bool start(Transfer& transfer);
  // At most one fragment, or one piece of a single copy. Completed transfers are appended.
  Status progress(std::vector<Transfer*>& completed, bool& moved);
  bool idle() const { return queue_.empty() && announced_.empty(); }
  void forget() { queue_ = announced_ = {}; }

 private:
  enum class Written { nothing, part, whole, announced };

  Written write(Transfer& transfer);
  bool has_free_slot();
  void publish(Slot& slot) { slot.sequence.store(++written_, std::memory_order_release); }
  bool wants_single_copy(const Transfer& transfer) const;
  std::size_t fragment_bytes(const Transfer& transfer) const;
  Status help(Transfer& transfer, bool& moved);

  Ring ring_;
  ShmTuning tuning_;
  std::uint32_t written_ = 0;       // fragments
  std::uint32_t drained_ = 0;       // of them, as last seen
  TransferQueue queue_;             // not yet wholly in slots
  TransferQueue announced_;         // single copies that the peer has not finished
  std::vector<RemoteSpan> target_;  // where the peer wants the first of them, once this side takes part
  std::uint32_t pushed_ = 0;        // its pieces copied by this side
};

}  // namespace plait::detail
