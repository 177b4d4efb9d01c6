// Shared-memory collectives between buffers that all members can reach.
#include <algorithm>
#include <cstring>
#include <string>

#include "core/work_team.h"
#include "tl/memory.h"
#include "tl/shm/node_collectives.h"
#include "tl/shm/stream_copy.h"

namespace plait::tl::detail {
namespace {

std::uint64_t length(const Memory& memory) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < memory.count; ++i) bytes += memory.spans[i].bytes;
  return bytes;
}

}  // namespace

NodeCollectives::Announcement NodeCollectives::own_announcement() const {
  Announcement announcement;
  const auto name = [this](const std::byte* address, const Memory& memory, std::uint64_t& name, std::uint8_t& has) {
    if (address == nullptr || buffers_ == nullptr) return;
    const auto found = buffers_->name(address, length(memory));
    has = found.has_value();
    name = found.value_or(0);
  };
  const std::byte* from = contiguous_address(current_->operand);
  const std::byte* to = contiguous_address(current_->memory);
  name(from, current_->operand, announcement.source, announcement.has_source);
  name(to, current_->memory, announcement.destination, announcement.has_destination);
  announcement.source_address = reinterpret_cast<std::uintptr_t>(from);
  announcement.destination_address = reinterpret_cast<std::uintptr_t>(to);
  announcement.has_own = collective_->takes_own;
  return announcement;
}

// Whether the step can be direct as far as this member's buffers matter.
bool NodeCollectives::allows_direct(std::size_t member, const Announcement& buffers) const {
  const bool at_root = member == root();
  switch (collective_->kind) {
    case ShmCollectiveKind::all_reduce:
      return buffers.has_source != 0 && buffers.has_destination != 0;
    case ShmCollectiveKind::reduce:
      return buffers.has_source != 0 && (!at_root || buffers.has_destination != 0);
    case ShmCollectiveKind::broadcast:
    case ShmCollectiveKind::scatter:
      return !at_root || buffers.has_source != 0;
    case ShmCollectiveKind::gather:
      return !at_root || buffers.has_destination != 0;
    case ShmCollectiveKind::reduce_scatter:
    case ShmCollectiveKind::all_gather:
    case ShmCollectiveKind::all_to_all:
      return buffers.has_source != 0;
  }
  return false;
}

// Whether the kernel can do the step: what a member gives and gets is one piece of memory.
bool NodeCollectives::allows_kernel(std::size_t member, const Announcement& buffers) const {
  const bool at_root = member == root();
  const bool gives = buffers.source_address != 0, gets = buffers.destination_address != 0;
  switch (collective_->kind) {
    case ShmCollectiveKind::reduce:
    case ShmCollectiveKind::gather:
      return gives && (!at_root || gets);
    case ShmCollectiveKind::broadcast:
    case ShmCollectiveKind::scatter:
      return at_root ? gives : gets;
    default:
      return gives && gets;
  }
}

template <class Allows>
bool NodeCollectives::all_allow(Allows&& allows) const {
  for (std::size_t member = 0; member < members(); ++member)
    if (!allows(member, announcements_[member])) return false;
  return true;
}

// Decides for the way, when all have said what their buffers are.
bool NodeCollectives::run_announced(bool& moved) {
  const auto direct = [this](std::size_t member, const Announcement& buffers) {
    return buffers_ != nullptr && allows_direct(member, buffers);
  };
  const auto by_kernel = [this](std::size_t member, const Announcement& buffers) {
    return kernel_pays() && allows_kernel(member, buffers);
  };
  if (!published_) {
    if (!slot_is_free(control_slots)) return false;
    announce();
    moved = true;
    if (!direct(me(), announcements_[me()]) && !by_kernel(me(), announcements_[me()])) {
      begin_stages();
      return run_stages(moved);
    }
  }
  if (!all_arrived([](std::size_t) { return true; })) return false;
  moved = true;
  for (std::size_t member = 0; member < members(); ++member)
    if (member != me())
      std::memcpy(&announcements_[member], control_block(member).slot(operation_).payload, sizeof(Announcement));
  if (all_allow(direct)) {
    if (!begin_work()) return false;
    ++steps_.directly;
    work_directly();
    end_work();
    if (!failure_.ok()) return false;
    leave();
    return run_leaving(moved);
  }
  if (all_allow(by_kernel)) return begin_work() && run_by_kernel(moved);
  begin_stages();
  return run_stages(moved);
}

void NodeCollectives::announce() {
  Announcement& own = announcements_[me()] = own_announcement();
  std::memcpy(control_blocks_[self_].slot(operation_).payload, &own, sizeof own);
  publish();
  published_ = true;
}

// This member has done its part.
void NodeCollectives::leave() {
  finish();
  way_ = Way::leaving;
  arrived_ = 0;
}

// The others may still read or write this member's buffers.
bool NodeCollectives::run_leaving(bool& moved) {
  for (; arrived_ < members(); ++arrived_) {
    if (arrived_ == me()) continue;
    std::uint64_t& known = finished_[locals_[arrived_]];
    known = control_block(arrived_).control().finished.load(std::memory_order_acquire);
    if (known < operation_) return false;
  }
  return moved = true;
}

// nullptr, and a failure is noted, where the system cannot map what the member announced.
std::byte* NodeCollectives::find(std::size_t member, std::uint64_t name, std::uint64_t bytes) {
  std::byte* found = buffers_->find(locals_[member], name, bytes);
  if (found == nullptr)
    note({Code::unavailable,
          "shm: a buffer of rank " + std::to_string(processes_[locals_[member]].rank) + " cannot be mapped"});
  return found;
}

const std::byte* NodeCollectives::source_of(std::size_t member, std::uint64_t offset, std::uint64_t bytes) {
  if (member == me()) return contiguous_address(current_->operand) + offset;
  return find(member, announcements_[member].source + offset, bytes);
}

std::byte* NodeCollectives::destination_of(std::size_t member, std::uint64_t offset, std::uint64_t bytes) {
  if (member == me()) return contiguous_address(current_->memory) + offset;
  return find(member, announcements_[member].destination + offset, bytes);
}

void NodeCollectives::work_directly() {
  switch (collective_->kind) {
    case ShmCollectiveKind::all_reduce:
    case ShmCollectiveKind::reduce:
    case ShmCollectiveKind::reduce_scatter:
      return reduce_directly();
    case ShmCollectiveKind::broadcast:
      return broadcast_directly();
    default:
      return move_directly();
  }
}

// Each member's share straight into all results; of a reduce_scatter its own piece.
void NodeCollectives::reduce_directly() {
  const bool pieces = collective_->kind == ShmCollectiveKind::reduce_scatter;
  const std::uint64_t begin = pieces ? piece_offset(me()) : share_offset(collective_->bytes, me());
  const std::uint64_t end = pieces ? piece_offset(me() + 1) : share_offset(collective_->bytes, me() + 1);
  if (begin == end) return;
  if (pieces && contiguous_address(current_->memory) == nullptr) {
    for (std::size_t member = 0; member < members(); ++member) sources_[member] = source_of(member, begin, end - begin);
    return by_pieces(begin, end, [&](std::uint64_t at, std::uint64_t bytes) {
      reduce_into(current_->memory, at - begin, bytes);  // which advances the sources
    });
  }
  std::size_t results = 0;
  for (std::size_t member = 0; member < members(); ++member) {
    sources_[member] = source_of(member, begin, end - begin);
    if (pieces && member == me()) results_[results++] = contiguous_address(current_->memory);
    if (collective_->kind == ShmCollectiveKind::all_reduce ||
        (collective_->kind == ShmCollectiveKind::reduce && member == root()))
      results_[results++] = destination_of(member, begin, end - begin);
  }
  by_pieces(begin, end, [&](std::uint64_t, std::uint64_t bytes) {
    reduce_sources(results, bytes, current_->past_caches);
    for (const std::byte*& source : sources_) source += bytes;
    for (std::size_t i = 0; i < results; ++i) results_[i] += bytes;
  });
}

// Where all results can be reached every member copies its share to all of them, else each fetches its own.
void NodeCollectives::broadcast_directly() {
  const bool shared_out = std::all_of(announcements_.begin(), announcements_.end(), [&](const Announcement& buffers) {
    return &buffers == &announcements_[root()] || buffers.has_destination != 0;
  });
  if (!shared_out) {
    if (is_root()) return;
    return take_straight(0, source_of(root(), 0, collective_->bytes), collective_->bytes);
  }
  const std::uint64_t begin = share_offset(collective_->bytes, me()), end = share_offset(collective_->bytes, me() + 1);
  if (begin == end) return;
  const std::byte* from = source_of(root(), begin, end - begin);
  const auto hand = [&](std::size_t member) {
    if (member != root()) copy_straight(destination_of(member, begin, end - begin), from, end - begin);
  };
  for_others(hand);
  hand(me());
}

void NodeCollectives::move_directly() {
  const std::size_t self = me();
  copy_own_piece();
  switch (collective_->kind) {
    case ShmCollectiveKind::all_gather:
      return for_others([&](std::size_t member) {
        take_straight(landing_offset(member), source_of(member, 0, piece_bytes(member)), piece_bytes(member));
      });
    case ShmCollectiveKind::gather:
      return gather_directly();
    case ShmCollectiveKind::scatter:
      if (is_root()) return;
      return take_straight(0, source_of(root(), piece_offset(self), piece_bytes(self)), piece_bytes(self));
    case ShmCollectiveKind::all_to_all:
      return for_others([&](std::size_t member) {
        take_straight(member * collective_->bytes, source_of(member, self * collective_->bytes, collective_->bytes),
                      collective_->bytes);
      });
    default:
      return;
  }
}

// Where this member's piece stands at the root, whose own may stay out of its destination.
std::uint64_t NodeCollectives::offset_at_root() const {
  const bool closed_up = announcements_[root()].has_own == 0 && me() > root();
  return piece_offset(me()) - (closed_up ? piece_bytes(root()) : 0);
}

void NodeCollectives::gather_directly() {
  const std::uint64_t bytes = piece_bytes(me());
  if (is_root() || bytes == 0) return;
  std::byte* to = destination_of(root(), offset_at_root(), bytes);
  by_pieces(0, bytes, [&](std::uint64_t at, std::uint64_t part) {
    copy_out(current_->operand, at, to + at, static_cast<std::size_t>(part));
  });
}

// These do nothing where a buffer was not found, which is a failure.
void NodeCollectives::take_straight(std::uint64_t offset, const std::byte* from, std::uint64_t bytes) {
  by_pieces(0, bytes,
            [&](std::uint64_t at, std::uint64_t part) { put(current_->memory, offset + at, from + at, part); });
}

void NodeCollectives::copy_straight(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  by_pieces(0, bytes, [&](std::uint64_t at, std::uint64_t part) {
    if (current_->past_caches)
      stream(to + at, from + at, part);
    else
      shared_copy(to + at, from + at, part);
  });
}

}  // namespace plait::tl::detail
