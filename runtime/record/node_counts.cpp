#include "runtime/record/node_counts.h"

#include <atomic>

namespace plait::runtime {
namespace {

constinit ShmCollectiveWays all_ways;
constinit std::atomic<std::uint64_t> segments_now{0}, segments_peak{0}, segment_largest{0};
constinit std::atomic<std::uint64_t> chosen_kernel{0}, chosen_mapped{0};

struct Counts {
  std::atomic<std::uint64_t> calls{0}, bytes{0};

  void add(std::size_t call_bytes) {
    calls.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(call_bytes, std::memory_order_relaxed);
  }
};
constinit Counts shared_counts, private_counts;

void raise_to(std::atomic<std::uint64_t>& most, std::uint64_t value) {
  std::uint64_t known = most.load();
  while (known < value && !most.compare_exchange_weak(known, value)) {
  }
}

}  // namespace

ShmCollectiveWays& shm_collective_ways() { return all_ways; }

void note_segment(std::uint64_t bytes) {
  raise_to(segments_peak, segments_now += bytes);
  raise_to(segment_largest, bytes);
}

void forget_segment(std::uint64_t bytes) { segments_now -= bytes; }

void note_single_copy(std::uint64_t kernel_from, std::uint64_t mapped_from) {
  raise_to(chosen_kernel, kernel_from);
  raise_to(chosen_mapped, mapped_from);
}

void note_buffers(std::size_t call_bytes, bool shared) {
  if (call_bytes >= large_call_bytes) (shared ? shared_counts : private_counts).add(call_bytes);
}

BufferCounts buffer_counts() {
  return {.shared_calls = shared_counts.calls.load(),
          .private_calls = private_counts.calls.load(),
          .shared_bytes = shared_counts.bytes.load(),
          .private_bytes = private_counts.bytes.load()};
}

NodeCounts node_counts() {
  return {.segments_peak = segments_peak.load(),
          .largest_segment = segment_largest.load(),
          .kernel_from = chosen_kernel.load(),
          .mapped_from = chosen_mapped.load()};
}

}  // namespace plait::runtime
