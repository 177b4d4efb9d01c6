// The moves whose rates bound a collective, over the buffers of one rank.
#pragma once

#include <cstddef>

namespace plait::tuner {

// Past the caches, and complete when it returns.
void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes);

// From the memory of another process of this user, through the kernel. False where that is forbidden.
bool pull(int process, std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace plait::tuner
