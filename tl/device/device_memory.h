// Memory that the processor must not touch: that of a GPU. Who may be given an address of such memory asks here, and
// moves the data by the driver that the memory belongs to. Nothing above this knows whose driver that is.
//
// Where no driver is loaded, an answer takes no more than a few nanoseconds. A program may load one at any time, so
// that it is looked for at the start, and later when the system's clock has ticked since the last look: a driver takes
// many times longer to give out its first memory.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "tl/device_driver.h"

namespace plait::tl {

// Which memory is the processor's for good: the program's own data and the heap. Once, at the start.
void start_device_memory();

namespace detail {

struct AddressRange {
  std::uintptr_t begin = 0, bytes = 0;
  bool contains(const void* address) const { return reinterpret_cast<std::uintptr_t>(address) - begin < bytes; }
};
extern constinit AddressRange program_data;
extern constinit std::uintptr_t heap_begin;  // of brk()'s; 0: not known
extern thread_local constinit AddressRange own_stack __attribute__((tls_model("initial-exec")));

const DeviceDriver* device_of_other(const void* address);

}  // namespace detail

// Whether it is plain from the address alone that the memory is the processor's: what most calls are made with.
inline bool is_processors(const void* address) {
  if (detail::program_data.contains(address) || detail::own_stack.contains(address)) return true;
  const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(address) - detail::heap_begin;
  return detail::heap_begin != 0 && place < reinterpret_cast<std::uintptr_t>(sbrk(0)) - detail::heap_begin;
}

// The driver of the memory at an address; nullptr: it is the processor's.
inline const DeviceDriver* device_of(const void* address) {
  return is_processors(address) ? nullptr : detail::device_of_other(address);
}

// Whether a driver was found in the process so far.
bool has_device_driver();

}  // namespace plait::tl
