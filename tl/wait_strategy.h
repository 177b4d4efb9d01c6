// How a rank waits (design rule 5): it spins or yields between glances, and sleeps after milliseconds without progress.
#pragma once

#include <cstdint>
#include <span>

#include "tl/channel.h"
#include "tl/neighbour_watch.h"

namespace plait::tl {

struct WaitPolicy {
  // More of the job's ranks than cores: give the core away at once. Else spin, unless others than the job's ranks want
  // the core, too, which each rank finds out for itself.
  bool yield = false;
  // Lets the host MPI progress its own messages; called now and then during a wait, seldom where the MPI channel
  // drives it anyway. May be null.
  void (*host_progress)(void* context) = nullptr;
  void* context = nullptr;
  // Not ok once `host_progress` has learned that another rank has failed; may be null. Not owned.
  const Status* failure = nullptr;
  // Engine::run() has failed here, and its channels are still open: the other ranks are told before they find them
  // closed. Returns the reason as it is known now. May be null; may block for a moment.
  Status (*agree_on_reason)(void* context, const Status& cause) noexcept = nullptr;

  // Sleep begins after so long without progress. Each is a hundredth of the wait so far, within these bounds: a sleeper
  // is woken by what it waits for, but has to look after the host's messages and after peers that are gone.
  std::uint64_t sleep_after_ns = 5'000'000;
  std::uint64_t shortest_sleep_ns = 50'000, longest_sleep_ns = 5'000'000;
  // The host's messages take many steps of its progress each: so many follow each other before a sleep, and sleeps stay
  // this short until a wait has lasted a second.
  int host_steps = 16;
  std::uint64_t longest_early_sleep_ns = 1'000'000;
  // Where not all that is awaited can wake: so a wait is late by about one percent at most.
  std::uint64_t longest_nap_ns = 1'000'000;
  NeighbourWatch::Reader time_in_line_ns = plait::tl::time_in_line_ns;
};

// Not thread-safe.
class WaitStrategy {
 public:
  explicit WaitStrategy(const WaitPolicy& policy) : policy_(policy), neighbours_(policy.time_in_line_ns) {}

  // For sleeps that await so many peers.
  void make_room(std::size_t peers) { wake_up_.descriptors.reserve(peers + own_descriptors); }

  // When something moved, and before the wait's memory or channels go: nothing stays armed.
  void reset() {
    glances_ = 0;
    if (!channels_.empty()) [[unlikely]]
      leave_rest();
  }
  // After a glance at all of `channels` (entries may be null) at which nothing had moved. They are the same until
  // reset(). `may_progress_host`: the host's progress is not already being driven.
  void wait(std::span<Channel* const> channels, bool may_progress_host);

  // Whether a wait gives the core away at once.
  bool yields() const { return policy_.yield || neighbours_.shared(); }

 private:
  void give_way();
  void look_at_clock();
  void rest(std::span<Channel* const> channels);
  void arm(std::span<Channel* const> channels);
  void sleep();
  void leave_rest();

  static constexpr std::size_t own_descriptors = 32;  // of channels, beside those of peers

  WaitPolicy policy_;
  NeighbourWatch neighbours_;
  std::uint32_t yields_ = 0;  // because of neighbours
  std::uint32_t glances_ = 0;
  std::uint64_t since_ns_ = 0;  // of the wait, taken when it turned out not to be short
  bool resting_ = false;        // the wait has become long
  bool armed_ = false;          // ... and this was the glance before the sleep
  bool all_wake_ = false;       // all that is awaited is in wake_up_
  std::span<Channel* const> channels_;
  WakeUp wake_up_;
};

}  // namespace plait::tl
