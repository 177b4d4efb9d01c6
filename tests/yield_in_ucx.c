/* MPICH's ranks never give their core away while they wait, so that a barrier of more ranks than cores takes time slices of
 * the scheduler: 20 ms. Preloaded, this gives the core away whenever UCX, below MPICH, has nothing to do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

typedef unsigned (*Progress)(void* worker);

__attribute__((visibility("default"))) unsigned ucp_worker_progress(void* worker) {
  static Progress next;
  if (next == 0) next = (Progress)dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned events = next(worker);
  if (events == 0) sched_yield();
  return events;
}
