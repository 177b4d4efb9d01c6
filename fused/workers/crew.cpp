#include "fused/workers/crew.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <string>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plait::fused {
namespace {

constexpr std::uint32_t spins = 200;      // some microseconds
constexpr std::uint32_t yields = 20'000;  // some milliseconds, where nobody else wants the core
constexpr long nap_ns = 50'000;
constexpr int looks_for_a_round = 2'000;  // before a thread sleeps: longer than between two runs in a loop

void pause_processor() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Signals are the program's threads'.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

void Patience::wait() {
  ++looks_;
  if (looks_ <= spins) return pause_processor();
  if (looks_ <= spins + yields) {
    sched_yield();
    return;
  }
  looks_ = spins + yields;
  const timespec nap{0, nap_ns};
  nanosleep(&nap, nullptr);
}

Crew::Crew(int workers) {
  const WithoutSignals quiet;
  threads_.reserve(static_cast<std::size_t>(std::max(workers, 1)) - 1);
  try {
    for (int worker = 1; worker < workers; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
  } catch (...) {
    stop();
    throw;
  }
}

Crew::~Crew() { stop(); }

void Crew::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Crew::begin(Call call, const void* work) {
  call_ = call;
  work_ = work;
  if (threads_.empty()) return;
  busy_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

void Crew::join() {
  call_(work_, 0);
  Patience patience;
  while (busy_.load(std::memory_order_acquire) != 0) patience.wait();
}

void Crew::serve(int worker) {
  pthread_setname_np(pthread_self(), ("plait-fused" + std::to_string(worker)).c_str());
  for (std::uint32_t done = 0;; ++done) {
    for (int looks = 0; looks < looks_for_a_round && round_.load(std::memory_order_acquire) == done; ++looks)
      pause_processor();
    round_.wait(done, std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    call_(work_, worker);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace plait::fused
