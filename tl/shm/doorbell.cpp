#include "tl/shm/doorbell.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

namespace plait::tl::detail {
namespace {

bool fence_all() { return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0; }

}  // namespace

bool join_fences() { return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0; }

Doorbells::Doorbells(std::vector<Doorbell*> bells, std::size_t self)
    : bells_(std::move(bells)), self_(self), sleepers_(&bells_.front()->sleepers) {
  bells_[self_]->fenced.store(join_fences() ? 1 : 0, std::memory_order_release);
}

bool Doorbells::all_fenced() {
  const auto fenced = [](const Doorbell* bell) { return bell->fenced.load(std::memory_order_acquire) != 0; };
  if (!all_fenced_) all_fenced_ = std::ranges::all_of(bells_, fenced);
  return all_fenced_;
}

bool Doorbells::arm(WakeUp& wake_up) {
  if (!all_fenced()) return false;
  Doorbell& own = *bells_[self_];
  if (own.asleep.load(std::memory_order_relaxed) == 0) {
    own.asleep.store(1, std::memory_order_relaxed);
    sleepers_->fetch_add(1, std::memory_order_acq_rel);
    if (!fence_all()) {
      disarm();
      return false;
    }
  }
  wake_up.word = &own.asleep;
  wake_up.value = 1;
  return true;
}

void Doorbells::disarm() {
  if (bells_[self_]->asleep.load(std::memory_order_relaxed) != 0) take_back(*bells_[self_]);
}

bool Doorbells::take_back(Doorbell& bell) const {
  if (bell.asleep.exchange(0, std::memory_order_acq_rel) == 0) return false;
  sleepers_->fetch_sub(1, std::memory_order_acq_rel);
  return true;
}

void Doorbells::wake(std::size_t local) const {
  Doorbell& bell = *bells_[local];
  if (bell.asleep.load(std::memory_order_relaxed) != 0 && take_back(bell))
    syscall(SYS_futex, &bell.asleep, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Doorbells::wake_all() const {
  for (std::size_t local = 0; local < bells_.size(); ++local)
    if (local != self_) wake(local);
}

}  // namespace plait::tl::detail
