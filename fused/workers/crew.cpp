#include "fused/workers/crew.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tl/trace.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plait::fused {
namespace {

// As the engine's waits (tl/wait_strategy.h): spinning, then a yield now and then, then naps of a hundredth of the
// wait.
constexpr std::uint32_t spins = 16'384, yield_every = 64;
constexpr std::uint64_t nap_after_ns = 5'000'000, longest_nap_ns = 1'000'000;
constexpr std::uint32_t clock_every = 64;  // yields, between two looks at it
// Of a thread that has no work, before it sleeps.
constexpr int looks_for_a_round = 2'000;

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
  if (looks_++ == 0) since_ns_ = 0;
  if (crowded_ || (looks_ > spins && looks_ % yield_every == 0)) return yield_or_rest();
  pause_processor();
}

void Patience::yield_or_rest() {
  sched_yield();
  if (looks_ % (crowded_ ? clock_every : clock_every * yield_every) != 0) return;
  const std::uint64_t now_ns = monotonic_ns();
  if (since_ns_ == 0) since_ns_ = now_ns;
  if (now_ns - since_ns_ < nap_after_ns) return;
  const timespec nap{0, static_cast<long>(std::min((now_ns - since_ns_) / 100, longest_nap_ns))};
  nanosleep(&nap, nullptr);
}

Crew::Crew(int workers, bool crowded, std::vector<int> places)
    : crowded_(crowded), places_(std::cmp_less(places.size(), workers) ? std::vector<int>() : std::move(places)) {
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
  Patience patience(crowded_);
  while (busy_.load(std::memory_order_acquire) != 0) patience.wait();
}

// A system that refuses it has the thread run where it likes.
void Crew::keep_in_place(int worker) const {
  if (places_.empty()) return;
  cpu_set_t place;
  CPU_ZERO(&place);
  CPU_SET(places_[static_cast<std::size_t>(worker)], &place);
  pthread_setaffinity_np(pthread_self(), sizeof place, &place);
}

void Crew::serve(int worker) {
  pthread_setname_np(pthread_self(), ("plait-fused" + std::to_string(worker)).c_str());
  keep_in_place(worker);
  for (std::uint32_t done = 0;; ++done) {
    for (int looks = 0; !crowded_ && looks < looks_for_a_round && round_.load(std::memory_order_acquire) == done;
         ++looks)
      pause_processor();
    round_.wait(done, std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    call_(work_, worker);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace plait::fused
