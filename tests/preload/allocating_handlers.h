/* A library whose handlers of fork() work as OpenBLAS's do: threads end before the fork, and give their memory back. */
#ifndef PLAIT_TESTS_ALLOCATING_HANDLERS_H
#define PLAIT_TESTS_ALLOCATING_HANDLERS_H

struct handlers_state {
  /* The library's own large block: the number of forks stands in it, written by the handler before each; the child's
     handler adds a million to its copy. */
  long* block;
  long forks;
  /* What went wrong in a handler of this process or of those that it was forked from. */
  const char* failure;
};

/* Its handlers were registered when it was loaded; they do something from this call on. */
typedef struct handlers_state* handlers_start_function(void);
#ifdef __cplusplus
extern "C"
#endif
    struct handlers_state*
    HANDLERS_START(void);

#endif
