// Allocations of a node's other processes, mapped where this process's device reaches them: once, and kept until their
// owner has freed them.
//
// An allocation is known by the number that its owner's driver has given it, which is never given again. Its owner
// checks at each call some of those that it has handed on, and tells the others which are gone (DeviceExports); where
// one appears at an address that another one had, that one is gone as well.
//
// What is mapped is the process's, not a communicator's: a driver may take the handle of a new allocation for that of
// an old one which some communicator still has mapped, and give that mapping once more (CUDA counts how often a handle
// is opened). So the old one goes for all communicators before the new one is mapped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.h"
#include "tl/device_driver.h"

namespace plait::tl {

// Where another process's data lie, as that tells it: in its own addresses.
struct SharedPlace {
  std::uint64_t allocation = 0;  // 0: it has no data there
  std::uint64_t begin = 0, bytes = 0;
  std::uint64_t address = 0;
  DeviceHandle handle{};
};
static_assert(sizeof(SharedPlace) == 96);

// Of allocations that a process has freed; 0: no more of them.
using FreedAllocations = std::array<std::uint64_t, 4>;

// Tells this process from all others that the machine has had, whatever they call each other. Thread-safe.
std::uint64_t process_number();

// This process's own, as a communicator hands them on: those who were told of them are told when they are gone. Used by
// one thread at a time.
class DeviceExports {
 public:
  // Fails where the driver hands on no such memory.
  Result<SharedPlace> place_of(const DeviceDriver& driver, const std::byte* address);
  // Some that were handed on and are gone. Asks for a few at a time.
  FreedAllocations look_for_freed(const DeviceDriver& driver);

 private:
  struct Export {
    std::uint64_t allocation;
    std::uintptr_t begin;
    DeviceHandle handle;
  };
  std::vector<Export> exports_;
  std::size_t next_looked_at_ = 0;
};

// A communicator's part in what its process has mapped. Used by one thread at a time, beside others of other
// communicators. What none of them uses is unmapped at the end.
class PeerMaps {
 public:
  // Of the process; more only where all are at work.
  static constexpr std::size_t most_mapped = 512;

  PeerMaps() = default;
  ~PeerMaps() { leave(); }
  PeerMaps(const PeerMaps&) = delete;
  PeerMaps& operator=(const PeerMaps&) = delete;

  // The place in this process's addresses, until end_call(). `peer`: the number of the process that told it. `near`:
  // memory of the device that is to reach it. Fails where the driver does, and where a call of another communicator is
  // still at work on what its owner has freed.
  Result<std::byte*> find(std::uint64_t peer, const SharedPlace& place, const DeviceDriver& driver,
                          const DeviceMemory& near);
  // Nothing touches what was found any more. To be said before the owners may free it.
  void end_call() noexcept;
  // On all communicators.
  void forget(std::uint64_t peer, const FreedAllocations& freed);
  // This communicator uses none of them any more.
  void leave() noexcept;
  // Of the whole process.
  static std::size_t mapped();
};

}  // namespace plait::tl
