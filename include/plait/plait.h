/* Plait's public C API: what a program or a tool may ask of the plugin that is in its process.
 * All functions are thread-safe unless they say otherwise. No MPI types here: see plait_mpi.h. */
#ifndef PLAIT_PLAIT_H
#define PLAIT_PLAIT_H

#include <stddef.h>

#if defined(__GNUC__)
#define PLAIT_API __attribute__((visibility("default")))
#else
#define PLAIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0". The string lives for ever. */
PLAIT_API const char* plait_version(void);

/* Turns acceleration on (non-zero) or off (0) for this process from its next collective call on. The ranks of a
 * communicator must agree: call it on all of them between the same two collectives. Returns the previous state. */
PLAIT_API int plait_set_enabled(int enabled);

/* What Plait did with the calling thread's last collective: the name of the plan that ran, "host" when the call was
 * passed on, "" before any call. The string lives until the thread's next collective. */
PLAIT_API const char* plait_last_plan(void);

/* The channels that carried the calling thread's last collective, comma-separated ("shm,mpi"); "" for the host. */
PLAIT_API const char* plait_last_channels(void);

/* How many of this process's collectives were timed so far to find out which way is fastest for calls like them
 * (docs/tuning.md). While it grows, calls may take turns between the host and several plans. */
PLAIT_API unsigned long plait_trial_calls(void);

/* Memory that the ranks of the caller's node can map, so that large collectives within the node move its data without
 * copies (docs/memory.md): at least `bytes`, aligned to a page, contents undefined. Before MPI_Init, when there is no
 * room for more, or with PLAIT_SHARED=none, the memory is ordinary. NULL: no memory at all. For large, long-lived
 * buffers: every block takes whole pages. Give it back with plait_free(), not free(). */
PLAIT_API void* plait_alloc(size_t bytes);

/* Gives back what plait_alloc() gave, also after MPI_Finalize; NULL is allowed. */
PLAIT_API void plait_free(void* block);

/* The share of its core that the helper thread of this process (PLAIT_PROGRESS=thread) may take from now on, over
 * milliseconds, while it moves on what no overlap plan speaks of: 1 to 100 percent. Returns the percentage before, or
 * -1, and changes nothing, where the value is none. */
PLAIT_API int plait_set_progress_duty(int percent);

/* How many threads, the helper thread included, share its long copies and reductions from now on, each with that share
 * of a core of its own: 1 to 1024. Where the process may use fewer processing units, as many as there are, with the
 * whole of the share (docs/overlap-run.md). Starts threads. Returns the number before, or -1, and changes nothing,
 * where the value is none. */
PLAIT_API int plait_set_progress_threads(int threads);

/* Says that an iteration of the program ends here and the next one begins: PLAIT_RECORD then takes what lies between
 * two such calls for its steps, instead of looking for them (docs/record.md). Nanoseconds without PLAIT_RECORD. */
PLAIT_API void plait_step(void);

#ifdef __cplusplus
}
#endif

#endif
