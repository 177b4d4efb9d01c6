#define _GNU_SOURCE
#include "plugin/ompi/caller.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

/* A symbol found for an address may be the last one before it: functions that are not exported follow. */
static bool lies_within(const char* function, const char* address) {
  Dl_info found;
  const ElfW(Sym)* symbol = NULL;
  if (dladdr1(address, &found, (void**)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL || found.dli_sname == NULL)
    return false;
  const char* name = found.dli_sname + (found.dli_sname[0] == 'P' ? 1 : 0);
  return strcmp(name, function) == 0 && address <= (const char*)found.dli_saddr + symbol->st_size;
}

bool plait_ompi_called_by(struct plait_ompi_caller* caller, const void* return_address) {
  if (__atomic_load_n(&caller->place, __ATOMIC_RELAXED) == return_address) return true;
  if (!lies_within(caller->function, return_address)) return false;
  __atomic_store_n(&caller->place, return_address, __ATOMIC_RELAXED);
  return true;
}
