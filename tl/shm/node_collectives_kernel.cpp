// Shared-memory collectives between private buffers, of which the kernel copies what a member needs (cross-memory
// attach).
#include <algorithm>
#include <cstring>

#include "core/work_team.h"
#include "tl/memory.h"
#include "tl/shm/kernel_copy.h"
#include "tl/shm/node_collectives.h"

namespace plait::tl::detail {
namespace {

// What a thread reduces at a time: all members' pieces together stay in its second-level cache.
constexpr std::size_t reduced_together = 256 * 1024;
constexpr std::size_t least_reduced = 16 * 1024;

// Of a member's data, by one thread. A look reads a line of each member, which nobody writes.
constexpr std::uint64_t worked_between_looks = 1024 * 1024;

}  // namespace

bool goes_by_shares(const BoundShmCollective& collective) {
  return collective.kind == ShmCollectiveKind::all_reduce ||
         (collective.kind == ShmCollectiveKind::broadcast && collective.members.size() > 2);
}

// What is compared with the measured size of a copy: a piece, or a member's share of a vector. It counts half where the
// ranks wait for each other between two copies, or reduce what was fetched first, and a broadcast counts whole, whose
// stages the root fills before anybody reads. Measured by plait bench, 2 ranks, us in stages and by the kernel:
// broadcast of 32 KiB 2.8 and 2.8, of 64 KiB 9.0 and 4.4; reduce of 48 KiB 5.9 and 6.1, of 64 KiB 12 and 8.9;
// all_reduce of 64 KiB 16.5 and 17, of 96 KiB 21 and 23.
//
// With several ranks, a core each, it is another matter: who has the kernel read what others have it read at the same
// time is held up, and long stages are worth more where all fill and read them at once. What each reads alone is pairs'
// data, of which every rank has as many as there are ranks. 16 ranks with a core each (Xeon, 2 MiB of second-level
// cache), us: broadcast of 64 KiB / 256 KiB / 1 MiB / 4 MiB all from the root 106 / 405 / 1556 / 5496, by shares 54 /
// 111 / 382 / 1189, in stages of 16 KiB 17 / 69 / 276 / 1223, in stages of 128 KiB 13 / - / 190 / 764; all_reduce of 1
// MiB / 4 MiB by the kernel 484 / 1805, in short stages 637 / 2753, in long ones 354 / 1595; all_to_all of 8 / 16 / 32
// KiB a pair by the kernel 36 / 50 / 92, in stages 59 / 122 / 235.
std::uint64_t copied_together(const BoundShmCollective& collective, const CopyingRanks& ranks) {
  const std::uint64_t members = collective.members.size();
  const bool in_long_stages = ranks.roomy && !ranks.crowded && members > 2;
  switch (collective.kind) {
    case ShmCollectiveKind::broadcast:
      if (!goes_by_shares(collective)) return collective.bytes;
      return collective.bytes / members / (in_long_stages ? 16 : 4);
    case ShmCollectiveKind::reduce:
      return collective.bytes / members;
    case ShmCollectiveKind::all_reduce:
      return collective.bytes / members / (in_long_stages ? 8 : 2);
    case ShmCollectiveKind::reduce_scatter:
      return longest_piece(collective) / 2;
    case ShmCollectiveKind::all_to_all:
      return ranks.crowded ? collective.bytes : collective.bytes * members / 2;
    default:
      return longest_piece(collective);
  }
}

// What several members read stays in a core's cache in the stage, which counts where they share the core: 16 ranks on 2
// cores, all_reduce of 64 KiB / 256 KiB / 1 MiB in stages 0.34 / 1.5 / 8.1 ms, by the kernel 0.80 / 2.1 / 9.2;
// broadcast 65 / 219 / 1446 us, 121 / 375 / 2193. What each reads alone does not: all_to_all of 64 KiB 6.3 ms, 3.7.
bool NodeCollectives::kernel_pays() const {
  const CopyingRanks ranks{.crowded = crowded_, .roomy = shape_.stage_bytes >= largest_stage};
  const bool moves_pair = members() == 2 && !has_reduction();
  if (copied_together(*collective_, ranks) < (moves_pair ? pair_from_ : kernel_from_)) return false;
  const bool read_by_all = collective_->kind == ShmCollectiveKind::all_reduce ||
                           collective_->kind == ShmCollectiveKind::broadcast ||
                           collective_->kind == ShmCollectiveKind::all_gather;
  return !crowded_ || !read_by_all;
}

// Of a piece between a root and one other, what the root copies: with several others it has no time for it.
std::uint64_t NodeCollectives::root_share(std::uint64_t piece) const {
  return members() == 2 ? piece / 2 / cache_line * cache_line : 0;
}

void NodeCollectives::note(Status status) {
  if (failure_.ok()) failure_ = std::move(status);
}

// Whole elements, and whole cache lines.
std::uint64_t NodeCollectives::bytes_between_looks() const {
  const std::uint64_t unit = std::max<std::uint64_t>(current_->element_bytes, 1) * cache_line;
  const std::uint64_t most = worked_between_looks * static_cast<std::uint64_t>(own_threads());
  return std::max(most / unit, std::uint64_t{1}) * unit;
}

void NodeCollectives::fetch(std::size_t member, std::uint64_t offset, std::byte* to, std::uint64_t bytes) {
  const std::uint64_t from = announcements_[member].source_address + offset;
  by_pieces(0, bytes, [&](std::uint64_t at, std::uint64_t part) {
    note(read_remote(processes_[locals_[member]], from + at, to + at, part));
  });
}

void NodeCollectives::deliver(std::size_t member, std::uint64_t offset, const std::byte* from, std::uint64_t bytes) {
  const std::uint64_t to = announcements_[member].destination_address + offset;
  by_pieces(0, bytes, [&](std::uint64_t at, std::uint64_t part) {
    note(write_remote(processes_[locals_[member]], to + at, from + at, part));
  });
}

// By shares it goes on when all members have theirs, which counts as one round.
bool NodeCollectives::run_by_kernel(bool& moved) {
  ++steps_.by_kernel;
  if (has_reduction())
    reduce_by_kernel();
  else
    move_by_kernel();
  end_work();
  if (!failure_.ok()) return false;  // the others must not take this member's part for done
  if (!goes_by_shares(*collective_)) {
    leave();
    return run_leaving(moved);
  }
  copied_in_ = reduced_ = copied_out_ = end_round_ = first_round_ + 1;
  tell_rounds();
  way_ = Way::collecting;
  return run_collecting(moved);
}

bool NodeCollectives::run_collecting(bool& moved) {
  if (!all_reached(&ControlCounters::reduced, end_round_, false)) return false;
  moved = true;
  first_round_ = end_round_;
  if (!begin_work()) return false;
  collect_shares();
  end_work();
  if (!failure_.ok()) return false;
  leave();
  return run_leaving(moved);
}

void NodeCollectives::reduce_by_kernel() {
  const bool pieces = collective_->kind == ShmCollectiveKind::reduce_scatter;
  const std::uint64_t begin = pieces ? piece_offset(me()) : share_offset(collective_->bytes, me());
  const std::uint64_t end = pieces ? piece_offset(me() + 1) : share_offset(collective_->bytes, me() + 1);
  const std::size_t element = current_->element_bytes;
  const std::size_t room =
      std::max(reduced_together / members(), least_reduced) * static_cast<std::size_t>(own_threads());
  const std::size_t most = std::max(room / element, std::size_t{1}) * element;
  const std::size_t stride = padded_to_line(most);
  std::byte* pieces_of_members = fetched_.reserve(members() * stride);
  const std::byte* own = contiguous_address(current_->operand);
  std::byte* kept = contiguous_address(current_->memory);
  const bool keeps = collective_->kind != ShmCollectiveKind::reduce || is_root();
  for (std::uint64_t at = begin; at < end; at += most) {
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(most, end - at));
    sources_[me()] = own + at;
    for_others([&](std::size_t member) {
      std::byte* there = pieces_of_members + member * stride;
      sources_[member] = there;
      fetch(member, at, there, bytes);
    });
    std::byte* combined = pieces_of_members + me() * stride;
    results_[0] = keeps ? kept + (pieces ? at - begin : at) : combined;
    if (!failure_.ok()) return;
    reduce_sources(1, bytes, keeps && current_->past_caches && collective_->kind != ShmCollectiveKind::all_reduce);
    if (!keeps) deliver(root(), at, combined, bytes);
  }
}

// The others' shares of the result.
void NodeCollectives::collect_shares() {
  const bool broadcasts = collective_->kind == ShmCollectiveKind::broadcast;
  if (broadcasts && is_root()) return;
  std::byte* to = contiguous_address(current_->memory);
  for_others([&](std::size_t member) {
    const std::uint64_t begin = share_offset(collective_->bytes, member),
                        end = share_offset(collective_->bytes, member + 1);
    const Announcement& announced = announcements_[member];
    const std::uint64_t from =
        broadcasts && member == root() ? announced.source_address : announced.destination_address;
    by_pieces(begin, end, [&](std::uint64_t at, std::uint64_t bytes) {
      note(read_remote(processes_[locals_[member]], from + at, to + at, bytes));
    });
  });
}

void NodeCollectives::move_by_kernel() {
  const std::size_t self = me();
  std::byte* to = contiguous_address(current_->memory);
  const std::byte* from = contiguous_address(current_->operand);
  copy_own_piece();
  switch (collective_->kind) {
    case ShmCollectiveKind::broadcast: {
      if (goes_by_shares(*collective_)) {
        const std::uint64_t begin = share_offset(collective_->bytes, self),
                            end = share_offset(collective_->bytes, self + 1);
        if (!is_root()) fetch(root(), begin, to + begin, end - begin);
        return;
      }
      // The root hands one half to the other, who fetches the rest meanwhile.
      const std::uint64_t share = share_offset(collective_->bytes, 1);
      if (!is_root()) return fetch(root(), share, to + share, collective_->bytes - share);
      for_others([&](std::size_t member) { deliver(member, 0, from, share); });
      return;
    }
    case ShmCollectiveKind::gather: {
      const std::uint64_t bytes = piece_bytes(self), share = root_share(bytes);
      if (!is_root()) return deliver(root(), offset_at_root() + share, from + share, bytes - share);
      for_others(
          [&](std::size_t member) { fetch(member, 0, to + landing_offset(member), root_share(piece_bytes(member))); });
      return;
    }
    case ShmCollectiveKind::scatter: {
      const std::uint64_t bytes = piece_bytes(self), share = root_share(bytes);
      if (!is_root()) return fetch(root(), piece_offset(self) + share, to + share, bytes - share);
      for_others([&](std::size_t member) {
        deliver(member, 0, from + piece_offset(member), root_share(piece_bytes(member)));
      });
      return;
    }
    default:
      break;
  }
  const bool pairs = collective_->kind == ShmCollectiveKind::all_to_all;
  for_others([&](std::size_t member) {
    fetch(member, pairs ? self * collective_->bytes : 0,
          to + (pairs ? member * collective_->bytes : landing_offset(member)),
          pairs ? collective_->bytes : piece_bytes(member));
  });
}

}  // namespace plait::tl::detail
