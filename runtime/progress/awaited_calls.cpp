#include "runtime/progress/awaited_calls.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

#include "core/immortal.h"

namespace plait::runtime {
namespace {

// All that there are, for a wait that names a request only.
struct Registry {
  std::mutex guard;
  std::vector<AwaitedCalls*> all;
};
Registry& registry() {
  static Immortal<Registry> all;  // never destroyed: calls may come until the process ends
  return *all;
}
constinit std::atomic<int> registered{0};

}  // namespace

AwaitedCalls::AwaitedCalls() {
  const std::scoped_lock lock(registry().guard);
  registry().all.push_back(this);
  registered.fetch_add(1, std::memory_order_relaxed);
}

AwaitedCalls::~AwaitedCalls() {
  const std::scoped_lock lock(registry().guard);
  std::erase(registry().all, this);
  registered.fetch_sub(1, std::memory_order_relaxed);
}

void AwaitedCalls::add(RequestKey request, std::uint64_t number) noexcept {
  const std::scoped_lock lock(guard_);
  try {
    calls_.push_back({.request = request, .number = number, .awaited = false});
  } catch (const std::bad_alloc&) {
  }
}

void AwaitedCalls::note_wait_for_call(std::uint64_t number) noexcept {
  const std::scoped_lock lock(guard_);
  try {
    calls_.push_back({.request = 0, .number = number, .awaited = true});
    ++awaited_;
  } catch (const std::bad_alloc&) {
  }
}

void AwaitedCalls::remove(std::uint64_t number) noexcept {
  const std::scoped_lock lock(guard_);
  const auto found = std::ranges::find(calls_, number, &Call::number);
  if (found == calls_.end()) return;
  awaited_ -= found->awaited ? 1 : 0;
  calls_.erase(found);
}

bool AwaitedCalls::awaits(std::uint64_t number) const {
  const std::scoped_lock lock(guard_);
  if (awaited_ == 0) return false;
  const auto found = std::ranges::find(calls_, number, &Call::number);
  return found != calls_.end() && found->awaited;
}

bool AwaitedCalls::awaits_any() const {
  const std::scoped_lock lock(guard_);
  return awaited_ > 0;
}

void AwaitedCalls::note_wait_for(RequestKey request) noexcept {
  if (registered.load(std::memory_order_relaxed) == 0) return;
  const std::scoped_lock lock(registry().guard);
  for (AwaitedCalls* known : registry().all) {
    const std::scoped_lock own_lock(known->guard_);
    for (Call& call : known->calls_) {
      if (call.request != request || call.awaited) continue;
      call.awaited = true;
      ++known->awaited_;
    }
  }
}

}  // namespace plait::runtime
