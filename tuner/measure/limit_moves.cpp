#include "tuner/measure/limit_moves.h"

#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace plait::tuner {

void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<std::uint8_t> vector;
  const std::size_t step = hn::Lanes(vector);
  const std::size_t head = std::min(-reinterpret_cast<std::uintptr_t>(to) % step, bytes);
  std::memcpy(to, from, head);
  std::size_t done = head;
  for (; done + 4 * step <= bytes; done += 4 * step) {
    const auto* source = reinterpret_cast<const std::uint8_t*>(from + done);
    auto* target = reinterpret_cast<std::uint8_t*>(to + done);
    const auto a = hn::LoadU(vector, source), b = hn::LoadU(vector, source + step);
    const auto c = hn::LoadU(vector, source + 2 * step), d = hn::LoadU(vector, source + 3 * step);
    hn::Stream(a, vector, target);
    hn::Stream(b, vector, target + step);
    hn::Stream(c, vector, target + 2 * step);
    hn::Stream(d, vector, target + 3 * step);
  }
  std::memcpy(to + done, from + done, bytes - done);
  hwy::FlushStream();
}

bool pull(int process, std::byte* to, const std::byte* from, std::size_t bytes) {
  while (bytes > 0) {
    const iovec local = {to, bytes};
    const iovec remote = {const_cast<std::byte*>(from), bytes};
    const ssize_t moved = process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (moved <= 0) return false;
    to += moved;
    from += moved;
    bytes -= static_cast<std::size_t>(moved);
  }
  return true;
}

}  // namespace plait::tuner
