#include "absurd_sizes.h"

#include <malloc.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

namespace plait::tests {
namespace {

constexpr std::size_t most = SIZE_MAX, largest_object = PTRDIFF_MAX, kibibyte = 1024;

// What comes near the end of an address space and of a signed size, and what is only more than any machine has.
constexpr std::size_t absurd[] = {most,
                                  most - 1,
                                  most - 31,
                                  most - 4095,
                                  most - 64 * kibibyte,
                                  largest_object + 65 * kibibyte,
                                  largest_object + 1,
                                  largest_object,
                                  largest_object - 1,
                                  largest_object - 4095,
                                  std::size_t{1} << 62,
                                  std::size_t{1} << 48};

// Not known to the compiler, which warns of calls that it sees through.
volatile std::size_t half = most / 2 + 1;

int wrong = 0;

void refused(const void* block, std::size_t bytes, const char* what) {
  if (block == nullptr && errno == ENOMEM) return;
  ++wrong;
  std::printf("wrong: %s of %zu bytes: %p, errno %d\n", what, bytes, block, errno);
}

template <class Allocate>
void expect_no_block(std::size_t bytes, const char* what, Allocate allocate) {
  errno = 0;
  const void* block = allocate();
  refused(block, bytes, what);
}

void expect_status(int found, int expected, const void* result, const char* what) {
  if (found == expected && result == nullptr) return;
  ++wrong;
  std::printf("wrong: %s: %d, not %d, and %p\n", what, found, expected, result);
}

template <class Allocate>
void expect_bad_alloc(std::size_t bytes, const char* what, Allocate allocate) {
  try {
    void* block = allocate();
    ++wrong;
    std::printf("wrong: %s of %zu bytes: %p\n", what, bytes, block);
  } catch (const std::bad_alloc&) {
  }
}

void expect_no_object(std::size_t bytes, const void* object) {
  if (object == nullptr) return;
  ++wrong;
  std::printf("wrong: operator new of %zu bytes that does not throw: %p\n", bytes, object);
}

void resize(std::size_t had, std::size_t bytes) {
  // Read again each time: the compiler takes a block that was given to realloc for gone, whatever the answer.
  auto* volatile block = static_cast<unsigned char*>(std::malloc(had));
  std::memset(block, 0x5a, had);
  expect_no_block(bytes, "realloc", [&] { return std::realloc(block, bytes); });
  expect_no_block(bytes, "reallocarray", [&] { return reallocarray(block, bytes, 1); });
  expect_no_block(bytes, "reallocarray that overflows", [&] { return reallocarray(block, bytes, half); });
  if (block[0] != 0x5a || block[had / 2] != 0x5a || block[had - 1] != 0x5a) ++wrong;
  std::free(block);
}

void align(std::size_t alignment, std::size_t bytes) {
  expect_no_block(bytes, "aligned_alloc", [&] { return std::aligned_alloc(alignment, bytes); });
  expect_no_block(bytes, "memalign", [&] { return memalign(alignment, bytes); });
  if (alignment < sizeof(void*)) return;
  void* result = nullptr;
  expect_status(posix_memalign(&result, alignment, bytes), ENOMEM, result, "posix_memalign");
}

void make_objects(std::size_t bytes) {
  expect_bad_alloc(bytes, "operator new", [&] { return ::operator new(bytes); });
  expect_bad_alloc(bytes, "operator new[]", [&] { return ::operator new[](bytes); });
  expect_no_object(bytes, ::operator new(bytes, std::nothrow));
  constexpr std::size_t alignment = 256;
  if (bytes > most - alignment) return;  // libstdc++ 12 rounds up to nothing, and makes that
  expect_bad_alloc(bytes, "operator new, aligned", [&] { return ::operator new (bytes, std::align_val_t{alignment}); });
  expect_no_object(bytes, ::operator new (bytes, std::align_val_t{alignment}, std::nothrow));
}

}  // namespace

int wrong_answers_to_absurd_sizes() {
  wrong = 0;
  for (const std::size_t bytes : absurd) {
    expect_no_block(bytes, "malloc", [&] { return std::malloc(bytes); });
    expect_no_block(bytes, "calloc of one", [&] { return std::calloc(1, bytes); });
    expect_no_block(bytes, "calloc of bytes", [&] { return std::calloc(bytes, 1); });
    expect_no_block(bytes, "calloc that overflows", [&] { return std::calloc(bytes, half); });
    expect_no_block(bytes, "realloc of nothing", [&] { return std::realloc(nullptr, bytes); });
    expect_no_block(bytes, "valloc", [&] { return valloc(bytes); });
    expect_no_block(bytes, "pvalloc", [&] { return pvalloc(bytes); });
    for (const std::size_t had : {std::size_t{1}, 100 * kibibyte, 1024 * kibibyte}) resize(had, bytes);
    for (const std::size_t alignment : {std::size_t{16}, 4 * kibibyte, 64 * 1024 * kibibyte}) align(alignment, bytes);
    make_objects(bytes);
  }
  for (const std::size_t bytes : {std::size_t{1}, 100 * kibibyte})
    for (const std::size_t alignment : {std::size_t{1} << 62, std::size_t{1} << 63}) align(alignment, bytes);
  void* result = nullptr;
  for (const std::size_t bytes : {100 * kibibyte, most})
    for (const std::size_t alignment : {std::size_t{0}, std::size_t{4}, std::size_t{24}, most, most - 7})
      expect_status(posix_memalign(&result, alignment, bytes), EINVAL, result, "posix_memalign, wrong alignment");
  return wrong;
}

}  // namespace plait::tests
