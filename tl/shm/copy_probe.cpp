#include "tl/shm/copy_probe.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "tl/memory.h"
#include "tl/shm/control_block.h"
#include "tl/shm/stream_copy.h"

namespace plait::tl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int attempts = 3;

constexpr int glances_between_yields = 1024;

// How far a rank is, at the end of its stages' memory: rounds, counted through all attempts, that lie in its stages,
// and that it has taken out of the peer's.
struct alignas(detail::cache_line) Rounds {
  std::atomic<std::uint32_t> filled;
  alignas(detail::cache_line) std::atomic<std::uint32_t> emptied;
};

// Two ranks that exchange data through their stages, as collectives do.
class InStep {
 public:
  explicit InStep(const CopyProbe& probe)
      : probe_(probe),
        stage_bytes_((probe.stages_bytes - sizeof(Rounds)) / detail::control_stages / detail::cache_line *
                     detail::cache_line),
        own_(*reinterpret_cast<Rounds*>(probe.own_stages + probe.stages_bytes - sizeof(Rounds))),
        peer_(*reinterpret_cast<const Rounds*>(probe.peer_stages + probe.stages_bytes - sizeof(Rounds))) {}

  bool lost() const { return lost_; }

  // Waits until the peer is here as well.
  void meet() {
    own_.filled.store(++round_, std::memory_order_release);
    wait_for(peer_.filled, round_);
    own_.emptied.store(round_, std::memory_order_release);
    wait_for(peer_.emptied, round_);
  }

  void exchange(std::byte* to, std::size_t bytes) {
    const std::uint32_t end = round_ + static_cast<std::uint32_t>((bytes + stage_bytes_ - 1) / stage_bytes_);
    const std::uint32_t begin = round_;
    std::uint32_t filled = begin, emptied = begin;
    const auto piece = [&](std::uint32_t round) { return std::min(stage_bytes_, bytes - offset(round - begin)); };
    while (!lost_ && (filled != end || emptied != end)) {
      if (emptied != end && detail::reached(peer_.filled.load(std::memory_order_acquire), emptied + 1)) {
        std::memcpy(to + offset(emptied - begin), probe_.peer_stages + stage(emptied), piece(emptied));
        own_.emptied.store(++emptied, std::memory_order_release);
      } else if (filled != end && has_room(filled)) {
        detail::stream(probe_.own_stages + stage(filled), probe_.source + offset(filled - begin), piece(filled));
        own_.filled.store(++filled, std::memory_order_release);
      } else if (emptied != end) {
        wait_for(peer_.filled, emptied + 1);
      } else {
        wait_for(peer_.emptied, filled + 1 - detail::control_stages);
      }
    }
    round_ = end;
  }

 private:
  std::size_t offset(std::uint32_t rounds) const { return rounds * stage_bytes_; }
  std::size_t stage(std::uint32_t round) const { return round % detail::control_stages * stage_bytes_; }
  bool has_room(std::uint32_t round) const {
    return detail::reached(peer_.emptied.load(std::memory_order_acquire), round + 1 - detail::control_stages);
  }

  void wait_for(const std::atomic<std::uint32_t>& counter, std::uint32_t wanted) {
    for (int glances = 1; !lost_ && !detail::reached(counter.load(std::memory_order_acquire), wanted); ++glances) {
      if (glances % glances_between_yields != 0) continue;
      sched_yield();
      lost_ = Clock::now() > late_;
    }
  }

  const CopyProbe& probe_;
  const Clock::time_point late_ = Clock::now() + probe_.patience;
  const std::size_t stage_bytes_;
  Rounds& own_;
  const Rounds& peer_;
  std::uint32_t round_ = 0;
  bool lost_ = false;
};

template <class Copy>
double least_seconds(InStep& ranks, Copy&& copy) {
  double least = 1;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    ranks.meet();
    const Clock::time_point begin = Clock::now();
    copy();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

}  // namespace

std::uint64_t faster_from(const CopyCosts& way, const CopyCosts& other, double times) {
  std::uint64_t from = never;
  for (std::size_t i = probed_bytes.size(); i-- > 0 && way[i] * times < other[i];) from = probed_bytes[i];
  return from;
}

Result<MeasuredCopies> measure_copies(const CopyProbe& probe) {
  std::vector<std::byte> destination(probed_bytes.back());
  InStep ranks(probe);
  MeasuredCopies costs;
  Status failure;
  for (std::size_t i = 0; i < probed_bytes.size(); ++i) {
    const std::size_t bytes = probed_bytes[i];
    costs.staged[i] = least_seconds(ranks, [&] { ranks.exchange(destination.data(), bytes); });
    if (probe.kernel)
      costs.kernel[i] = least_seconds(ranks, [&] {
        const Status read = detail::read_remote(probe.peer, probe.peer_source, destination.data(), bytes);
        if (!read.ok()) failure = read;
      });
    if (probe.peer_mapped != nullptr)
      costs.mapped[i] = least_seconds(ranks, [&] { std::memcpy(destination.data(), probe.peer_mapped, bytes); });
  }
  if (!failure.ok()) return failure;
  return ranks.lost() ? MeasuredCopies{} : costs;
}

}  // namespace plait::tl
