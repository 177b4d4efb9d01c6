#include "allocating_handlers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { block_bytes = 1 << 20, child_mark = 1000000 };

static struct handlers_state state;
static pthread_t worker;

/* A thread of a pool, which has a large block of its own until it ends. */
static void* work(void* unused) {
  (void)unused;
  char* first = malloc(block_bytes);
  memset(first, 1, block_bytes);
  char* second = realloc(first, 3 * block_bytes);
  if (second[block_bytes - 1] != 1) state.failure = "a thread's block has lost its content";
  free(second);
  return NULL;
}

static void run_thread(void) {
  if (pthread_create(&worker, NULL, work, NULL) != 0)
    state.failure = "no thread";
  else
    pthread_join(worker, NULL);
}

static void prepare(void) {
  if (state.block == NULL) return;
  run_thread();
  state.block[0] = ++state.forks;
}

static void parent(void) {
  if (state.block == NULL) return;
  run_thread();
  if (state.block[0] != state.forks) state.failure = "the child wrote to the parent's block";
}

static void child(void) {
  if (state.block == NULL) return;
  if (state.block[0] != state.forks) state.failure = "the child's block is older than the fork";
  state.block[0] += child_mark;
  free(malloc(block_bytes));
}

__attribute__((constructor)) static void load(void) { pthread_atfork(prepare, parent, child); }

__attribute__((visibility("default"))) struct handlers_state* HANDLERS_START(void) {
  state.block = calloc(1, block_bytes);
  return &state;
}
