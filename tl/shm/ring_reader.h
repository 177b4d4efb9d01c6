// The receiving end of one ring.
#pragma once

#include <string>
#include <vector>

#include "core/aligned_bytes.h"
#include "tl/shm/ring.h"

namespace plait::tl::detail {

class RingReader {
 public:
  RingReader() = default;
  explicit RingReader(Ring ring) : ring_(ring) {}

  // `sending`: this process has sends under way, so that a single copy would take its core from them.

  // True when the whole message was there and is taken.
  Result<bool> start(Transfer& transfer, bool sending);
  // At most one fragment, or one piece of a single copy. Completed transfers are appended.
  Status progress(std::vector<Transfer*>& completed, bool& moved, bool sending);
  bool idle() const { return queue_.empty(); }
  // Gives up the messages under way; returns when the peer no longer writes to their memory, or is gone.
  void forget();

 private:
  enum class Taken { nothing, part, whole };

  // A single copy under way. Pieces not claimed by the peer are pulled from the front.
  struct Pull {
    bool active = false;
    std::uint32_t pieces = 0;
    std::uint32_t pulled = 0;         // of them, by this side
    std::uint64_t pushed_before = 0;  // pieces the peer had pushed before this message
    std::vector<RemoteSpan> source;
  };

  Result<Taken> take(Transfer& transfer, bool sending);
  Status take_fragment(Transfer& transfer, Slot& slot);
  void take_part_of_element(Transfer& transfer, const std::byte* data, std::size_t bytes);
  Status answer(Transfer& transfer, Slot& slot, bool sending);
  Result<Taken> pull_piece(Transfer& transfer);
  bool claim();
  // A writer that runs ahead has filled the next slot already: its line is on its way while this one is worked on.
  void release_slot() {
    ring_.control->drained.store(++drained_, std::memory_order_release);
    ring_.wake_peer();
    __builtin_prefetch(&ring_.slot(drained_));
  }
  Status wrong_message(const Transfer& transfer, const std::string& found) const;

  Ring ring_;
  std::uint32_t drained_ = 0;  // slots
  TransferQueue queue_;
  Pull pull_;
  AlignedBytes partial_;  // an element larger than a slot, as far as it has come
};

}  // namespace plait::tl::detail
