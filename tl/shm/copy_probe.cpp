#include "tl/shm/copy_probe.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "tl/shm/stream_copy.h"

namespace plait::tl {
namespace {

constexpr int attempts = 3;

// A way that wins by less in this comparison loses elsewhere: the ranks wait for each other once more.
constexpr double clear_margin = 1.25;

template <class Copy>
double least_seconds(Copy&& copy) {
  using Clock = std::chrono::steady_clock;
  double least = 1;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const Clock::time_point begin = Clock::now();
    copy();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

// What each member does for every byte that crosses in stages: one into its own, one out of the peer's.
void copy_staged(const CopyProbe& probe, std::byte* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes; done += probe.stage_bytes) {
    const std::size_t piece = std::min(probe.stage_bytes, bytes - done);
    detail::stream(probe.own_stage, probe.source + done, piece);
    std::memcpy(to + done, probe.peer_stage, piece);
  }
}

}  // namespace

std::uint64_t faster_from(const CopyCosts& way, const CopyCosts& other) {
  std::uint64_t from = never;
  for (std::size_t i = probed_bytes.size(); i-- > 0 && way[i] * clear_margin < other[i];) from = probed_bytes[i];
  return from;
}

Result<MeasuredCopies> measure_copies(const CopyProbe& probe) {
  std::vector<std::byte> destination(probed_bytes.back());
  MeasuredCopies costs;
  Status failure;
  for (std::size_t i = 0; i < probed_bytes.size(); ++i) {
    const std::size_t bytes = probed_bytes[i];
    costs.staged[i] = least_seconds([&] { copy_staged(probe, destination.data(), bytes); });
    if (probe.kernel)
      costs.kernel[i] = least_seconds([&] {
        const Status read = detail::read_remote(probe.peer, probe.peer_source, destination.data(), bytes);
        if (!read.ok()) failure = read;
      });
    if (probe.peer_mapped != nullptr)
      costs.mapped[i] = least_seconds([&] { std::memcpy(destination.data(), probe.peer_mapped, bytes); });
  }
  if (!failure.ok()) return failure;
  return costs;
}

}  // namespace plait::tl
