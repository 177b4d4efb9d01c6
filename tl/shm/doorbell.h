// How ranks of a node that sleep are woken by those that they wait for.
//
// A rank that is about to sleep says so in its doorbell and in a count of sleepers. A writer looks at that count after
// each store that others may wait for, and wakes them when there are any. Its store may still be on the way when it
// reads the count, but the hot path has no room for a fence: so the sleeper makes all processes pass one (membarrier),
// looks once more, and only then sleeps. From the fence on either the writer sees the count or the sleeper the store.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tl/channel.h"

namespace plait::tl::detail {

// In the shared segment, one for each rank. Zeroed memory is a fresh one.
struct Doorbell {
  alignas(64) std::atomic<std::uint32_t> asleep;    // 1: rings are wanted. Who takes it back counts one sleeper less
  std::atomic<std::uint32_t> fenced;                // 1: the rank's process takes part in the others' fences
  alignas(64) std::atomic<std::uint32_t> sleepers;  // of the node; counted in the first rank's only
};
static_assert(sizeof(Doorbell) == 128);

// This process takes part in the fences of sleepers, or cannot. Costs some milliseconds in the first call of a process
// that has several threads, else nothing to speak of.
bool join_fences();

class Doorbells {
 public:
  Doorbells() = default;
  // `bells` by local index. Not owned.
  Doorbells(std::vector<Doorbell*> bells, std::size_t self);

  // After a store (release) that the rank `local`, or any other, may be waiting for. The compiler keeps the order; the
  // processor need not, see above.
  void ring(std::size_t local) const {
    if (somebody_sleeps()) [[unlikely]]
      wake(local);
  }
  void ring_all() const {
    if (somebody_sleeps()) [[unlikely]]
      wake_all();
  }

  // As Channel::arm and disarm. Costs a system call, and a short interruption of the node's cores, the first time and
  // after each ring.
  bool arm(WakeUp& wake_up);
  void disarm();

 private:
  bool somebody_sleeps() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return sleepers_->load(std::memory_order_relaxed) != 0;
  }
  bool all_fenced();
  bool take_back(Doorbell& bell) const;
  void wake(std::size_t local) const;
  void wake_all() const;

  std::vector<Doorbell*> bells_;
  std::size_t self_ = 0;
  std::atomic<std::uint32_t>* sleepers_ = nullptr;
  bool all_fenced_ = false;
};

}  // namespace plait::tl::detail
