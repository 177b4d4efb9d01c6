#include "in_shared_heap.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

int in_shared_heap(const void* address) {
  char line[512];
  int found = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    uintptr_t begin = 0, end = 0;
    if (sscanf(line, "%zx-%zx", &begin, &end) == 2 && (uintptr_t)address >= begin && (uintptr_t)address < end)
      found = strstr(line, "memfd:plait") != NULL;
  }
  if (maps != NULL) fclose(maps);
  return found;
}
