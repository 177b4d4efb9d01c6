// Spreads MPI's handles, which are pointers or integers.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace plait::plugin {

// Below 256.
inline std::size_t hash_handle(MPI_Datatype handle) {
  const auto bits = (std::uint64_t)(std::uintptr_t)handle;
  return static_cast<std::size_t>((bits * 0x9E3779B97F4A7C15u) >> 56);
}

}  // namespace plait::plugin
