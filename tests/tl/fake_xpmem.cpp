// A libxpmem for threads of one process, which stand in for ranks: what is attached is the memory itself.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "tl/shm/xpmem_library.h"

extern "C" {

std::atomic<int> fake_xpmem_refuses{0};  // 1: xpmem_get, 2: xpmem_attach
std::atomic<int> fake_xpmem_attachments{0}, fake_xpmem_accesses{0}, fake_xpmem_calls{0};

static bool refused(int what) {
  if (fake_xpmem_refuses != what) return false;
  errno = EPERM;
  return true;
}

std::int64_t xpmem_make(void*, std::size_t, int, void*) { return 7; }
int xpmem_remove(std::int64_t) { return 0; }

std::int64_t xpmem_get(std::int64_t segment, int, int, void*) {
  if (refused(1)) return -1;
  ++fake_xpmem_accesses;
  return segment + 1;
}
int xpmem_release(std::int64_t) {
  --fake_xpmem_accesses;
  return 0;
}

void* xpmem_attach(plait::tl::XpmemAddress address, std::size_t, void*) {
  ++fake_xpmem_calls;
  if (refused(2)) return reinterpret_cast<void*>(-1);
  ++fake_xpmem_attachments;
  return reinterpret_cast<void*>(address.offset);
}
int xpmem_detach(void*) {
  --fake_xpmem_attachments;
  return 0;
}

}  // extern "C"
