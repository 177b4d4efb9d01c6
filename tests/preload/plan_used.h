/* What carried the last collective of this thread: the plugin's answer, "absent" where it is not loaded. */
#ifndef PLAIT_TESTS_PLAN_USED_H
#define PLAIT_TESTS_PLAN_USED_H

#include <dlfcn.h>
#include <string.h>

static inline const char* plan_used(void) {
  const char* (*ask)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "plait_last_plan");
  return ask != NULL ? ask() : "absent";
}

static inline int accelerated(void) { return strcmp(plan_used(), "host") != 0 && strcmp(plan_used(), "absent") != 0; }

#endif
