// Memory that the ranks of one node share while their limits are measured. Linux; it has no name.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.h"
#include "tuner/measure/session.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// One mapping of a memory file, unmapped on destruction.
class SharedMapping {
 public:
  SharedMapping() = default;
  SharedMapping(void* address, std::size_t bytes) : address_(address), bytes_(bytes) {}
  SharedMapping(SharedMapping&& other) noexcept { *this = std::move(other); }
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  ~SharedMapping();
  std::byte* data() const { return static_cast<std::byte*>(address_); }

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
};

// What the first rank's memory begins with.
struct SharedFlags {
  alignas(64) std::atomic<std::uint32_t> arrived;
  alignas(64) std::atomic<std::uint32_t> round;
  alignas(64) std::atomic<std::uint32_t> awake;  // counts up for ever
  alignas(64) std::atomic<std::uint64_t> ball;   // two ranks throw it to each other
  alignas(64) std::atomic<std::int32_t> core;    // where both of them are to be
};

// All ranks of the job must be on one node and belong to one user.
class NodeSegment {
 public:
  // Collective. Each rank gives `bytes` of memory. `unavailable` with the reason, on all ranks, where some rank cannot.
  static Result<NodeSegment> make(MpiSession& session, std::size_t bytes);

  std::byte* mine() const { return mine_.data(); }
  std::byte* neighbour() const { return neighbour_.data(); }  // the memory of the next rank, in a ring
  int neighbour_process() const { return neighbour_process_; }
  SharedFlags& flags() const { return *reinterpret_cast<SharedFlags*>(flags_.data()); }
  // A barrier in which who waits sleeps, so as to leave the machine to those who measure.
  void sleep_until_all_arrive();
  // After it, for those who start together: nobody goes on before all are awake.
  void wait_until_all_are_awake();

 private:
  int ranks_ = 0;
  std::uint32_t starts_ = 0;
  int neighbour_process_ = 0;
  SharedMapping mine_, neighbour_, flags_;
};

}  // namespace plait::tuner
