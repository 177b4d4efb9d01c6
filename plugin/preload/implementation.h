// What libplait.so and an implementation of it for one MPI library (libplait-openmpi.so, libplait-mpich.so) tell each
// other. No mpi.h: libplait.so has none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plugin/preload/functions.h"

namespace plait::plugin::preload {

enum class Function : std::uint8_t {
#define PLAIT_ENUMERATOR(Name, name, parameters, arguments) Name,
  PLAIT_INTERPOSED(PLAIT_ENUMERATOR)
#undef PLAIT_ENUMERATOR
#define PLAIT_ENUMERATOR(Name, name, parameters, arguments) I##name, Name##_init,
      PLAIT_COLLECTIVES(PLAIT_ENUMERATOR)
#undef PLAIT_ENUMERATOR
          count_,
};
inline constexpr std::size_t function_count = static_cast<std::size_t>(Function::count_);

// Functions that have a second pair of names, MPIX_X and PMPIX_X.
inline constexpr auto extended = std::to_array<Function>({
#define PLAIT_ENUMERATOR(Name, name, parameters, arguments) Function::Name##_init,
    PLAIT_COLLECTIVES(PLAIT_ENUMERATOR)
#undef PLAIT_ENUMERATOR
});

enum class ApiFunction : std::uint8_t {
#define PLAIT_ENUMERATOR(name) name,
  PLAIT_API_FUNCTIONS(PLAIT_ENUMERATOR)
#undef PLAIT_ENUMERATOR
      count_,
};
inline constexpr std::size_t api_function_count = static_cast<std::size_t>(ApiFunction::count_);

// Where calls go to: functions of the types that the exported names have.
struct Entries {
  struct Names {
    void* mpi;   // MPI_X
    void* pmpi;  // PMPI_X
  };
  std::array<Names, function_count> functions{};
  std::array<Names, extended.size()> extensions{};  // the same as the functions
  std::array<void*, api_function_count> api{};
};

inline void name_extensions(Entries& entries) {
  for (std::size_t i = 0; i < extended.size(); ++i)
    entries.extensions[i] = entries.functions[static_cast<std::size_t>(extended[i])];
}

// Blocks of memory that the process's allocator may hand out for large requests, all within one range of addresses. The
// functions are thread-safe and never removed.
struct BlockSource {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  void* (*allocate)(std::size_t bytes, std::size_t alignment) = nullptr;  // nullptr: no room, or a child of fork()
  void* (*allocate_zeroed)(std::size_t bytes) = nullptr;                  // likewise
  bool (*resize)(void* block, std::size_t bytes) = nullptr;  // where it stands; false: no room, nothing done
  void (*release)(void* block) = nullptr;                    // keeps errno
  std::size_t (*usable_size)(const void* block) = nullptr;   // 0: no block starts there

  // What the program's own calls of the system do to addresses in the range. Precondition of all: part of what they are
  // given lies in it. Those with a result return false where the system's answer is right.
  void (*mapped_over)(void* address, std::size_t bytes) = nullptr;         // something else lies there now
  bool (*owns_any)(const void* address, std::size_t bytes) = nullptr;      // some of it is the source's memory
  bool (*unmap)(void* address, std::size_t bytes, int& result) = nullptr;  // munmap()
  bool (*drop)(void* address, std::size_t bytes, int advice, int& result) = nullptr;  // madvise(): reads as zeros
};

// What libplait.so gives: what lies behind it in the process, and its allocator.
struct Surroundings {
  std::array<void*, function_count> host{};   // the MPI library's PMPI_X, or PMPIX_X; nullptr: it has none
  std::array<void*, function_count> tools{};  // MPI_X of a PMPI tool behind libplait.so; nullptr: there is none
  // From now on blocks within the source's range that come to free() and realloc() are its own. Once.
  void (*know_blocks)(const BlockSource& source) = nullptr;
  // From now on large requests are given the source's blocks. false, and nothing done: the program has an allocator of
  // its own, before or behind libplait.so.
  bool (*share_allocations)() = nullptr;
  // As pthread_atfork(), once: around the fork itself, inside the handlers of all other libraries.
  int (*handle_fork)(void (*prepare)(), void (*parent)(), void (*child)()) = nullptr;
};

// What an implementation exports. Called before every other function of it, possibly by several threads with the same
// surroundings. `version` and `bytes` are those of the caller: false, and nothing done, where they are not the
// implementation's own.
using Attach = bool (*)(const char* version, std::size_t bytes, const Surroundings& surroundings, Entries& entries);
inline constexpr const char* attach_name = "plait_attach";
inline constexpr std::size_t interface_bytes = sizeof(Surroundings) + sizeof(Entries) + sizeof(BlockSource);

}  // namespace plait::plugin::preload
