/* What carried the last collective of this thread: the plugin's answer, "absent" where it is not loaded, "" where it
 * has seen none. */
#ifndef PLAIT_TESTS_PLAN_USED_H
#define PLAIT_TESTS_PLAN_USED_H

#include <dlfcn.h>
#include <string.h>

static inline const char* plan_used(void) {
  const char* (*ask)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "plait_last_plan");
  return ask != NULL ? ask() : "absent";
}

static inline int accelerated(void) {
  const char* plan = plan_used();
  return strcmp(plan, "host") != 0 && strcmp(plan, "absent") != 0 && strcmp(plan, "") != 0;
}

#endif
