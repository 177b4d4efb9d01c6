#include "perf/counted_heap.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

constinit std::atomic<std::int64_t> in_use{0}, peak{0};

}  // namespace

void* operator new(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  const std::int64_t given = in_use += static_cast<std::int64_t>(malloc_usable_size(memory));
  if (given > peak.load(std::memory_order_relaxed)) peak.store(given, std::memory_order_relaxed);
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) in_use -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace plait {

std::int64_t heap_now() { return in_use; }
std::int64_t heap_peak() { return peak; }
void forget_heap_peak() { peak = in_use.load(); }

}  // namespace plait
