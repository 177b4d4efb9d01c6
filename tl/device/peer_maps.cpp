#include "tl/device/peer_maps.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/immortal.h"

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

namespace {

struct Mapping {
  std::uint64_t peer = 0, allocation = 0;
  std::uint64_t begin = 0, bytes = 0;  // in the peer's addresses
  std::byte* mapped = nullptr;
  std::uint64_t number = 0;  // that this process's driver has given the mapping
  const DeviceDriver* driver = nullptr;
  DeviceMemory near;
  std::uint64_t use = 0;  // the last one, of all
  bool freed = false;     // by its owner, while a call is at work on it
  struct User {
    const PeerMaps* maps;
    bool at_work;
  };
  std::vector<User> users;

  bool at_work() const { return std::ranges::any_of(users, &User::at_work); }
  bool overlaps(std::uint64_t from, std::uint64_t to) const { return begin < to && from < begin + bytes; }
};

// Never destroyed: communicators may be freed later than this library's data.
struct Mappings {
  std::mutex guard;
  std::vector<Mapping> all;  // in no order
  std::uint64_t uses = 0;
};
Mappings& mappings() {
  static Immortal<Mappings> made;
  return *made;
}

// Where its context is gone, so is the mapping, and its address may be another one's.
void unmap(const Mapping& map) {
  const DeviceMemory memory = map.driver->memory_at(map.mapped);
  if (memory.kind == MemoryKind::device && memory.allocation == map.number) map.driver->unmap(map.mapped, memory);
}

// Those at work later, when the call is over.
template <class Which>
void drop_if(Mappings& mappings, Which&& which) {
  std::erase_if(mappings.all, [&](Mapping& map) {
    if (!which(map)) return false;
    map.freed = true;
    if (map.at_work()) return false;
    unmap(map);
    return true;
  });
}

void make_room(Mappings& mappings) {
  if (mappings.all.size() < PeerMaps::most_mapped) return;
  const Mapping* oldest = nullptr;
  for (const Mapping& map : mappings.all)
    if (!map.at_work() && (oldest == nullptr || map.use < oldest->use)) oldest = &map;
  if (oldest != nullptr) drop_if(mappings, [=](const Mapping& map) { return &map == oldest; });
}

void note_use(Mappings& mappings, Mapping& map, const PeerMaps* maps) {
  const auto known = std::ranges::find(map.users, maps, &Mapping::User::maps);
  if (known == map.users.end())
    map.users.push_back({maps, true});
  else
    known->at_work = true;
  map.use = ++mappings.uses;
}

}  // namespace

std::uint64_t process_number() {
  static pid_t process = 0;
  static std::uint64_t number = 0;
  const std::scoped_lock lock(mappings().guard);
  if (process != getpid()) {
    std::uint64_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof drawn))
      drawn = static_cast<std::uint64_t>(getpid()) << 40 ^
              static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    number = drawn;
    process = getpid();
  }
  return number;
}

std::size_t PeerMaps::mapped() {
  const std::scoped_lock lock(mappings().guard);
  return mappings().all.size();
}

void PeerMaps::leave() noexcept {
  const std::scoped_lock lock(mappings().guard);
  drop_if(mappings(), [this](Mapping& map) {
    const bool used = std::erase_if(map.users, [this](const Mapping::User& user) { return user.maps == this; }) != 0;
    return used && (map.freed || map.users.empty());
  });
}

void PeerMaps::end_call() noexcept {
  const std::scoped_lock lock(mappings().guard);
  drop_if(mappings(), [this](Mapping& map) {
    for (Mapping::User& user : map.users)
      if (user.maps == this) user.at_work = false;
    return map.freed;
  });
}

void PeerMaps::forget(std::uint64_t peer, const FreedAllocations& freed) {
  if (freed.front() == 0) return;
  const std::scoped_lock lock(mappings().guard);
  drop_if(mappings(), [&](const Mapping& map) {
    return map.peer == peer && std::ranges::find(freed, map.allocation) != freed.end();
  });
}

Result<std::byte*> PeerMaps::find(std::uint64_t peer, const SharedPlace& place, const DeviceDriver& driver,
                                  const DeviceMemory& near) {
  const std::scoped_lock lock(mappings().guard);
  const auto offset = static_cast<std::ptrdiff_t>(place.address - place.begin);
  std::vector<Mapping>& all = mappings().all;
  const auto same_place = [&](const Mapping& map) {
    return map.peer == peer && map.overlaps(place.begin, place.begin + place.bytes);
  };
  for (Mapping& map : all)
    if (same_place(map) && map.allocation == place.allocation && !map.freed && map.near.context == near.context) {
      note_use(mappings(), map, this);
      return map.mapped + offset;
    }
  const auto is_gone = [&](const Mapping& map) { return same_place(map) && map.allocation != place.allocation; };
  drop_if(mappings(), is_gone);
  if (std::ranges::any_of(all, is_gone))
    return {Code::unavailable, "device memory: a call is still at work on what a process has freed"};
  make_room(mappings());
  // What needs memory first: what is mapped is kept in any case.
  Mapping made{.peer = peer,
               .allocation = place.allocation,
               .begin = place.begin,
               .bytes = place.bytes,
               .driver = &driver,
               .near = near,
               .users = {}};
  note_use(mappings(), made, this);
  all.reserve(all.size() + 1);
  const Result<std::byte*> mapped = driver.map(place.handle, near);
  if (!mapped.ok()) return mapped;
  made.mapped = *mapped;
  made.number = driver.memory_at(*mapped).allocation;
  all.push_back(std::move(made));
  return *mapped + offset;
}

}  // namespace plait::tl
