#include "tests/differential/memory.h"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "tests/differential/random.h"

namespace plait::test {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::ptrdiff_t guard_bytes = 192;

// A length that shares no factor with the sizes of slots and pages, so that data which lands some of these off is seen.
const std::vector<std::byte>& canaries() {
  static const std::vector<std::byte> bytes = [] {
    std::vector<std::byte> made(65521);
    Random random(0xCA7A1);
    for (std::byte& byte : made) byte = static_cast<std::byte>(random.next());
    return made;
  }();
  return bytes;
}

Origin origin = Origin::heap;
Random origin_choice(0);

void fill(std::byte* to, std::size_t count, std::uint64_t seed) {
  const auto& source = canaries();
  std::size_t from = seed % source.size();
  while (count > 0) {
    const std::size_t now = std::min(count, source.size() - from);
    std::memcpy(to, source.data() + from, now);
    to += now;
    count -= now;
    from = 0;
  }
}

}  // namespace

void Reach::include(std::ptrdiff_t from, std::ptrdiff_t to) {
  if (from >= to) return;
  const bool empty = first == last;
  first = empty ? from : std::min(first, from);
  last = empty ? to : std::max(last, to);
}

void set_memory_origin(Origin chosen, std::uint64_t seed) {
  origin = chosen;
  origin_choice = Random(seed);
}

void Memory::Free::operator()(std::byte*) const {
  if (by_mpi)
    MPI_Free_mem(allocated);
  else
    ::operator delete[](allocated, std::align_val_t{alignment});
}

Memory::Memory(const Reach& reach, std::size_t misalignment, std::uint64_t seed) {
  const std::ptrdiff_t before = guard_bytes + std::max<std::ptrdiff_t>(0, -reach.first);
  const auto step = static_cast<std::ptrdiff_t>(alignment);
  lead_ = (before + step - 1) / step * step + static_cast<std::ptrdiff_t>(misalignment);
  total_ = static_cast<std::size_t>(lead_ + std::max<std::ptrdiff_t>(0, reach.last) + guard_bytes);
  Free free{.by_mpi = origin == Origin::mpi || (origin == Origin::either && origin_choice.one_in(2)),
            .allocated = nullptr};
  if (free.by_mpi)
    MPI_Alloc_mem(static_cast<MPI_Aint>(total_ + alignment), MPI_INFO_NULL, &free.allocated);
  else
    free.allocated = static_cast<std::byte*>(::operator new[](total_, std::align_val_t{alignment}));
  const std::size_t unaligned = reinterpret_cast<std::uintptr_t>(free.allocated) % alignment;
  bytes_ = {free.allocated + (unaligned == 0 ? 0 : alignment - unaligned), free};
  fill(bytes_.get(), total_, seed);
}

std::uint64_t checksum(std::span<const std::byte> bytes) {
  std::uint64_t sum = bytes.size();
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 32;
  }
  for (; at < bytes.size(); ++at) sum = (sum ^ static_cast<std::uint64_t>(bytes[at])) * 0x100000001B3u;
  return sum;
}

}  // namespace plait::test
