// Time that others have not taken from this thread: they may have the cores for as long as they like, and no bound on
// what a thread does within some time holds then.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tl/neighbour_watch.h"
#include "tl/trace.h"

namespace plait::tl {

// Of the thread that makes it.
class OwnTime {
 public:
  // Since then, or since `later_ns`, without the time for which this thread has stood in line for a core meanwhile.
  std::uint64_t ns() const { return ns_since(begin_ns_); }
  std::uint64_t ns_since(std::uint64_t later_ns) const {
    const std::uint64_t whole = monotonic_ns() - later_ns;
    return whole - std::min(whole, in_line_ns());
  }
  std::uint64_t in_line_ns() const { return time_in_line_ns().value_or(0) - in_line_before_; }

 private:
  std::uint64_t begin_ns_ = monotonic_ns(), in_line_before_ = time_in_line_ns().value_or(0);
};

}  // namespace plait::tl
