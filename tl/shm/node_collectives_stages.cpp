// Shared-memory collectives through the stages: for buffers that not all members can reach.
#include <algorithm>

#include "tl/memory.h"
#include "tl/shm/node_collectives.h"
#include "tl/shm/stream_copy.h"

namespace plait::tl::detail {

bool NodeCollectives::has_reduction() const { return reduces(collective_->kind); }

bool NodeCollectives::copies_in() const {
  return gives() && (collective_->kind != ShmCollectiveKind::gather || !is_root());
}

bool NodeCollectives::copies_out() const {
  switch (collective_->kind) {
    case ShmCollectiveKind::reduce_scatter:
      return false;
    case ShmCollectiveKind::reduce:
    case ShmCollectiveKind::gather:
      return is_root();
    case ShmCollectiveKind::broadcast:
    case ShmCollectiveKind::scatter:
      return !is_root();
    default:
      return true;
  }
}

// Whether each round has room for a piece of several members: those that go to one member only.
bool NodeCollectives::cut_by_taker() const {
  return collective_->kind == ShmCollectiveKind::reduce_scatter || collective_->kind == ShmCollectiveKind::scatter ||
         collective_->kind == ShmCollectiveKind::all_to_all;
}

std::uint64_t longest_piece(const BoundShmCollective& collective) {
  if (!has_pieces(collective.kind)) return collective.bytes;
  std::uint64_t longest = 0;
  for (std::size_t member = 0; member + 1 < collective.piece_offsets.size(); ++member)
    longest = std::max(longest, collective.piece_offsets[member + 1] - collective.piece_offsets[member]);
  return longest;
}

void NodeCollectives::begin_stages() {
  way_ = Way::in_stages;
  ++steps_.in_stages;
  const std::size_t unit = has_reduction() ? current_->element_bytes : 1;
  slice_ = shape_.stage_bytes / unit * unit;
  takers_a_round_ = members();
  if (cut_by_taker()) {
    slice_ = std::max(shape_.stage_bytes / members() / unit * unit, unit);
    if (slice_ >= cache_line && cache_line % unit == 0) slice_ = slice_ / cache_line * cache_line;
    takers_a_round_ = std::min(members(), shape_.stage_bytes / slice_);
  }
  const std::uint64_t parts = (members() + takers_a_round_ - 1) / takers_a_round_;
  const std::uint64_t rounds = (longest_piece(*collective_) + slice_ - 1) / slice_ * parts;
  end_round_ = first_round_ + static_cast<std::uint32_t>(rounds);
  // What this member has no part in is as good as done.
  copied_in_ = copies_in() ? first_round_ : end_round_;
  reduced_ = has_reduction() ? first_round_ : end_round_;
  copied_out_ = copies_out() || has_reduction() ? first_round_ : end_round_;
  tell_rounds();
  copy_own_piece();
}

void NodeCollectives::tell_rounds() {
  ControlCounters& control = own_control();
  tell(control.copied_in, copied_in_);
  tell(control.reduced, reduced_);
  tell(control.copied_out, copied_out_);
}

bool NodeCollectives::all_reached(std::atomic<std::uint32_t> ControlCounters::*counter, std::uint32_t wanted,
                                  bool only_givers) const {
  for (std::size_t member = 0; member < members(); ++member) {
    if (member == me() || (only_givers && !takes_from(member))) continue;
    if (!reached((control_block(member).control().*counter).load(std::memory_order_acquire), wanted)) return false;
  }
  return true;
}

bool NodeCollectives::run_stages(bool& moved) {
  moved |= run_one_part();
  if (copied_in_ != end_round_ || reduced_ != end_round_ || copied_out_ != end_round_) return false;
  first_round_ = end_round_;
  finish();
  return true;
}

// The most advanced work first, so that others need not wait for it. False when nothing can be done now.
bool NodeCollectives::run_one_part() {
  ControlCounters& control = own_control();
  if (copies_out() && copied_out_ != end_round_ && can_copy_out()) {
    copy_out_round(copied_out_ - first_round_);
    tell(control.copied_out, ++copied_out_);
    return true;
  }
  if (reduced_ != end_round_ && reduced_ != copied_in_ &&
      all_reached(&ControlCounters::copied_in, reduced_ + 1, false)) {
    reduce_round(reduced_ - first_round_);
    tell(control.reduced, ++reduced_);
    if (!copies_out()) tell(control.copied_out, copied_out_ = reduced_);
    return true;
  }
  if (copied_in_ != end_round_ && all_reached(&ControlCounters::copied_out, copied_in_ + 1 - control_stages, false)) {
    copy_in_round(copied_in_ - first_round_);
    tell(control.copied_in, ++copied_in_);
    return true;
  }
  return false;
}

bool NodeCollectives::can_copy_out() const {
  if (!has_reduction()) return all_reached(&ControlCounters::copied_in, copied_out_ + 1, true);
  return copied_out_ != reduced_ && all_reached(&ControlCounters::reduced, copied_out_ + 1, false);
}

// What round `round` brings to the member `owner` (cut by taker), is its share to reduce (vectors), or comes from it
// (all_gather, gather); of a broadcast all.
NodeCollectives::Part NodeCollectives::part(std::uint32_t round, std::size_t owner) const {
  if (cut_by_taker()) {
    const std::size_t takes = (members() + takers_a_round_ - 1) / takers_a_round_;
    if (owner / takers_a_round_ != round % takes) return {};
    const std::uint64_t first = std::uint64_t{round / takes} * slice_;
    const bool pairs = collective_->kind == ShmCollectiveKind::all_to_all;
    const std::uint64_t bytes = pairs ? collective_->bytes : piece_bytes(owner);
    if (first >= bytes) return {};
    return {first, static_cast<std::size_t>(std::min<std::uint64_t>(slice_, bytes - first)),
            owner % takers_a_round_ * slice_};
  }
  const std::uint64_t first = std::uint64_t{round} * slice_;
  const std::uint64_t all = has_pieces(collective_->kind) ? piece_bytes(owner) : collective_->bytes;
  if (first >= all) return {};
  const std::uint64_t bytes = std::min<std::uint64_t>(slice_, all - first);
  if (!has_reduction()) return {first, static_cast<std::size_t>(bytes), 0};
  const std::uint64_t begin = share_offset(bytes, owner);
  return {first + begin, static_cast<std::size_t>(share_offset(bytes, owner + 1) - begin),
          static_cast<std::size_t>(begin)};
}

// Where a part that is cut by taker begins among all that the giver has.
std::uint64_t NodeCollectives::given_offset(std::size_t taker) const {
  return collective_->kind == ShmCollectiveKind::all_to_all ? taker * collective_->bytes : piece_offset(taker);
}

void NodeCollectives::copy_in_round(std::uint32_t round) {
  std::byte* stage = control_blocks_[self_].stage(first_round_ + round);
  const auto fill = [&](const Part& part, std::uint64_t offset) {
    if (part.bytes == 0) return;
    if (part.bytes >= stream_from)
      stream_out(current_->operand, offset, stage + part.at, part.bytes);
    else
      copy_out(current_->operand, offset, stage + part.at, part.bytes);
  };
  if (!cut_by_taker() && !has_reduction()) {
    const Part own = part(round, me());
    return fill(own, own.offset);
  }
  for (std::size_t member = 0; member < members(); ++member) {
    if (member == me()) continue;
    const Part theirs = part(round, member);
    fill(theirs, cut_by_taker() ? given_offset(member) + theirs.offset : theirs.offset);
  }
}

void NodeCollectives::reduce_round(std::uint32_t round) {
  const Part own = part(round, me());
  const bool pieces = collective_->kind == ShmCollectiveKind::reduce_scatter;
  const bool keeps = collective_->kind != ShmCollectiveKind::reduce || is_root();  // the result, or a share of it
  const bool shows = shows_result();
  const std::uint64_t at_source = (pieces ? piece_offset(me()) : 0) + own.offset;
  MemoryCursor source(current_->operand, own.bytes > 0 ? at_source : 0);
  MemoryCursor result(current_->memory, keeps && own.bytes > 0 ? own.offset : 0);
  for (std::size_t done = 0; done < own.bytes;) {
    std::uint64_t run = std::min<std::uint64_t>(source.contiguous(), own.bytes - done);
    if (keeps) run = std::min(run, result.contiguous());
    const auto bytes = static_cast<std::size_t>(run);
    for (std::size_t member = 0; member < members(); ++member)
      sources_[member] =
          member == me() ? source.data() : control_block(member).stage(first_round_ + round) + own.at + done;
    std::size_t results = 0;
    if (keeps) results_[results++] = result.data();
    if (shows) results_[results++] = control_blocks_[self_].stage(first_round_ + round) + own.at + done;
    reduce_sources(results, bytes, current_->past_caches && !shows);
    source.advance(bytes);
    if (keeps) result.advance(bytes);
    done += bytes;
  }
}

// Whether others copy this member's share of the result.
bool NodeCollectives::shows_result() const {
  return collective_->kind == ShmCollectiveKind::all_reduce ||
         (collective_->kind == ShmCollectiveKind::reduce && !is_root());
}

void NodeCollectives::copy_out_round(std::uint32_t round) {
  for_others([&](std::size_t member) {
    if (!has_reduction() && !takes_from(member)) return;
    const std::byte* stage = control_block(member).stage(first_round_ + round);
    const Part theirs = part(round, cut_by_taker() ? me() : member);
    if (theirs.bytes == 0) return;
    std::uint64_t offset = theirs.offset;
    if (collective_->kind == ShmCollectiveKind::all_gather || collective_->kind == ShmCollectiveKind::gather)
      offset += landing_offset(member);
    if (collective_->kind == ShmCollectiveKind::all_to_all) offset += member * collective_->bytes;
    put(current_->memory, offset, stage + theirs.at, theirs.bytes);
  });
}

}  // namespace plait::tl::detail
