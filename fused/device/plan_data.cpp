#include "fused/device/plan_data.h"

#include <utility>

#include "core/attempt.h"
#include "tl/device/device_pieces.h"
#include "tl/shm/shared_heap.h"

namespace plait::fused {

// ---- Where they lie ----

std::byte* DataSurvey::see(const Piece& piece) {
  const DeviceDriver* driver = device_of(piece.address);
  seen_ = true;
  if (driver == nullptr) {
    alike_ = false;
    return piece.address;
  }
  const DeviceMemory memory = driver->memory_at(piece.address);
  const bool fits = memory.kind == MemoryKind::device && lies_whole(*driver, memory, piece.address, piece.bytes) &&
                    reinterpret_cast<std::uintptr_t>(piece.address) % piece.unit == 0;
  if (!any_) ground_ = {driver, memory};
  alike_ = alike_ && fits && ground_.driver == driver && ground_.memory.context == memory.context;
  any_ = true;
  return piece.address;
}

// ---- Copies of what a plan is made of ----

void DataMirrors::Release::operator()(std::byte* memory) const {
  if (shared)
    SharedHeap::release(memory);
  else
    ::operator delete(memory);
}

std::byte* DataMirrors::see(const Piece& piece) {
  const DeviceDriver* driver = device_of(piece.address);
  if (driver == nullptr) return piece.address;
  SharedHeap* heap = piece.way != DataWay::given ? SharedHeap::instance() : nullptr;
  void* made = heap != nullptr ? heap->allocate(piece.bytes) : nullptr;
  const Release release{.shared = made != nullptr};
  if (made == nullptr) made = ::operator new(piece.bytes);
  std::unique_ptr<std::byte, Release> copy(static_cast<std::byte*>(made), release);
  std::byte* place = copy.get();
  mirrors_.push_back({piece.address, std::move(copy), piece.bytes, piece.way, driver});
  return place;
}

Status DataMirrors::copy_in() {
  for (const Mirror& one : mirrors_)
    if (one.way != DataWay::taken)
      if (Status status = one.driver->copy(one.copy.get(), one.original, one.bytes); !status.ok()) return status;
  return {};
}

Status DataMirrors::copy_out() {
  for (const Mirror& one : mirrors_)
    if (one.way != DataWay::given)
      if (Status status = one.driver->copy(one.original, one.copy.get(), one.bytes); !status.ok()) return status;
  return {};
}

// ---- What a run is given ----

Status check_given_bytes(std::size_t bytes) {
  if (bytes <= most_given_bytes) return {};
  return {Code::invalid, "a run is given more numbers than any memory has"};
}

const std::byte* BroughtData::bring_bytes(const std::byte* place, std::size_t bytes) {
  const DeviceDriver* driver = device_of(place);
  if (driver == nullptr) return place;
  const std::byte* copy = nullptr;
  const Status copied = attempt([&]() -> Status {
    if (Status status = check_given_bytes(bytes); !status.ok()) return status;
    if (next_ == copies_.size()) copies_.emplace_back();
    std::byte* into = copies_[next_].reserve(bytes);
    ++next_;
    if (Status status = driver->copy(into, place, bytes); !status.ok()) return status;
    copy = into;
    return {};
  });
  if (status_.ok()) status_ = copied;
  return copied.ok() ? copy : nullptr;
}

}  // namespace plait::fused
