// The functions of libxpmem that Plait calls. They are found at run time, so that nothing depends on XPMEM, and so that
// the tests can put a fake in their place.
//
// XPMEM is a kernel module (github.com/hpc/xpmem): a process exports a range of its addresses as a segment, others get
// access to it and attach pieces of it to addresses of their own.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "core/status.h"

namespace plait::tl {

// xpmem_addr: where to attach.
struct XpmemAddress {
  std::int64_t access;
  off_t offset;
};

// As in xpmem.h. Numbers are -1, and pointers (void*)-1, on failure, with errno.
struct XpmemLibrary {
  std::int64_t (*make)(void* address, std::size_t bytes, int permit_type, void* permit_value) = nullptr;
  int (*remove)(std::int64_t segment) = nullptr;
  std::int64_t (*get)(std::int64_t segment, int flags, int permit_type, void* permit_value) = nullptr;
  int (*release)(std::int64_t access) = nullptr;
  void* (*attach)(XpmemAddress address, std::size_t bytes, void* wanted) = nullptr;
  int (*detach)(void* address) = nullptr;
};

// `unavailable` where the device cannot be opened for reading and writing, or the library is not there or lacks
// something. The library stays open for the life of the process.
Result<XpmemLibrary> load_xpmem(const char* library, const char* device);

// libxpmem.so.0 and /dev/xpmem, looked for at the first call. Thread-safe.
const Result<XpmemLibrary>& system_xpmem();

// This process's whole address space as a segment that the same user's processes may attach. Made at the first call,
// which names the library, for the life of the process. Thread-safe.
const Result<std::int64_t>& own_xpmem_segment(const XpmemLibrary& library);

}  // namespace plait::tl
