// The order in which handlers run is that of their registration, which for `prepare` is turned around. libplait.so is
// the first library of the process to be initialised (-z initfirst), so that what it registers then comes first; what
// there is to do it learns in MPI_Init.
#include "plugin/preload/fork_handlers.h"

#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace plait::plugin::preload {
namespace {

struct Handlers {
  void (*prepare)();
  void (*parent)();
  void (*child)();
};
constinit Handlers handlers{};
constinit std::atomic<bool> known{false};

// Handlers that become known between those of one fork() have no part in it. By thread: two may fork at a time.
thread_local constinit bool prepared __attribute__((tls_model("initial-exec"))) = false;

void prepare() {
  if (!known.load(std::memory_order_acquire)) return;
  handlers.prepare();
  prepared = true;
}

void parent() {
  if (!prepared) return;
  prepared = false;
  handlers.parent();
}

void child() {
  if (!prepared) return;
  prepared = false;
  handlers.child();
}

[[gnu::constructor]] void register_first() { pthread_atfork(prepare, parent, child); }

}  // namespace

int handle_fork(void (*prepare)(), void (*parent)(), void (*child)()) {
  if (known.load(std::memory_order_relaxed)) return EEXIST;
  handlers = {.prepare = prepare, .parent = parent, .child = child};
  known.store(true, std::memory_order_release);
  return 0;
}

}  // namespace plait::plugin::preload
