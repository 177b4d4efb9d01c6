// Allocations of a node's other processes, mapped where this process's device reaches them: once, and kept until their
// owner has freed them.
//
// An allocation is known by the number that its owner's driver has given it, which is never given again. Its owner
// checks at each call some of those that it has handed on, and tells the others which are gone (DeviceExports); where
// one appears at an address that another one had, that one is gone as well.
//
// What is mapped is the process's, not a communicator's: a driver may take the handle of a new allocation for that of
// an old one which some communicator still has mapped, and give that mapping once more (CUDA counts how often a handle
// is opened). So the old one goes for all communicators before the new one is mapped. What is mapped by files is never
// another one: an offer's pieces may overlap those of others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.h"
#include "tl/device/device_pieces.h"
#include "tl/device/piece_service.h"
#include "tl/device/process_number.h"
#include "tl/device_driver.h"

namespace plait::tl {

// Where another process's data lie, as that tells it: in its own addresses.
struct SharedPlace {
  std::uint64_t allocation = 0;  // its number, or that of an offer (is_offer()); 0: it has no data there
  std::uint64_t begin = 0, bytes = 0;
  std::uint64_t address = 0;
  DeviceHandle handle{};
};
static_assert(sizeof(SharedPlace) == 96);

// Of allocations that a process has freed; 0: no more of them.
using FreedAllocations = std::array<std::uint64_t, 4>;

// This process's own, as a communicator hands them on: those who were told of them are told when they are gone. What no
// handle leads to, as it is mapped in pieces, is offered instead (tl/device/piece_service.h): its number is the offer's
// then. Used by one thread at a time.
class DeviceExports {
 public:
  // More than that, and those that were used longest ago are told as if they were gone.
  static constexpr std::size_t most_exports = 512;

  DeviceExports() = default;
  ~DeviceExports();
  DeviceExports(const DeviceExports&) = delete;
  DeviceExports& operator=(const DeviceExports&) = delete;

  // Where so many bytes lie. Fails where the driver hands on no such memory.
  Result<SharedPlace> place_of(const DeviceDriver& driver, const std::byte* address, std::uint64_t bytes);
  // Some that were handed on and are gone. Asks for a few at a time.
  FreedAllocations look_for_freed(const DeviceDriver& driver);
  std::size_t exported() const { return exports_.size(); }

 private:
  struct Export {
    std::uint64_t number = 0;  // of the allocation, or the offer
    std::uintptr_t begin = 0;
    std::uint64_t bytes = 0;
    DeviceHandle handle{};
    std::vector<OwnPiece> pieces = {};  // of an offer
    std::uint64_t use = 0;              // the last one, of all
    std::size_t next_piece = 0;         // that is looked at
  };

  Export* find_allocation(const DeviceMemory& memory);
  Export* find_offer(const DeviceDriver& driver, std::uintptr_t address, std::uint64_t bytes);
  Result<Export*> add_allocation(const DeviceDriver& driver, const DeviceMemory& memory);
  Result<Export*> add_offer(const DeviceDriver& driver, const std::byte* address, std::uint64_t bytes);
  Export* keep(Export made);
  void drop(std::size_t at);
  static bool is_gone(const DeviceDriver& driver, Export& one);

  std::vector<Export> exports_;
  std::vector<std::uint64_t> dropped_;  // not told yet
  std::uint64_t uses_ = 0;
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
