#include "fused/exchange/exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace plait::fused {

Exchange::Exchange(Team* team, ExchangeRequest request)
    : team_(team), request_(std::move(request)), owners_(request_.outgoing.size()), sources_(request_.incoming.size()) {
  ranks_ = static_cast<int>(owners_.size());
  rank_ = team == nullptr ? 0 : team->oob->rank();
  request_.notes_to.resize(owners_.size());
  request_.notes_from.resize(owners_.size());
  heard_.resize(owners_.size());
}

bool Exchange::is_uncopied(int owner) const {
  if (reach(owner) == Reach::direct) return true;
  return reach(owner) == Reach::staged && std::ranges::all_of(request_.outgoing[index(owner)], &Block::kept);
}

std::uint64_t Exchange::reserved_bytes() const {
  return inbox_.bytes() + own_kept_.bytes() + (messages_ != nullptr ? messages_->reserved_bytes() : 0);
}

// ---- A run ----

std::byte* Exchange::note_to(int rank) {
  const Owner& owner = owners_[index(rank)];
  if (owner.reach == Reach::messages) return messages_->note_to(owner.lane);
  return owner.notes + note_offset(run_ + 1, request_.notes_to[index(rank)]);
}

const std::byte* Exchange::note_from(int rank) const {
  const Owner& owner = owners_[index(rank)];
  if (owner.reach == Reach::messages) return messages_->note_from(owner.lane);
  return sources_[index(rank)].notes + note_offset(run_, request_.notes_from[index(rank)]);
}

void Exchange::set_rows(int rank, const SliceRows* outgoing, const SliceRows* incoming) {
  Owner& owner = owners_[index(rank)];
  owner.rows = outgoing;
  sources_[index(rank)].rows = incoming;
  if (owner.reach == Reach::messages) messages_->set_rows(owner.lane, outgoing, incoming);
}

void Exchange::begin(const Complaint* complaint) {
  const Announcement mine{.run = ++run_,
                          .well = complaint == nullptr ? 1u : 0u,
                          .complaint = complaint != nullptr ? *complaint : Complaint{}};
  refusal_.reset();
  std::ranges::fill(heard_, std::uint8_t{0});
  heard_ranks_ = 0;
  copied_.store(0, std::memory_order_relaxed);
  for (Source& source : sources_) {
    source.seen = 0;
    source.taken.store(0, std::memory_order_relaxed);
  }
  for (Owner& owner : owners_) {
    // What goes by messages lies here until then; but how much it is the listener knows once it has heard.
    const bool own_memory = mine.well != 0 && owner.reach == Reach::messages && request_.listener == nullptr;
    owner.open.store(own_memory, std::memory_order_relaxed);
    owner.takes_kept.store(own_memory, std::memory_order_relaxed);
  }
  state_.store(State::open, std::memory_order_release);
  if (messages_ != nullptr) messages_->begin(mine);
  if (inbox_.exists()) inbox_.announcement(run_).post(mine);
  note(rank_, mine);
}

Status Exchange::conclude() { return failure_; }

void Exchange::fail(const Status& cause) {
  if (failure_.ok()) failure_ = cause;
  state_.store(State::failed, std::memory_order_release);
}

void Exchange::note(int rank, const Announcement& said) {
  heard_[index(rank)] = 1;
  ++heard_ranks_;
  if (said.well == 0 && (!refusal_ || rank < refusal_->rank)) refusal_ = Refusal{rank, said.complaint};
  // A rank that has complained itself, or knows of one that has, computes nothing any more; and its own part of what
  // the listener would look at may be unfinished.
  if (request_.listener != nullptr && !refusal_) request_.listener->heard(rank);
  Owner& owner = owners_[index(rank)];
  if (!refusal_) owner.takes_kept.store(true, std::memory_order_release);
  if (owner.reach == Reach::staged && !refusal_) owner.open.store(true, std::memory_order_release);
  if (heard_ranks_ == ranks_) decide();
}

void Exchange::decide() {
  for (Owner& owner : owners_)
    if (!refusal_) owner.open.store(true, std::memory_order_release);
  state_.store(refusal_ ? State::refused : State::good, std::memory_order_release);
}

void Exchange::hear() {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (heard_[index(rank)] != 0) continue;
    const Owner& owner = owners_[index(rank)];
    Announcement said;
    if (owner.reach == Reach::messages) {
      if (const Announcement* heard = messages_->heard(owner.lane)) note(rank, *heard);
    } else if (owner.inbox.announcement(run_).read(run_, said)) {
      note(rank, said);
    }
  }
}

// By one thread at a time, and never waited for.
bool Exchange::moderate(bool is_ranks_thread) {
  const bool drives = messages_ != nullptr && is_ranks_thread;
  const bool decided = state_.load(std::memory_order_acquire) != State::open;
  if (decided && !drives) return false;
  if (moderating_.test_and_set(std::memory_order_acquire)) return false;
  bool moved = false;
  if (drives && state_.load(std::memory_order_relaxed) != State::failed) {
    const Result<bool> some = messages_->move_on(state_.load(std::memory_order_relaxed) == State::good);
    if (some.ok())
      moved = *some;
    else
      fail(some.status());
  }
  if (state_.load(std::memory_order_relaxed) == State::open) {
    hear();
    moved |= state_.load(std::memory_order_relaxed) != State::open;
  }
  moderating_.clear(std::memory_order_release);
  return moved;
}

bool Exchange::turn(bool is_ranks_thread) {
  const bool moved = moderate(is_ranks_thread);
  return copy_one() || moved;
}

void Exchange::look_for_failures() {
  if (team_ == nullptr || state_.load(std::memory_order_acquire) == State::failed) return;
  team_->look_at_notice();
  Status failure = team_->notice->heard();
  if (failure.ok()) failure = team_->connections.peer_failure();
  if (failure.ok()) return;
  while (moderating_.test_and_set(std::memory_order_acquire)) {
  }
  fail(failure);
  moderating_.clear(std::memory_order_release);
}

Target Exchange::target(int owner, std::uint32_t slice) const {
  const Owner& to = owners_[index(owner)];
  const Block& block = request_.outgoing[index(owner)][slice];
  if (to.reach == Reach::messages) return messages_->target(to.lane, slice);
  if (to.reach == Reach::staged || block.kept)
    return {to.inbox_slices + to.places[slice] + offset_in_run(block, to.rows, slice), block.row_bytes};
  return {to.base + block.offset, request_.output.pitch};
}

void Exchange::finished(int owner, std::uint32_t slice) {
  const Owner& to = owners_[index(owner)];
  if (to.reach == Reach::messages) return messages_->finished(to.lane, slice);
  if (to.flags != nullptr) to.flags[slice].store(run_, std::memory_order_release);
}

bool Exchange::has_come(int source, std::uint32_t slice) const {
  const Source& from = sources_[index(source)];
  if (from.flags == nullptr) return messages_->has_come(owners_[index(source)].lane, slice);
  return from.flags[slice].load(std::memory_order_acquire) == run_;
}

const std::byte* Exchange::kept(int source, std::uint32_t slice) const {
  const Source& from = sources_[index(source)];
  if (from.flags == nullptr) return messages_->kept(owners_[index(source)].lane, slice);
  return from.slices + from.places[slice] + offset_in_run(request_.incoming[index(source)][slice], from.rows, slice);
}

// ---- What comes to the inbox ----

// What is kept is its reader's affair.
bool Exchange::copy_from(Source& source, const Blocks& blocks) {
  std::uint32_t slice = source.taken.load(std::memory_order_relaxed);
  if (slice == blocks.size()) return false;
  const Block& block = blocks[slice];
  if (!block.kept && source.flags[slice].load(std::memory_order_acquire) != run_) return false;
  if (!source.taken.compare_exchange_strong(slice, slice + 1, std::memory_order_relaxed)) return false;
  const std::byte* from = source.slices + source.places[slice];
  std::byte* to = request_.output.data + block.offset;
  for (std::uint64_t row = 0; row < block.rows && !block.kept; ++row)
    std::memcpy(to + row * request_.output.pitch, from + row * block.row_bytes, block.row_bytes);
  copied_.fetch_add(1, std::memory_order_release);
  return true;
}

bool Exchange::copy_one() {
  if (staged_slices_ == 0 || state_.load(std::memory_order_acquire) != State::good) return false;
  for (const int from : staged_sources_)
    if (copy_from(sources_[index(from)], request_.incoming[index(from)])) return true;
  return false;
}

bool Exchange::is_settled() {
  switch (state_.load(std::memory_order_acquire)) {
    case State::open:
      return false;
    case State::failed:
      return true;
    case State::refused:
      return messages_ == nullptr || messages_->is_idle();
    case State::good:
      break;
  }
  if (copied_.load(std::memory_order_acquire) != staged_slices_) return false;
  for (std::size_t from = 0; from < sources_.size(); ++from) {
    Source& source = sources_[from];
    if (!source.near || source.staged) continue;
    const Blocks& blocks = request_.incoming[from];
    while (source.seen < blocks.size() &&
           (blocks[source.seen].kept || source.flags[source.seen].load(std::memory_order_acquire) == run_))
      ++source.seen;
    if (source.seen < blocks.size()) return false;
  }
  return messages_ == nullptr || messages_->is_complete();
}

}  // namespace plait::fused
