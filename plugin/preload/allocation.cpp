#include "plugin/preload/allocation.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "plugin/preload/known_blocks.h"

#define PLAIT_EXPORT __attribute__((visibility("default")))

// The C library's own functions under the names that nobody replaces; for dlsym(), which may allocate.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace plait::plugin::preload {

constinit KnownBlocks known_blocks;

namespace {

constexpr std::size_t large_block_bytes = std::size_t{64} << 10;

// X(name, result, parameters, arguments)
#define PLAIT_ALLOCATOR(X)                                                                                      \
  X(malloc, void*, (std::size_t bytes), (bytes))                                                                \
  X(calloc, void*, (std::size_t count, std::size_t bytes), (count, bytes))                                      \
  X(realloc, void*, (void* block, std::size_t bytes), (block, bytes))                                           \
  X(reallocarray, void*, (void* block, std::size_t count, std::size_t bytes), (block, count, bytes))            \
  X(free, void, (void* block), (block))                                                                         \
  X(posix_memalign, int, (void** result, std::size_t alignment, std::size_t bytes), (result, alignment, bytes)) \
  X(aligned_alloc, void*, (std::size_t alignment, std::size_t bytes), (alignment, bytes))                       \
  X(memalign, void*, (std::size_t alignment, std::size_t bytes), (alignment, bytes))                            \
  X(valloc, void*, (std::size_t bytes), (bytes))                                                                \
  X(pvalloc, void*, (std::size_t bytes), (bytes))                                                               \
  X(malloc_usable_size, std::size_t, (void* block), (block))

// ---- The next definitions ----

thread_local constinit bool resolving __attribute__((tls_model("initial-exec"))) = false;
void resolve();

// While the next definitions are being looked up; afterwards never.
namespace bootstrap {

void* malloc(std::size_t bytes) { return __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) { return __libc_calloc(count, bytes); }
void* realloc(void* block, std::size_t bytes) { return __libc_realloc(block, bytes); }
void* reallocarray(void*, std::size_t, std::size_t) { return nullptr; }
void free(void* block) { __libc_free(block); }
int posix_memalign(void**, std::size_t, std::size_t) { return ENOMEM; }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return __libc_memalign(alignment, bytes); }
void* memalign(std::size_t alignment, std::size_t bytes) { return __libc_memalign(alignment, bytes); }
void* valloc(std::size_t) { return nullptr; }
void* pvalloc(std::size_t) { return nullptr; }
std::size_t malloc_usable_size(void*) { return 0; }

}  // namespace bootstrap

// At first each pointer leads here: nothing is done when the library is loaded.
#define PLAIT_DECLARE(name, result, parameters, arguments) result first_##name parameters;
PLAIT_ALLOCATOR(PLAIT_DECLARE)
#undef PLAIT_DECLARE

#define PLAIT_NEXT(name, result, parameters, arguments) \
  constinit std::atomic<result(*) parameters> next_##name{first_##name};
PLAIT_ALLOCATOR(PLAIT_NEXT)
#undef PLAIT_NEXT

#define PLAIT_FIRST(name, result, parameters, arguments)          \
  result first_##name parameters {                                \
    if (resolving) return bootstrap::name arguments;              \
    resolve();                                                    \
    return next_##name.load(std::memory_order_relaxed) arguments; \
  }
PLAIT_ALLOCATOR(PLAIT_FIRST)
#undef PLAIT_FIRST

// Threads may do it at the same time: they find the same.
void resolve() {
  resolving = true;
  void* found = nullptr;
#define PLAIT_RESOLVE(name, result, parameters, arguments)                                              \
  found = dlsym(RTLD_NEXT, #name);                                                                      \
  next_##name.store(found != nullptr ? reinterpret_cast<result(*) parameters>(found) : bootstrap::name, \
                    std::memory_order_relaxed);
  PLAIT_ALLOCATOR(PLAIT_RESOLVE)
#undef PLAIT_RESOLVE
  resolving = false;
}

template <class Function, class... Arguments>
[[gnu::always_inline]] inline auto next(const std::atomic<Function>& function, Arguments... arguments) {
  return function.load(std::memory_order_relaxed)(arguments...);
}

// ---- Large blocks ----

constexpr std::size_t page_bytes = 4096;  // every block of the source starts at a page

// Blocks of more than this come from the source; at first none do, of whatever size: there may be no source.
constinit std::atomic<std::size_t> largest_small{SIZE_MAX};

constinit const BlockSource& source = known_blocks.source;

[[gnu::always_inline]] inline bool is_large(std::size_t bytes) {
  return bytes > largest_small.load(std::memory_order_relaxed);
}

[[gnu::always_inline]] inline bool is_of_source(const void* block) { return known_blocks.holds(block); }

[[gnu::noinline]] void* large_malloc(std::size_t bytes) {
  void* block = source.allocate(bytes, page_bytes);
  return block != nullptr ? block : next(next_malloc, bytes);
}

[[gnu::noinline]] void* large_calloc(std::size_t count, std::size_t bytes) {
  void* block = source.allocate_zeroed(count * bytes);
  return block != nullptr ? block : next(next_calloc, count, bytes);
}

[[gnu::noinline]] void release(void* block) { source.release(block); }

std::size_t usable_size(void* block) {
  return is_of_source(block) ? source.usable_size(block) : next(next_malloc_usable_size, block);
}

void* any_malloc(std::size_t bytes) { return is_large(bytes) ? large_malloc(bytes) : next(next_malloc, bytes); }

// Precondition: the block is the source's.
void* resize_block(void* block, std::size_t bytes) {
  if (bytes == 0) {
    release(block);
    return nullptr;
  }
  const std::size_t usable = source.usable_size(block);
  if (bytes <= usable && bytes > usable / 2) return block;
  if (bytes >= large_block_bytes && source.resize(block, bytes)) return block;
  void* moved = any_malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(bytes, usable));
  release(block);
  return moved;
}

// Of the source's blocks, and of others that become large. What shrinks in the C library's heap stays there.
[[gnu::noinline]] void* large_realloc(void* block, std::size_t bytes) {
  if (block == nullptr) return large_malloc(bytes);
  if (is_of_source(block)) return resize_block(block, bytes);
  const std::size_t usable = next(next_malloc_usable_size, block);
  void* moved = bytes > usable ? source.allocate(bytes, page_bytes) : nullptr;
  if (moved == nullptr) return next(next_realloc, block, bytes);
  std::memcpy(moved, block, usable);
  next(next_free, block);
  return moved;
}

void* large_aligned(std::size_t alignment, std::size_t bytes) {
  const bool is_power_of_two = alignment != 0 && (alignment & (alignment - 1)) == 0;
  if (!is_large(bytes) || !is_power_of_two) return nullptr;
  return source.allocate(bytes, std::max(alignment, page_bytes));
}

// ---- The program's own allocator ----

// Start of the library that an address lies in; nullptr: none.
const void* library_of(const void* address) {
  Dl_info found{};
  return dladdr(address, &found) != 0 ? found.dli_fbase : nullptr;
}

// Whether the program's malloc is this library's, and the next one the C library's.
bool is_plain_allocator() {
  const void* here = library_of(reinterpret_cast<const void*>(&share_allocations));
  const void* c_library = library_of(reinterpret_cast<const void*>(&gnu_get_libc_version));
  return library_of(dlsym(RTLD_DEFAULT, "malloc")) == here && library_of(dlsym(RTLD_NEXT, "malloc")) == c_library &&
         library_of(dlsym(RTLD_DEFAULT, "free")) == here;
}

}  // namespace

void know_blocks(const BlockSource& blocks) {
  if (known_blocks.bytes.load(std::memory_order_relaxed) != 0) return;
  known_blocks.source = blocks;
  known_blocks.begin.store(blocks.begin, std::memory_order_relaxed);
  known_blocks.bytes.store(blocks.bytes, std::memory_order_release);
}

bool share_allocations() {
  if (!is_plain_allocator()) return false;
  largest_small.store(large_block_bytes - 1, std::memory_order_release);
  return true;
}

}  // namespace plait::plugin::preload

// ---- The exported functions ----

extern "C" {

using namespace plait::plugin::preload;

PLAIT_EXPORT void* malloc(std::size_t bytes) {
  if (is_large(bytes)) [[unlikely]]
    return large_malloc(bytes);
  return next(next_malloc, bytes);
}

PLAIT_EXPORT void free(void* block) {
  if (is_of_source(block)) [[unlikely]]
    return release(block);
  return next(next_free, block);
}

PLAIT_EXPORT void* calloc(std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (!__builtin_mul_overflow(count, bytes, &all) && is_large(all)) [[unlikely]]
    return large_calloc(count, bytes);
  return next(next_calloc, count, bytes);
}

PLAIT_EXPORT void* realloc(void* block, std::size_t bytes) {
  if (is_large(bytes) || is_of_source(block)) [[unlikely]]
    return large_realloc(block, bytes);
  return next(next_realloc, block, bytes);
}

PLAIT_EXPORT void* reallocarray(void* block, std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  return realloc(block, all);
}

PLAIT_EXPORT int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) {
  void* block = alignment >= sizeof(void*) ? large_aligned(alignment, bytes) : nullptr;
  if (block == nullptr) return next(next_posix_memalign, result, alignment, bytes);
  *result = block;
  return 0;
}

PLAIT_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  void* block = large_aligned(alignment, bytes);
  return block != nullptr ? block : next(next_aligned_alloc, alignment, bytes);
}

PLAIT_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  void* block = large_aligned(alignment, bytes);
  return block != nullptr ? block : next(next_memalign, alignment, bytes);
}

PLAIT_EXPORT void* valloc(std::size_t bytes) {
  void* block = large_aligned(page_bytes, bytes);
  return block != nullptr ? block : next(next_valloc, bytes);
}

PLAIT_EXPORT void* pvalloc(std::size_t bytes) {
  void* block = large_aligned(page_bytes, bytes);
  return block != nullptr ? block : next(next_pvalloc, bytes);
}

PLAIT_EXPORT std::size_t malloc_usable_size(void* block) { return usable_size(block); }

}  // extern "C"
