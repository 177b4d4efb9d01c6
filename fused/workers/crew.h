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
  // Throws where the system makes no thread. One worker: there is only the caller. `crowded`: there are more threads
  // than cores for them. `places`: by worker, the processor that it is kept on, but for the caller, which is the
  // program's; where there are fewer than workers, none is.
  explicit Crew(int workers, bool crowded = true, std::vector<int> places = {});
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  bool crowded() const { return crowded_; }
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
  void keep_in_place(int worker) const;
  void stop() noexcept;

  Call call_ = nullptr;
  const void* work_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> round_{0};  // of which the threads do one after the other
  alignas(64) std::atomic<int> busy_{0};             // threads that are not through with it
  std::atomic<bool> stopping_{false};
  const bool crowded_;
  const std::vector<int> places_;
  std::vector<std::thread> threads_;
};

// How a thread waits for others: it looks, spins, gives its core away now and then, and takes naps once that has gone
// on for milliseconds. Where threads outnumber cores (`crowded`) it gives its core away at once. Not thread-safe.
class Patience {
 public:
  explicit Patience(bool crowded) : crowded_(crowded) {}
  // After a look in vain.
  void wait();
  // After one that was not.
  void reset() { looks_ = 0; }

 private:
  void yield_or_rest();

  bool crowded_;
  std::uint32_t looks_ = 0;
  std::uint64_t since_ns_ = 0;  // of the wait, taken when it turned out not to be short
};

}  // namespace plait::fused
