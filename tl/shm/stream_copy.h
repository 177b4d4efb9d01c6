// Copies past the caches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tl/channel.h"

namespace plait::tl::detail {

// From this many bytes on, stream_out() into a slot is faster than copy_out(). Measured on an AMD EPYC, two processes,
// slots that the reader had just drained, a core's time to write 2 / 8 / 32 KiB: ordinary stores 0.17 / 2.6 / 14 us,
// since each line is first claimed back from the reader's cache; streaming ones 0.05 / 0.18 / 0.8 us. Reading takes the
// reader about as long either way (0.34 / 1.1 / 2.1 us).
inline constexpr std::size_t stream_from = 1536;

// memcpy past the caches. Whoever sees a later release store of this thread sees all the bytes.
void stream(std::byte* to, const std::byte* from, std::size_t bytes);

// copy_out() and copy_in() past the caches. Whoever sees a later release store of this thread sees all the bytes.
void stream_out(const Memory& from, std::uint64_t offset, std::byte* to, std::size_t bytes);
void stream_in(const Memory& to, std::uint64_t offset, const std::byte* from, std::size_t bytes);

}  // namespace plait::tl::detail
