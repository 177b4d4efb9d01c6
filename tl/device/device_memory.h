// Memory that the processor must not touch: that of a GPU. Who may be given an address of such memory asks here, and
// moves the data by the driver that the memory belongs to. Nothing above this knows whose driver that is.
//
// Where no driver is loaded, an answer takes about a nanosecond: a look whether a library was loaded since the last
// look for drivers (library_watch.h), or, where that cannot be seen, a few compares and a look at the system's clock,
// with whose ticks drivers are looked for: one that is loaded takes many times longer to give out its first memory.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tl/device_driver.h"

namespace plait::tl {

// Which memory is the processor's for good: the program's own data and the heap. At the start, and again whenever it is
// likely that libraries were loaded.
void start_device_memory();

namespace detail {

struct AddressRange {
  std::uintptr_t begin = 0, bytes = 0;
  bool contains(const void* address) const { return reinterpret_cast<std::uintptr_t>(address) - begin < bytes; }
};
extern constinit AddressRange program_data;
extern constinit std::uintptr_t heap_begin;  // of brk()'s; 0: not known
// Where the C library keeps the end of that heap (a word that it exports). sbrk() would say it as well, but where
// another library has put a function of its own in that one's place (UCX's memory hooks, so in all that is linked with
// MPICH) that takes a system call, 0.4 us. nullptr: not known.
extern constinit const std::uintptr_t* heap_end;
extern thread_local constinit AddressRange own_stack __attribute__((tls_model("initial-exec")));

// Of libraries loaded: how many there were when there was no driver among them, and where the number stands now. Never
// the same where either is not known, or there is a driver.
extern std::atomic<std::uint64_t> loaded_without_driver;
extern std::atomic<const std::atomic<std::uint64_t>*> loaded;

const DeviceDriver* device_of_other(const void* address);

}  // namespace detail

// Whether there can be no driver in the process.
inline bool surely_no_driver() {
  return detail::loaded.load(std::memory_order_relaxed)->load(std::memory_order_relaxed) ==
         detail::loaded_without_driver.load(std::memory_order_relaxed);
}

// Whether it is plain from the address alone that the memory is the processor's: what most calls are made with.
inline bool is_processors(const void* address) {
  if (detail::program_data.contains(address) || detail::own_stack.contains(address)) return true;
  if (detail::heap_begin == 0) return false;
  // Other threads may move it meanwhile.
  const std::uintptr_t end = detail::heap_end != nullptr ? __atomic_load_n(detail::heap_end, __ATOMIC_RELAXED)
                                                         : reinterpret_cast<std::uintptr_t>(sbrk(0));
  return reinterpret_cast<std::uintptr_t>(address) - detail::heap_begin < end - detail::heap_begin;
}

// The driver of the memory at an address; nullptr: it is the processor's.
inline const DeviceDriver* device_of(const void* address) {
  return surely_no_driver() || is_processors(address) ? nullptr : detail::device_of_other(address);
}

// Whether a driver was found in the process so far.
bool has_device_driver();
// The same, after a look for one.
bool look_for_device_driver();

}  // namespace plait::tl
