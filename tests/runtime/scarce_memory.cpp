#include "tests/runtime/scarce_memory.h"

#include <cstdlib>
#include <new>

namespace {
thread_local constinit bool scarce = false;
thread_local constinit int left_of_scarce = 0;
bool is_short() { return scarce && left_of_scarce-- <= 0; }
}  // namespace

plait::runtime::ScarceMemory::ScarceMemory(int left) {
  left_of_scarce = left;
  scarce = true;
}
plait::runtime::ScarceMemory::~ScarceMemory() { scarce = false; }

void* operator new(std::size_t bytes) {
  if (is_short()) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
// Both forms, so that what one gives the other's operator delete may take.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return is_short() ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
