// Waits for what another process of the node is about to do, as long as it may still do it.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

namespace plait::tl::detail {

// Whether a process is no more: none of its threads will run again. Costs some system calls.
bool process_gone(int process);

// Until `done()`, or until the process is gone; one that is stopped is waited for.
template <class Done>
void wait_for_process(int process, Done&& done) {
  constexpr std::uint32_t patient_after = 1024, look_every = 16;
  constexpr timespec nap{0, 100'000};
  for (std::uint32_t glance = 1; !done(); ++glance) {
    if (glance < patient_after) {
      sched_yield();
      continue;
    }
    if (glance % look_every == 0 && process_gone(process)) return;
    nanosleep(&nap, nullptr);
  }
}

}  // namespace plait::tl::detail
