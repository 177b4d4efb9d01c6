// Allocations of a node's other processes, mapped where this process's device reaches them: once, and kept until their
// owner has freed them.
//
// An allocation is known by the number that its owner's driver has given it, which is never given again. Its owner
// checks at each call some of those that it has handed on, and tells the others which are gone (DeviceExports); where
// one appears at an address that another one had, that one is gone as well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
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

// This process's own, as it hands them on. Used by one thread at a time.
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

// Used by one thread at a time; what is mapped is unmapped at the end.
class PeerMaps {
 public:
  static constexpr std::size_t most_mapped = 256;

  PeerMaps() = default;
  ~PeerMaps();
  PeerMaps(const PeerMaps&) = delete;
  PeerMaps& operator=(const PeerMaps&) = delete;

  // What was found in the call before may be unmapped from now on. Precondition: nothing touches it any more.
  void begin_call() { ++call_; }
  // The place in this process's addresses, until the next call. `near`: memory of the device that is to reach it.
  Result<std::byte*> find(std::size_t peer, const SharedPlace& place, const DeviceDriver& driver,
                          const DeviceMemory& near);
  void forget(std::size_t peer, const FreedAllocations& freed);
  std::size_t mapped() const { return maps_.size(); }

 private:
  struct Map {
    std::size_t peer;
    std::uint64_t allocation;
    std::uint64_t begin, bytes;  // in the peer's addresses
    std::byte* mapped;
    const DeviceDriver* driver;
    DeviceMemory near;
    std::uint64_t call;  // that used it last
  };
  static void unmap(const Map& map);
  template <class Which>
  void drop_if(Which&& which);
  void make_room();

  std::vector<Map> maps_;
  std::uint64_t call_ = 0;
};

}  // namespace plait::tl
