/* As threads_pthreads_mutex.h beside it: a thread's own value. */
#ifndef PLAIT_OMPI_SHIM_TSD_H
#define PLAIT_OMPI_SHIM_TSD_H

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

static inline int opal_tsd_key_delete(opal_tsd_key_t key) { return pthread_key_delete(key); }
static inline int opal_tsd_set(opal_tsd_key_t key, void* value) { return pthread_setspecific(key, value); }
static inline int opal_tsd_get(opal_tsd_key_t key, void** value) {
  *value = pthread_getspecific(key);
  return 0;
}

#endif
