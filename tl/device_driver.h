// The driver of a vendor's devices, as far as their memory is concerned.
#pragma once

#include <cstddef>

#include "core/status.h"

namespace plait::tl {

// One vendor's. Thread-safe; never destroyed once it was found.
class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;
  virtual const char* name() const = 0;
  // Whether the address lies in memory of a device that the processor must not touch. Memory that both may touch,
  // pinned or managed, is no such memory. An address may come to mean other memory: the answer is the driver's of this
  // moment.
  virtual bool owns(const void* address) const = 0;
  // Between memory of any kinds, from any thread; complete when it returns.
  virtual Status copy(void* to, const void* from, std::size_t bytes) const = 0;
};

}  // namespace plait::tl
