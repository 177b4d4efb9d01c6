// Memory that the ranks of a node share, in which they agree which of their persistent collectives all of them have
// started (start_order.h). Zero bytes are an empty table.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace plait::runtime {

// The persistent collectives that a communicator can have at a time.
inline constexpr std::size_t most_persistent = 4096;

// A list that any rank appends to and each reads at its own pace. A slot is appended again only when every rank has
// read it: it was run there, and started anew. So that a list of as many places as there are slots never overtakes a
// reader.
class SlotList {
 public:
  void append(std::uint32_t slot) {
    const std::uint64_t position = end_.fetch_add(1, std::memory_order_acq_rel);
    places_[position % most_persistent].store((position + 1) * most_persistent + slot, std::memory_order_release);
  }
  // The entry at `position`, a reader's own count, which it moves on; none where there is nothing new.
  std::optional<std::uint32_t> next(std::uint64_t& position) const {
    const std::uint64_t value = places_[position % most_persistent].load(std::memory_order_acquire);
    if (value / most_persistent != position + 1) return {};
    ++position;
    return static_cast<std::uint32_t>(value % most_persistent);
  }

 private:
  alignas(64) std::atomic<std::uint64_t> end_;
  alignas(64) std::array<std::atomic<std::uint64_t>, most_persistent> places_;
};

struct StartTable {
  alignas(64) std::atomic<std::uint32_t> failed;  // some rank of the node has: nobody waits for the others
  alignas(64) std::array<std::atomic<std::uint32_t>, most_persistent> started;  // by slot: ranks that have, this time
  SlotList here;        // slots that all ranks of the node have started
  SlotList everywhere;  // that all ranks have: each runs them in this order
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace plait::runtime
