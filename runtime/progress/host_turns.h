// When a program is within its MPI.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/layer.h"

namespace plait::runtime {

// Whether the program waits in MPI, as far as it can be seen: what the host's progress calls tells nothing of who
// called the host. Turns of it that follow each other at once are a wait. Any thread.
class HostTurns {
 public:
  // The calling thread, one of the program's, is within MPI.
  void note(std::uint64_t now_ns);
  // It has just posted something new, and goes back to what it computes.
  void forget();
  // Whether one of them was there a moment ago, and probably still is.
  bool recent(std::uint64_t now_ns) const { return now_ns - last_ns_.load(std::memory_order_relaxed) < moment_ns; }
  // How many there were.
  std::uint64_t in_all() const { return in_all_.load(std::memory_order_relaxed); }
  // Whether the program waits for what it posted when there had been so many in all: it waits at all, or has asked so
  // often since that it must be taken for waiting.
  bool waits(std::uint64_t in_all_at_post) const;

  // When the calling thread was in MPI last, other than to post; 0: never.
  static std::uint64_t own_last_ns();
  // It is there without a turn: what it asked for was complete.
  static void note_own(std::uint64_t now_ns);

 private:
  static constexpr std::uint64_t longest_gap_ns = 200'000, moment_ns = 100'000;
  static constexpr std::uint32_t turns_of_wait = 32, turns_in_all = 256;

  std::atomic<std::uint64_t> last_ns_{0};
  std::atomic<std::uint32_t> in_a_row_{0};
  std::atomic<std::uint64_t> in_all_{0};
};

}  // namespace plait::runtime
