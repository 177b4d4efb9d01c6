#include "plugin/mpi/host/host_progress.h"

#include <dlfcn.h>
#include <mpi.h>

#include <initializer_list>

#include "core/imported_function.h"
#include "plugin/layer.h"
#include "plugin/mpi/host/host.h"
#include "runtime/job/job.h"

namespace plait::plugin {

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

namespace {

// MPICH has no hook for its progress, but over UCX each turn of it is a call of ucp_worker_progress().
using WorkerProgress = unsigned (*)(void*);
constexpr const char* symbol = "ucp_worker_progress";

WorkerProgress worker_progress = nullptr;
int (*turn_of_ours)() = nullptr;
bool called = false;

unsigned progress_of_both(void* worker) {
  called = true;
  const unsigned moved = worker_progress(worker);
  return moved + static_cast<unsigned>(turn_of_ours());
}

// What the host calls: a preloaded library's stands before UCX's own, and UCX may be out of the global scope.
void* find_in_ucx() {
  if (void* global = dlsym(RTLD_DEFAULT, symbol); global != nullptr) return global;
  void* library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr ? dlsym(library, symbol) : nullptr;
}

int no_query(void*, MPI_Status* status) { return PMPI_Status_set_elements(status, MPI_BYTE, 0); }
int nothing_to_free(void*) { return MPI_SUCCESS; }
int no_cancel(void*, int) { return MPI_SUCCESS; }

// Whether turns of the host's come to us: looking at a request that is not complete is one.
bool tried_out() {
  constexpr int most_looks = 16;
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Grequest_start(no_query, nothing_to_free, no_cancel, nullptr, &request) != MPI_SUCCESS) return false;
  for (int i = 0, complete = 0; i < most_looks && !called; ++i) PMPI_Test(&request, &complete, MPI_STATUS_IGNORE);
  PMPI_Grequest_complete(request);
  host().wait(&request, MPI_STATUS_IGNORE);
  return called;
}

}  // namespace

// Under MPI_THREAD_MULTIPLE MPICH holds a lock there, within which it must not be called. Ranks may differ in that, but
// must decide alike.
bool join_host_progress(int (*progress)()) {
  void* found = find_in_ucx();
  if (found == nullptr || job().any_concurrent) return false;
  worker_progress = reinterpret_cast<WorkerProgress>(found);
  turn_of_ours = progress;
  const void* const inside = reinterpret_cast<const void*>(host().init);
  if (!replace_imported_function(inside, symbol, reinterpret_cast<const void*>(&progress_of_both))) return false;
  if (tried_out()) return true;
  replace_imported_function(inside, symbol, found);
  return false;
}

#endif

}  // namespace plait::plugin
