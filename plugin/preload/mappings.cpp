// The C library's functions that change what lies at an address. They are passed on; the source of large blocks learns
// of what happens to its own: a program may do with such a block what it may do with one of the C library.
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "plugin/preload/known_blocks.h"

// The C library's version of these names, and not the default one of this library: programs ask for that version and
// find the functions here, while dlsym(), which asks for none, finds the C library's. So do libraries that write a jump
// to code of their own over the function's first bytes (UCX, Open MPI): here it would take the calls away from us,
// there it is what we pass the calls on to.
#if defined(__x86_64__)
#define PLAIT_VERSION_OF_LIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define PLAIT_VERSION_OF_LIBC "GLIBC_2.17"
#endif
#define PLAIT_EXPORT __attribute__((visibility("default"), used))
#if __has_attribute(symver)
#define PLAIT_OVER(name) __attribute__((symver(#name "@" PLAIT_VERSION_OF_LIBC))) PLAIT_EXPORT
#else
#define PLAIT_OVER(name)                                               \
  __asm__(".symver over_" #name ", " #name "@" PLAIT_VERSION_OF_LIBC); \
  PLAIT_EXPORT
#endif

namespace plait::plugin::preload {
namespace {

// The next definition in the order of symbols, looked up at the first call: nothing is done when the library is loaded.
// Threads may do it at the same time: they find the same.
template <class Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  Function* get() {
    Function* found = found_.load(std::memory_order_relaxed);
    if (found != nullptr) return found;
    found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
    found_.store(found, std::memory_order_relaxed);
    return found;
  }

 private:
  const char* name_;
  std::atomic<Function*> found_{nullptr};
};

using Map = void*(void*, std::size_t, int, int, int, off_t);
constinit Next<Map> next_mmap("mmap");
constinit Next<Map> next_mmap64("mmap64");
constinit Next<int(void*, std::size_t)> next_munmap("munmap");
constinit Next<void*(void*, std::size_t, std::size_t, int, ...)> next_mremap("mremap");
constinit Next<int(void*, std::size_t, int)> next_madvise("madvise");

void note(void* mapped, std::size_t bytes) {
  if (mapped != MAP_FAILED && known_blocks.overlaps(mapped, bytes)) known_blocks.source.mapped_over(mapped, bytes);
}

// Whether private memory reads as zeros after it, at once or some time.
bool drops(int advice) {
#ifdef MADV_DONTNEED_LOCKED
  if (advice == MADV_DONTNEED_LOCKED) return true;
#endif
  return advice == MADV_DONTNEED || advice == MADV_FREE;
}

// Addresses of the range that the system has freed: nothing else may come to lie there.
void keep(void* freed, std::size_t bytes) {
  int result = 0;
  known_blocks.source.unmap(freed, bytes, result);
}

// What was moved from [old, old + old_bytes), or cut short there.
void keep_vacated(void* old, std::size_t old_bytes, const void* moved, std::size_t new_bytes) {
  if (moved != old)
    keep(old, old_bytes);
  else if (new_bytes < old_bytes)
    keep(static_cast<char*>(old) + new_bytes, old_bytes - new_bytes);
}

}  // namespace
}  // namespace plait::plugin::preload

extern "C" {

using namespace plait::plugin::preload;

PLAIT_OVER(mmap) void* over_mmap(void* address, std::size_t bytes, int access, int flags, int file, off_t offset) {
  void* mapped = next_mmap.get()(address, bytes, access, flags, file, offset);
  if ((flags & MAP_FIXED) != 0) note(mapped, bytes);
  return mapped;
}

// Where files have 64-bit offsets anyway the two are one type; newer C libraries name the second one only when asked to.
static_assert(sizeof(off_t) == 8);
PLAIT_OVER(mmap64)
void* over_mmap64(void* address, std::size_t bytes, int access, int flags, int file, off_t offset) {
  void* mapped = next_mmap64.get()(address, bytes, access, flags, file, offset);
  if ((flags & MAP_FIXED) != 0) note(mapped, bytes);
  return mapped;
}

PLAIT_OVER(munmap) int over_munmap(void* address, std::size_t bytes) {
  int result = 0;
  if (known_blocks.overlaps(address, bytes) && known_blocks.source.unmap(address, bytes, result)) [[unlikely]]
    return result;
  return next_munmap.get()(address, bytes);
}

// Blocks of an allocator cannot be moved: where they begin the C library's are at no start of a page.
PLAIT_OVER(mremap) void* over_mremap(void* old, std::size_t old_bytes, std::size_t new_bytes, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  void* wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  const bool in_range = known_blocks.overlaps(old, old_bytes);
  if (in_range && known_blocks.source.owns_any(old, old_bytes)) [[unlikely]] {
    errno = EINVAL;
    return MAP_FAILED;
  }
  void* moved = next_mremap.get()(old, old_bytes, new_bytes, flags, wanted);
  if (moved == MAP_FAILED) return moved;
  if (in_range) keep_vacated(old, old_bytes, moved, new_bytes);
  note(moved, new_bytes);
  return moved;
}

PLAIT_OVER(madvise) int over_madvise(void* address, std::size_t bytes, int advice) {
  int result = 0;
  if (drops(advice) && known_blocks.overlaps(address, bytes) &&
      known_blocks.source.drop(address, bytes, advice, result)) [[unlikely]]
    return result;
  return next_madvise.get()(address, bytes, advice);
}

}  // extern "C"
