#include "tl/wait_strategy.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "tl/trace.h"

namespace plait::tl {
namespace {

// A wait goes through these stages, counted in glances that found nothing (tens of nanoseconds each when spinning).
constexpr std::uint32_t host_progress_every = 64;   // the first call comes after as many glances
constexpr std::uint32_t patient_after = 16 * 1024;  // spinning: from here on yield now and then ...
constexpr std::uint32_t patient_yield_every = 64;   // ... at every so many glances
constexpr std::uint32_t clock_every = 256;          // a look at the clock, from the first 256 glances on
constexpr std::uint32_t yields_a_look = 256;        // some tenths of a millisecond of them

constexpr std::uint64_t long_wait_ns = 1'000'000'000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// While the word has that value. Words are shared between processes.
void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value, const timespec& longest) {
  static_assert(sizeof word == sizeof(std::uint32_t));
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &longest, nullptr, 0);
}

}  // namespace

void WaitStrategy::wait(std::span<Channel* const> channels, bool may_progress_host) {
  if (resting_) return rest(channels);
  ++glances_;
  const std::uint32_t every = may_progress_host ? host_progress_every : clock_every;
  if (policy_.host_progress != nullptr && glances_ % every == 0) policy_.host_progress(policy_.context);
  if (yields())
    give_way();
  else if (glances_ > patient_after && glances_ % patient_yield_every == 0)
    sched_yield();
  else
    relax();
  if (glances_ % clock_every == 0) look_at_clock();
}

// Waits beside neighbours may all be short: none of them comes to a look at the clock.
void WaitStrategy::give_way() {
  sched_yield();
  if (!policy_.yield && ++yields_ % yields_a_look == 0) neighbours_.look(monotonic_ns());
}

void WaitStrategy::look_at_clock() {
  const std::uint64_t now = monotonic_ns();
  if (!policy_.yield) neighbours_.look(now);
  if (glances_ == clock_every)
    since_ns_ = now;
  else
    resting_ = now - since_ns_ >= policy_.sleep_after_ns;
}

// In turn: arms, so that what comes from now on wakes, and sleeps, if the glance in between found nothing.
void WaitStrategy::rest(std::span<Channel* const> channels) {
  if (!armed_) {
    for (int step = 0; policy_.host_progress != nullptr && step < policy_.host_steps; ++step)
      policy_.host_progress(policy_.context);
    return arm(channels);
  }
  armed_ = false;
  sleep();
  if (all_wake_) return;
  // Where the host MPI carries messages they may need several glances to move on.
  resting_ = false;
  glances_ -= host_progress_every;
}

void WaitStrategy::arm(std::span<Channel* const> channels) {
  wake_up_.descriptors.clear();
  wake_up_.word = nullptr;
  wake_up_.busy = false;
  channels_ = channels;
  all_wake_ = armed_ = true;
  for (Channel* channel : channels)
    if (channel != nullptr && channel->active() > 0 && !channel->arm(wake_up_)) all_wake_ = false;
  if (wake_up_.descriptors.empty() && wake_up_.word == nullptr) all_wake_ = false;
}

void WaitStrategy::sleep() {
  if (wake_up_.busy) return;
  const bool on_descriptors = !wake_up_.descriptors.empty();
  const bool whole = all_wake_ && !(on_descriptors && wake_up_.word != nullptr);
  const std::uint64_t waited = monotonic_ns() - since_ns_;
  std::uint64_t longest = whole ? policy_.longest_sleep_ns : policy_.longest_nap_ns;
  if (policy_.host_progress != nullptr && waited < long_wait_ns)
    longest = std::min(longest, policy_.longest_early_sleep_ns);
  const std::uint64_t shortest = std::min(policy_.shortest_sleep_ns, longest);
  const std::uint64_t ns = std::clamp(waited / 100, shortest, longest);
  const timespec duration{static_cast<std::time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  if (on_descriptors)
    ppoll(wake_up_.descriptors.data(), wake_up_.descriptors.size(), &duration, nullptr);
  else if (wake_up_.word != nullptr && all_wake_)
    sleep_on(*wake_up_.word, wake_up_.value, duration);
  else
    nanosleep(&duration, nullptr);
}

void WaitStrategy::leave_rest() {
  resting_ = armed_ = false;
  for (Channel* channel : channels_)
    if (channel != nullptr) channel->disarm();
  channels_ = {};
}

}  // namespace plait::tl
