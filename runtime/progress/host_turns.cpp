#include "runtime/progress/host_turns.h"

namespace plait::runtime {

namespace {
thread_local constinit std::uint64_t own_last __attribute__((tls_model("initial-exec"))) = 0;
}

std::uint64_t HostTurns::own_last_ns() { return own_last; }
void HostTurns::note_own(std::uint64_t now_ns) { own_last = now_ns; }

void HostTurns::note(std::uint64_t now_ns) {
  note_own(now_ns);
  const bool at_once = now_ns - last_ns_.exchange(now_ns, std::memory_order_relaxed) < longest_gap_ns;
  in_a_row_.store(at_once ? in_a_row_.load(std::memory_order_relaxed) + 1 : 0, std::memory_order_relaxed);
  in_all_.fetch_add(1, std::memory_order_relaxed);
}

void HostTurns::forget() {
  last_ns_.store(0, std::memory_order_relaxed);
  in_a_row_.store(0, std::memory_order_relaxed);
}

bool HostTurns::waits(std::uint64_t in_all_at_post) const {
  return in_a_row_.load(std::memory_order_relaxed) >= turns_of_wait || in_all() - in_all_at_post >= turns_in_all;
}

}  // namespace plait::runtime
