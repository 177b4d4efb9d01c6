// Says when a wait has become so long that a look at what may be wrong is worth its cost.
#pragma once

#include <cstdint>

#include "tl/trace.h"

namespace plait::tl {

// Not thread-safe.
class StallClock {
 public:
  // Something moved. True when a wait that had been timed ends with it.
  bool moved() {
    glances_ = 0;
    const bool timed = since_ns_ != 0;
    since_ns_ = 0;
    return timed;
  }
  // After a glance that moved nothing: true after a second of these, and then five times a second. Costs a look at the
  // clock now and then.
  bool due() {
    if (++glances_ % (since_ns_ == 0 ? clock_every : clock_every_when_long) != 0) return false;
    const std::uint64_t now = monotonic_ns();
    if (since_ns_ == 0) since_ns_ = now;
    if (now - since_ns_ < stalled_after_ns || now - looked_ns_ < look_every_ns) return false;
    looked_ns_ = now;
    return true;
  }

 private:
  static constexpr std::uint32_t clock_every = 256, clock_every_when_long = 16;  // glances: a sleeper has few
  static constexpr std::uint64_t stalled_after_ns = 1'000'000'000, look_every_ns = stalled_after_ns / 5;

  std::uint32_t glances_ = 0;
  std::uint64_t since_ns_ = 0, looked_ns_ = 0;
};

}  // namespace plait::tl
