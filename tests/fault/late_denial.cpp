// Stands in for a kernel that forbids reading and writing another process's memory, and for an MPI that fails to pack,
// from some time on, for the rank that says so. Part of the program, whose symbols come before those of libraries.
#include <dlfcn.h>
#include <mpi.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>

#include "tests/fault/late_denial.h"

namespace {

std::atomic<bool> denied{false}, packing_denied{false};

using Call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

ssize_t call_or_deny(const char* name, pid_t process, const iovec* here, unsigned long here_count, const iovec* there,
                     unsigned long there_count, unsigned long flags) {
  if (!denied)
    return reinterpret_cast<Call>(dlsym(RTLD_NEXT, name))(process, here, here_count, there, there_count, flags);
  errno = EPERM;
  return -1;
}

}  // namespace

void deny_single_copies() { denied = true; }
void deny_packing() { packing_denied = true; }

extern "C" {

__attribute__((visibility("default"))) ssize_t process_vm_readv(pid_t process, const iovec* here,
                                                                unsigned long here_count, const iovec* there,
                                                                unsigned long there_count, unsigned long flags) {
  return call_or_deny("process_vm_readv", process, here, here_count, there, there_count, flags);
}

__attribute__((visibility("default"))) ssize_t process_vm_writev(pid_t process, const iovec* here,
                                                                 unsigned long here_count, const iovec* there,
                                                                 unsigned long there_count, unsigned long flags) {
  return call_or_deny("process_vm_writev", process, here, here_count, there, there_count, flags);
}

__attribute__((visibility("default"))) int PMPI_Pack(const void* from, int count, MPI_Datatype type, void* packed,
                                                     int packed_bytes, int* position, MPI_Comm comm) {
  using Pack = int (*)(const void*, int, MPI_Datatype, void*, int, int*, MPI_Comm);
  if (packing_denied) return MPI_ERR_NO_MEM;
  return reinterpret_cast<Pack>(dlsym(RTLD_NEXT, "PMPI_Pack"))(from, count, type, packed, packed_bytes, position, comm);
}
}
