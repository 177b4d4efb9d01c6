/* Names of a process's threads, for tests. */
#ifndef PLAIT_TESTS_PRELOAD_TASK_NAME_H
#define PLAIT_TESTS_PRELOAD_TASK_NAME_H

#include <stdio.h>
#include <string.h>

/* Of an entry of /proc/self/task; empty where it is no thread any more. */
static inline void task_name(const char* task, char name[32]) {
  char path[300];
  name[0] = '\0';
  snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
  FILE* file = fopen(path, "r");
  if (file == NULL) return;
  if (fgets(name, 32, file) == NULL) name[0] = '\0';
  fclose(file);
  name[strcspn(name, "\n")] = '\0';
}

#endif
