// Copies of contiguous memory between this process and another one through the kernel (cross-memory attach).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"

namespace plait::tl::detail {

struct RemoteProcess {
  int process = -1;
  int rank = -1;  // for messages
};

// From `address` in that process to `to`, and from `from` to `address` there. Blocks until done; one system call a few
// megabytes, and a part of a thread of the team (core/work_team.h).
Status read_remote(RemoteProcess there, std::uint64_t address, std::byte* to, std::size_t bytes);
Status write_remote(RemoteProcess there, std::uint64_t address, const std::byte* from, std::size_t bytes);

}  // namespace plait::tl::detail
