// The state of each of the program's communicators, by its handle.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plugin/mpi/communicator/communicator.h"

namespace plait::plugin {

// Once, before any other function here; and once all communicators were freed, before MPI ends.
void start_communicators();
void stop_communicators();

// Frees the state of every communicator that is still alive.
void free_all_communicators();

namespace detail {

// Communicators that this thread used lately. A handle may come to mean another communicator only after the first one's
// state was destroyed, which outdates all caches.
struct CommunicatorCache {
  struct Line {
    MPI_Comm handle;
    MpiCommunicator* communicator;
    std::uint64_t generation;
  };
  static constexpr std::size_t lines = 8;
  std::array<Line, lines> line{};
  static std::size_t index(MPI_Comm handle) {
    const auto bits = (std::uintptr_t)handle;  // a pointer or an integer, by MPI
    return (bits >> 6 ^ bits >> 10) % lines;
  }
};
extern thread_local constinit CommunicatorCache communicator_cache __attribute__((tls_model("initial-exec")));
extern constinit std::atomic<std::uint64_t> communicator_generation;

MpiCommunicator* find_communicator_slowly(MPI_Comm handle);

}  // namespace detail

// The state of a communicator, made at the first call; nullptr for MPI_COMM_NULL and for handles on which the host
// keeps no attribute: those calls are the host's. Throws where there is no memory for it. A few nanoseconds for
// communicators used lately.
inline MpiCommunicator* find_communicator(MPI_Comm handle) {
  const auto& line = detail::communicator_cache.line[detail::CommunicatorCache::index(handle)];
  if (line.handle == handle && line.generation == detail::communicator_generation.load(std::memory_order_acquire))
      [[likely]]
    return line.communicator;
  return detail::find_communicator_slowly(handle);
}

}  // namespace plait::plugin
