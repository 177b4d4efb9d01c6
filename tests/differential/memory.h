// Memory for one buffer of a call, between guards, all of it filled with bytes that must still be there afterwards
// wherever the call has no business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace plait::test {

// Where memory comes from: this process's heap, MPI_Alloc_mem, or either, drawn for each buffer and rank.
enum class Origin { heap, mpi, either };
// Of all that is made from now on.
void set_memory_origin(Origin origin, std::uint64_t seed);

// The bytes that a call may touch, counted from the address that MPI is given.
struct Reach {
  std::ptrdiff_t first = 0, last = 0;  // [first, last)
  void include(std::ptrdiff_t from, std::ptrdiff_t to);
};

class Memory {
 public:
  // The address has this remainder modulo 64. The same seed gives the same canaries.
  Memory(const Reach& reach, std::size_t misalignment, std::uint64_t seed);

  std::byte* address() const { return bytes_.get() + lead_; }
  std::span<std::byte> all() const { return {bytes_.get(), total_}; }
  // Of a byte of all(), from the address.
  std::ptrdiff_t offset(std::size_t position) const { return static_cast<std::ptrdiff_t>(position) - lead_; }

 private:
  struct Free {
    bool by_mpi;
    std::byte* allocated;
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte[], Free> bytes_;
  std::ptrdiff_t lead_;
  std::size_t total_;
};

std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace plait::test
