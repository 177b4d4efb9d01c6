#include "tl/device/peer_maps.h"

#include <unistd.h>

#include <algorithm>
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

DeviceExports::~DeviceExports() {
  for (const Export& one : exports_)
    if (is_offer(one.number)) withdraw_offer(one.number);
}

DeviceExports::Export* DeviceExports::find_allocation(const DeviceMemory& memory) {
  const auto known = std::ranges::find(exports_, memory.allocation, &Export::number);
  return known != exports_.end() ? &*known : nullptr;
}

// One that holds all of it and is as it was. Others that held it are gone.
DeviceExports::Export* DeviceExports::find_offer(const DeviceDriver& driver, std::uintptr_t address,
                                                 std::uint64_t bytes) {
  for (std::size_t at = 0; at < exports_.size();) {
    Export& one = exports_[at];
    const bool holds =
        is_offer(one.number) && address - one.begin < one.bytes && bytes <= one.bytes - (address - one.begin);
    if (holds && are_there(driver, one.pieces)) return &one;
    if (holds)
      drop(at);
    else
      ++at;
  }
  return nullptr;
}

DeviceExports::Export* DeviceExports::keep(Export made) {
  dropped_.reserve(dropped_.size() + 1);
  if (exports_.size() >= most_exports)
    drop(static_cast<std::size_t>(std::ranges::min_element(exports_, {}, &Export::use) - exports_.begin()));
  exports_.push_back(std::move(made));
  return &exports_.back();
}

void DeviceExports::drop(std::size_t at) {
  dropped_.push_back(exports_[at].number);
  if (is_offer(exports_[at].number)) withdraw_offer(exports_[at].number);
  if (at + 1 != exports_.size()) exports_[at] = std::move(exports_.back());
  exports_.pop_back();
}

Result<DeviceExports::Export*> DeviceExports::add_allocation(const DeviceDriver& driver, const DeviceMemory& memory) {
  const Result<DeviceHandle> handle = driver.share(memory);
  if (!handle.ok()) return handle.status();
  return keep({.number = memory.allocation, .begin = memory.begin, .bytes = memory.bytes, .handle = *handle});
}

// Whether the driver makes files of it is known before others are told.
Result<DeviceExports::Export*> DeviceExports::add_offer(const DeviceDriver& driver, const std::byte* address,
                                                        std::uint64_t bytes) {
  Result<std::vector<OwnPiece>> pieces = pieces_under(driver, address, bytes);
  if (!pieces.ok()) return pieces.status();
  const auto place = [](const OwnPiece& piece) { return reinterpret_cast<void*>(piece.begin); };
  for (const OwnPiece& piece : *pieces) {
    const Result<int> file = driver.share_as_file(driver.memory_at(place(piece)));
    if (!file.ok()) return file.status();
    close(*file);
  }
  const Result<std::uint64_t> number = offer_pieces(driver, *pieces);
  if (!number.ok()) return number.status();
  const std::uintptr_t begin = pieces->front().begin, end = pieces->back().begin + pieces->back().bytes;
  return keep({.number = *number, .begin = begin, .bytes = end - begin, .pieces = std::move(*pieces)});
}

Result<SharedPlace> DeviceExports::place_of(const DeviceDriver& driver, const std::byte* address, std::uint64_t bytes) {
  const DeviceMemory memory = driver.memory_at(address);
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (memory.kind != MemoryKind::device || memory.allocation == 0 || memory.bytes == 0)
    return {Code::unsupported, "device memory: an address is of no allocation"};
  Export* found = find_allocation(memory);
  if (found == nullptr) found = find_offer(driver, begin, bytes);
  if (found == nullptr) {
    const bool whole = memory.contains(address, bytes);
    Result<Export*> added = whole ? add_allocation(driver, memory) : Status(Code::unsupported, "");
    if (!added.ok()) added = add_offer(driver, address, bytes);
    if (!added.ok()) return added.status();
    found = *added;
  }
  found->use = ++uses_;
  return SharedPlace{.allocation = found->number,
                     .begin = found->begin,
                     .bytes = found->bytes,
                     .address = begin,
                     .handle = found->handle};
}

// Of an offer, piece by piece.
bool DeviceExports::is_gone(const DeviceDriver& driver, Export& one) {
  if (!is_offer(one.number)) return driver.memory_at(reinterpret_cast<const void*>(one.begin)).allocation != one.number;
  one.next_piece = (one.next_piece + 1) % one.pieces.size();
  return !is_there(driver, one.pieces[one.next_piece]);
}

// No more than can be told at once: what others are told late they map for longer than their owner has it.
FreedAllocations DeviceExports::look_for_freed(const DeviceDriver& driver) {
  const std::size_t room = looks_a_call - std::min(looks_a_call, dropped_.size());
  for (std::size_t look = std::min(room, exports_.size()); look > 0 && !exports_.empty(); --look) {
    if (next_looked_at_ >= exports_.size()) next_looked_at_ = 0;
    if (is_gone(driver, exports_[next_looked_at_]))
      drop(next_looked_at_);
    else
      ++next_looked_at_;
  }
  FreedAllocations freed{};
  for (std::size_t told = 0; told < freed.size() && !dropped_.empty(); ++told) {
    freed[told] = dropped_.back();
    dropped_.pop_back();
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
  std::vector<DevicePiece> pieces;  // of an offer; their files are closed
  std::uint64_t use = 0;            // the last one, of all
  bool freed = false;               // by its owner, while a call is at work on it
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
  if (memory.kind != MemoryKind::device || memory.allocation != map.number) return;
  if (map.pieces.empty())
    map.driver->unmap(map.mapped, memory);
  else
    map.driver->unmap_pieces(map.mapped, map.pieces, memory);
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

Result<std::byte*> map_offer(Mapping& made) {
  const Result<FetchedPieces> fetched = fetch_pieces(made.peer, made.allocation);
  if (!fetched.ok()) return fetched.status();
  std::uint64_t bytes = 0;
  for (const DevicePiece& piece : fetched->pieces()) {
    made.pieces.push_back({.file = -1, .bytes = piece.bytes});
    bytes += piece.bytes;
  }
  if (bytes != made.bytes) return {Code::unavailable, "device memory: what was offered has another size"};
  return made.driver->map_pieces(fetched->pieces(), made.near);
}

}  // namespace

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
  const bool offered = is_offer(place.allocation);
  const auto is_gone = [&](const Mapping& map) {
    return same_place(map) && map.allocation != place.allocation && !(offered && is_offer(map.allocation));
  };
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
               .pieces = {},
               .users = {}};
  note_use(mappings(), made, this);
  all.reserve(all.size() + 1);
  const Result<std::byte*> mapped = offered ? map_offer(made) : driver.map(place.handle, near);
  if (!mapped.ok()) return mapped;
  made.mapped = *mapped;
  made.number = driver.memory_at(*mapped).allocation;
  all.push_back(std::move(made));
  return *mapped + offset;
}

}  // namespace plait::tl
