// Whether a communicator's calls are tried between the devices of its ranks (tl/device/device_collective.h): all of
// them are on one node and have a device's driver. Where each rank's data lie is its own affair, so that the ranks tell
// each other first, in each call that is tried. Where that was in vain several times in a row, calls are tried less
// often: all ranks have heard the same, and make the same calls, so that they do so alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plan/model/schedule.h"
#include "runtime/layer.h"
#include "tl/device/device_collective.h"

namespace plait::runtime {

class DeviceCalls {
 public:
  // Data of a rank, in bytes, from which on calls are tried. Shorter ones fit the words of the processors, which take
  // less than a device needs to begin.
  static constexpr std::size_t usual_from = std::size_t{64} << 10;
  // The same where ranks share a device. Processes have it by turns of 140 us (an H200), and staging uses copy engines.
  static constexpr std::size_t usual_shared_from = std::size_t{1} << 20;

  // `from`: 0: the built-in sizes.
  void allow(std::size_t from) {
    from_ = from != 0 ? from : usual_from;
    shared_from_ = from != 0 ? from : usual_shared_from;
    collective_ = std::make_unique<tl::DeviceCollective>();
  }

  bool allowed() const { return collective_ != nullptr; }
  // Whether this call is tried. Asked once a call, on all ranks.
  bool is_due(ShmCollectiveKind kind, std::uint64_t bytes) {
    if (bytes < from_) return false;
    Habit& habit = habits_[static_cast<std::size_t>(kind)];
    if (habit.skip == 0) return true;
    --habit.skip;
    return false;
  }
  // What became of one that was tried.
  void note(ShmCollectiveKind kind, tl::DeviceCollective::Outcome outcome) {
    Habit& habit = habits_[static_cast<std::size_t>(kind)];
    if (outcome == tl::DeviceCollective::Outcome::done) {
      habit = {};
    } else {
      habit.misses = habit.misses < most_misses ? habit.misses + 1 : habit.misses;
      habit.skip = (1u << habit.misses) - 2;
    }
    refused_ = refused_ || outcome == tl::DeviceCollective::Outcome::refused;
    if (refused_) from_ = ~std::size_t{0};
  }

  std::size_t shared_from() const { return shared_from_; }
  // Precondition: allowed().
  tl::DeviceCollective& collective() { return *collective_; }

 private:
  static constexpr unsigned most_misses = 6;
  struct Habit {
    unsigned misses = 0, skip = 0;  // calls
  };

  std::size_t from_ = ~std::size_t{0}, shared_from_ = 0;
  bool refused_ = false;
  std::array<Habit, static_cast<std::size_t>(ShmCollectiveKind::all_to_all) + 1> habits_{};
  std::unique_ptr<tl::DeviceCollective> collective_;  // nullptr: none is tried
};

}  // namespace plait::runtime
