// The threads of one rank that compute a fused operator together: the caller, as worker 0, and as many more as are
// wanted, which live as long as the crew and sleep between runs. What each does is the operator's: it takes tiles until
// there are none.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "fused/layer.h"

namespace plait::fused {

class Crew {
 public:
  // Throws where the system makes no thread. One worker: there is only the caller.
  explicit Crew(int workers);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int workers() const { return static_cast<int>(threads_.size()) + 1; }

  // The threads go to work: work(worker) once on each of them, from 1 on, side by side. `work` stays until join(), and
  // throws nothing. Allocates nothing; wakes those that sleep.
  template <class Work>
  void begin(const Work& work) {
    static_assert(std::is_nothrow_invocable_v<const Work&, int>);
    begin([](const void* bare, int worker) { (*static_cast<const Work*>(bare))(worker); }, &work);
  }
  // The caller's part, work(0), and the end of all others'. After each begin().
  void join();

 private:
  using Call = void (*)(const void* work, int worker);
  void begin(Call call, const void* work);
  void serve(int worker);
  void stop() noexcept;

  Call call_ = nullptr;
  const void* work_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> round_{0};  // of which the threads do one after the other
  alignas(64) std::atomic<int> busy_{0};             // threads that are not through with it
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

// How a thread waits for others: it looks, spins for a moment, gives its core away, and takes naps once that has gone
// on for milliseconds. Not thread-safe.
class Patience {
 public:
  // After a look in vain.
  void wait();
  // After one that was not.
  void reset() { looks_ = 0; }
  // Looks in vain so far.
  std::uint32_t looks() const { return looks_; }

 private:
  std::uint32_t looks_ = 0;
};

}  // namespace plait::fused
