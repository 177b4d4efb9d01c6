/* As threads_pthreads_mutex.h beside it. */
#ifndef PLAIT_OMPI_SHIM_THREADS_H
#define PLAIT_OMPI_SHIM_THREADS_H

#include <pthread.h>
#include <sched.h>

static inline void opal_thread_yield(void) { sched_yield(); }

#endif
