// What a rank says to all others when it starts a run: that its output may be written from now on, or why the run must
// not be. Beside that it may have a note for each of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "fused/layer.h"

namespace plait::fused {

// In the operator's own terms.
struct Complaint {
  std::array<std::int64_t, 5> words{};
};

struct Announcement {
  std::uint32_t run = 0;
  std::uint32_t well = 0;  // 1: there is no complaint
  Complaint complaint;
};
static_assert(std::is_trivially_copyable_v<Announcement> && sizeof(Announcement) == 48);

// The same in shared memory, where the ranks of its node read it.
struct alignas(64) PostedAnnouncement {
  std::atomic<std::uint32_t> run{0};  // written last
  std::uint32_t well = 0;
  Complaint complaint;

  void post(const Announcement& said) {
    well = said.well;
    complaint = said.complaint;
    run.store(said.run, std::memory_order_release);
  }
  // Whether it is there; `said` is it then.
  bool read(std::uint32_t of_run, Announcement& said) const {
    if (run.load(std::memory_order_acquire) != of_run) return false;
    said = {of_run, well, complaint};
    return true;
  }
};
static_assert(sizeof(PostedAnnouncement) == 64);

}  // namespace plait::fused
