// A libucp of a few lines: messages between endpoints of one process, delivered in the order of a test's choice, and
// failures on demand. As with the real one, several threads may use several workers, but each worker one at a time:
// others are counted.
#pragma once

#include "tl/ucx/ucp_library.h"

namespace plait::tl::fake_ucp {

// Forgets all state of earlier tests.
void reset();

// How the next calls go.
struct Behaviour {
  bool complete_at_once = false;  // sends complete in the call
  bool newest_first = false;      // progress completes what was posted last before the rest
  int deliveries_a_progress = 1;
  ucs_status_t send_status = UCS_OK;  // of the next completions of sends
  ucs_status_t post_status = UCS_OK;  // of the calls that post sends
  ucs_status_t worker_status = UCS_OK;
  ucs_status_t connect_status = UCS_OK;  // of making an endpoint
  ucs_status_t events_status = UCS_OK;   // of asking for a worker's descriptor
  std::size_t cut_bytes = 0;             // messages arrive so much shorter
  int yield_every = 0;                   // of so many calls one lets other threads come; 0: none
};
extern Behaviour behaviour;

// Every endpoint fails, as when the peer has died.
void fail_endpoints(ucs_status_t status);
int open_workers();
int open_requests();
int synchronous_sends();
int closed_endpoints();
// Calls that found another thread within the same worker.
int meetings();
ucs_thread_mode_t thread_mode();  // of the worker that was made last

const UcpLibrary& library();

}  // namespace plait::tl::fake_ucp
