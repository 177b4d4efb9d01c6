// Wakes the helper thread (progress_thread.h) when there is something to do.
#pragma once

#include <atomic>

namespace plait::runtime {

// One thread sleeps, any number ring. What there is to do is looked for by the sleeper once it has said that it sleeps,
// so that no ring is lost.
class HelperBell {
 public:
  // A few nanoseconds where nobody sleeps, or where there is no helper.
  void ring() {
    if (!asleep_.load(std::memory_order_seq_cst)) return;
    asleep_.store(false, std::memory_order_seq_cst);
    asleep_.notify_one();
  }
  // Until somebody rings; not at all where `awake()` is true once the sleeper can be rung for.
  template <class Awake>
  void sleep_unless(Awake&& awake) {
    asleep_.store(true, std::memory_order_seq_cst);
    if (awake())
      asleep_.store(false, std::memory_order_seq_cst);
    else
      asleep_.wait(true, std::memory_order_seq_cst);
  }

 private:
  std::atomic<bool> asleep_{false};
};
HelperBell& helper_bell();

// Whether the caller is that thread: the host's progress may bring it back here.
bool on_helper_thread();
// For the thread itself, once.
void become_helper_thread();

}  // namespace plait::runtime
