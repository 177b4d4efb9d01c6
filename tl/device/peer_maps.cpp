#include "tl/device/peer_maps.h"

#include <algorithm>
#include <tuple>

namespace plait::tl {
namespace {

// A question to the driver takes some hundred nanoseconds.
constexpr std::size_t looks_a_call = 4;
static_assert(looks_a_call <= std::tuple_size_v<FreedAllocations>);

}  // namespace

// ---- Own ones ----

Result<SharedPlace> DeviceExports::place_of(const DeviceDriver& driver, const std::byte* address) {
  const DeviceMemory memory = driver.memory_at(address);
  if (memory.kind != MemoryKind::device || memory.allocation == 0 || memory.bytes == 0)
    return {Code::unsupported, "device memory: an address is of no allocation"};
  SharedPlace place{.allocation = memory.allocation,
                    .begin = memory.begin,
                    .bytes = memory.bytes,
                    .address = reinterpret_cast<std::uintptr_t>(address)};
  const auto known = std::ranges::find(exports_, memory.allocation, &Export::allocation);
  if (known != exports_.end()) {
    place.handle = known->handle;
    return place;
  }
  const Result<DeviceHandle> handle = driver.share(memory);
  if (!handle.ok()) return handle.status();
  place.handle = *handle;
  exports_.push_back({memory.allocation, memory.begin, *handle});
  return place;
}

FreedAllocations DeviceExports::look_for_freed(const DeviceDriver& driver) {
  FreedAllocations freed{};
  std::size_t found = 0;
  for (std::size_t look = std::min(looks_a_call, exports_.size()); look > 0 && !exports_.empty(); --look) {
    if (next_looked_at_ >= exports_.size()) next_looked_at_ = 0;
    Export& one = exports_[next_looked_at_];
    if (driver.memory_at(reinterpret_cast<const void*>(one.begin)).allocation == one.allocation) {
      ++next_looked_at_;
      continue;
    }
    freed[found++] = one.allocation;
    one = exports_.back();
    exports_.pop_back();
  }
  return freed;
}

// ---- Others' ----

PeerMaps::~PeerMaps() {
  drop_if([](const Map&) { return true; });
}

// Where its context is gone, so is the mapping.
void PeerMaps::unmap(const Map& map) {
  const DeviceMemory memory = map.driver->memory_at(map.mapped);
  if (memory.kind == MemoryKind::device) map.driver->unmap(map.mapped, memory);
}

template <class Which>
void PeerMaps::drop_if(Which&& which) {
  std::erase_if(maps_, [&](const Map& map) {
    if (!which(map)) return false;
    unmap(map);
    return true;
  });
}

void PeerMaps::forget(std::size_t peer, const FreedAllocations& freed) {
  if (freed.front() == 0) return;
  drop_if([&](const Map& map) { return map.peer == peer && std::ranges::find(freed, map.allocation) != freed.end(); });
}

// Those of this call stay: they are fewer.
void PeerMaps::make_room() {
  static_assert(most_mapped > 2 * most_device_parties);
  if (maps_.size() < most_mapped) return;
  const auto oldest = std::ranges::min_element(maps_, {}, &Map::call);
  unmap(*oldest);
  maps_.erase(oldest);
}

Result<std::byte*> PeerMaps::find(std::size_t peer, const SharedPlace& place, const DeviceDriver& driver,
                                  const DeviceMemory& near) {
  const auto offset = [&] { return static_cast<std::ptrdiff_t>(place.address - place.begin); };
  for (Map& map : maps_)
    if (map.peer == peer && map.allocation == place.allocation && map.near.context == near.context) {
      map.call = call_;
      return map.mapped + offset();
    }
  drop_if([&](const Map& map) {  // of an allocation that is gone
    return map.peer == peer && map.allocation != place.allocation && map.begin < place.begin + place.bytes &&
           place.begin < map.begin + map.bytes;
  });
  make_room();
  const Result<std::byte*> mapped = driver.map(place.handle, near);
  if (!mapped.ok()) return mapped;
  maps_.push_back({peer, place.allocation, place.begin, place.bytes, *mapped, &driver, near, call_});
  return *mapped + offset();
}

}  // namespace plait::tl
