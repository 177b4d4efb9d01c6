// Stands in for a kernel that forbids reading another process's memory. Loaded before Plait's library.
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

namespace {

std::atomic<int> refused{0};

// A test that nothing was refused in has tested nothing.
struct AtExit {
  ~AtExit() {
    if (refused > 0) std::fprintf(stderr, "no_single_copy: refused\n");
  }
} at_exit;

ssize_t refuse() {
  ++refused;
  errno = EPERM;
  return -1;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) ssize_t process_vm_readv(pid_t, const iovec*, unsigned long, const iovec*,
                                                                unsigned long, unsigned long) {
  return refuse();
}

__attribute__((visibility("default"))) ssize_t process_vm_writev(pid_t, const iovec*, unsigned long, const iovec*,
                                                                 unsigned long, unsigned long) {
  return refuse();
}
}
