#include "plugin/host_progress.h"

#include <dlfcn.h>
#include <mpi.h>

#include <initializer_list>

namespace plait {

#if defined(OPEN_MPI)

// opal_progress_register() is what Open MPI's own components use. The library may be out of the global scope.
bool join_host_progress(int (*progress)()) {
  using Register = int (*)(int (*)());
  constexpr const char* symbol = "opal_progress_register";
  void* found = dlsym(RTLD_DEFAULT, symbol);
  if (found == nullptr) {
    void* library = nullptr;
    for (const char* name : {"libopen-pal.so.40", "libopen-pal.so.80", "libopen-pal.so"})
      if (library == nullptr) library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return false;
    found = dlsym(library, symbol);
  }
  return found != nullptr && reinterpret_cast<Register>(found)(progress) == 0;
}

#else

bool join_host_progress(int (*)()) { return false; }

#endif

}  // namespace plait
