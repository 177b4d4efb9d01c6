// What the tests of the reduction kernels share: a scalar reference of every operator and type, operands drawn from the
// values where something can go wrong, and memory between guard pages.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "core/kernels.h"
#include "core/reduction.h"

namespace plait::test {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

// One element's way through the reference. `result` keeps the padding it has.
struct Step {
  Op op;
  std::byte* result;
  const std::byte* left;
  const std::byte* right;
};

// The reference of one element type, without its type.
struct Reference {
  std::size_t extent;
  void (*combine)(const Step&);
  // All NaNs alike: which one a sum of two NaNs is, nobody promises.
  void (*normalise)(std::byte* element);
  // Zeroes what is not value.
  void (*clear_padding)(std::byte* element);
  void (*fill)(std::byte* element, Random& random, bool truth_only);
};

Reference reference(Element element);

// `count` elements drawn for the type; padding is not zero.
Bytes draw_operand(Element element, std::size_t count, Random& random);

inline bool makes_nans(Op op) { return op == Op::sum || op == Op::prod; }

// Some pages with an unreadable one on either side: a step outside is a crash, not luck.
class GuardedPages {
 public:
  explicit GuardedPages(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    size_ = (bytes + page - 1) / page * page;
    mapped_ = size_ + 2 * page;
    void* memory = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    first_ = static_cast<std::byte*>(memory) + page;
    if (::mprotect(first_, size_, PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  ~GuardedPages() { ::munmap(first_ - (mapped_ - size_) / 2, mapped_); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  std::byte* first() const { return first_; }
  // The last `bytes` but `gap`.
  std::byte* last(std::size_t bytes, std::size_t gap = 0) const { return first_ + size_ - gap - bytes; }

 private:
  std::byte* first_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;
};

// Of this process: drawn, or --gtest_random_seed.
std::uint64_t seed();

// The kernels of every instruction set of this machine.
const std::vector<detail::TargetKernels>& targets();

}  // namespace plait::test
