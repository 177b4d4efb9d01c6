#include "tl/shm/node_collectives.h"

#include <algorithm>
#include <utility>

#include "tl/memory.h"
#include "tl/shm/peer_process.h"
#include "tl/shm/stream_copy.h"

namespace plait::tl::detail {

namespace {

// An all-reduce at once makes every member read what all have: above this, shares are cheaper.
constexpr std::uint64_t most_reduced_at_once = 32 * 1024;

// std::atomic_thread_fence does not compile under the thread sanitizer.
void full_fence() { __sync_synchronize(); }

}  // namespace

NodeCollectives::NodeCollectives(NodeCollectivesOptions options)
    : control_blocks_(std::move(options.control_blocks)),
      shape_(options.shape),
      self_(options.self),
      index_of_rank_(options.index_of_rank),
      buffers_(options.buffers),
      processes_(std::move(options.processes)),
      kernel_from_(options.kernel_from),
      pair_from_(options.pair_from),
      crowded_(options.crowded),
      failures_(options.failures),
      bells_(options.bells),
      operation_(own_control().finished.load(std::memory_order_relaxed)),
      finished_(control_blocks_.size(), operation_),
      words_(control_blocks_.size()),
      announcements_(control_blocks_.size()),
      sources_(control_blocks_.size()),
      results_(control_blocks_.size()),
      first_round_(own_control().copied_in.load(std::memory_order_relaxed)),
      end_round_(first_round_) {
  locals_.reserve(control_blocks_.size());
}

Result<bool> NodeCollectives::start(Transfer& transfer) {
  if (!failure_.ok()) return failure_;
  if (current_ != nullptr) {
    waiting_.push(transfer);
    return false;
  }
  if (transfer.collective->members.size() != control_blocks_.size())
    return {Code::internal, "shm: a shared-memory collective of " +
                                std::to_string(transfer.collective->members.size()) + " ranks on a node of " +
                                std::to_string(control_blocks_.size())};
  const bool done = begin(transfer);
  if (!failure_.ok()) return failure_;
  if (done) current_ = nullptr;
  return done;
}

Status NodeCollectives::progress(std::vector<Transfer*>& completed, bool& moved) {
  if (!failure_.ok()) return failure_;
  const bool done = advance(moved);
  if (!failure_.ok()) return failure_;
  if (!done) return {};
  completed.push_back(std::exchange(current_, nullptr));
  while (!waiting_.empty()) {
    Transfer& next = *waiting_.pop();
    const Result<bool> at_once = start(next);
    if (!at_once.ok()) return at_once.status();
    if (!*at_once) return {};
    completed.push_back(&next);
  }
  return {};
}

void NodeCollectives::forget() {
  waiting_ = {};
  if (std::exchange(current_, nullptr) == nullptr) return;
  if (talk_ != nullptr) abandon_talk();
  const bool announced = published_ || talk_ != nullptr;
  if (!announced || way_ == Way::at_once || way_ == Way::in_stages) return;
  full_fence();  // pairs with begin_work()
  for (std::size_t local = 0; local < control_blocks_.size(); ++local)
    if (local != self_) wait_for_process(processes_[local].process, [&] { return !at_work(local); });
}

// It can only be this operation's work: no other begins without this rank. Who has failed as well has ended it.
bool NodeCollectives::at_work(std::size_t local) const {
  return control_blocks_[local].control().at_work.load(std::memory_order_acquire) != 0 && !failures_->is_set(local);
}

// To be asked after announcing and before touching memory of others: who has failed by then may have returned it to the
// program. Who fails later waits for those that are at work: until they look again, or have done it.
bool NodeCollectives::begin_work() {
  own_control().at_work.store(1, std::memory_order_relaxed);
  full_fence();
  note(failures_->look());
  if (!failure_.ok()) end_work();
  return failure_.ok();
}

void NodeCollectives::end_work() { own_control().at_work.store(0, std::memory_order_release); }

// ---- The way of a step ----

bool NodeCollectives::begin(Transfer& transfer) {
  current_ = &transfer;
  collective_ = transfer.collective;
  locals_.clear();
  for (const std::int32_t rank : collective_->members)
    locals_.push_back(static_cast<std::uint32_t>(index_of_rank_->find(rank)));
  published_ = false;
  arrived_ = 0;
  bool moved = false;
  talk_ = transfer.memory.buffers->talk;
  if (talk_ != nullptr) [[unlikely]] {
    way_ = Way::talking;
    talk_round_ = 0;
  } else if (fits_slot()) {
    way_ = Way::at_once;
    measured_ = is_measured();
  } else if (buffers_ != nullptr || kernel_pays()) {
    way_ = Way::announced;
  } else {
    begin_stages();
  }
  return advance(moved);
}

bool NodeCollectives::advance(bool& moved) {
  switch (way_) {
    case Way::at_once:
      return run_at_once(moved);
    case Way::announced:
      return run_announced(moved);
    case Way::collecting:
      return run_collecting(moved);
    case Way::leaving:
      return run_leaving(moved);
    case Way::in_stages:
      return run_stages(moved);
    case Way::talking:
    case Way::working:
      return run_talk(moved);
  }
  return false;
}

// The slots may be used again.
void NodeCollectives::finish() { tell(own_control().finished, ++operation_); }

// ---- What the kinds have in common ----

bool NodeCollectives::gives() const {
  const bool from_root =
      collective_->kind == ShmCollectiveKind::broadcast || collective_->kind == ShmCollectiveKind::scatter;
  return !from_root || is_root();
}

bool NodeCollectives::takes_from(std::size_t member) const {
  if (member == me()) return false;
  if (collective_->lower_only && way_ == Way::at_once && collective_->members[member] > collective_->members[me()])
    return false;
  const bool from_root =
      collective_->kind == ShmCollectiveKind::broadcast || collective_->kind == ShmCollectiveKind::scatter;
  const bool to_root = collective_->kind == ShmCollectiveKind::reduce || collective_->kind == ShmCollectiveKind::gather;
  return (!from_root || member == root()) && (!to_root || is_root());
}

std::uint64_t NodeCollectives::given_bytes(std::size_t member) const {
  if (collective_->kind == ShmCollectiveKind::all_gather || collective_->kind == ShmCollectiveKind::gather)
    return piece_bytes(member);
  return collective_->kind == ShmCollectiveKind::all_to_all ? members() * collective_->bytes : collective_->bytes;
}

// Where the bytes from a member stand in the destination of an all_gather or a gather.
std::uint64_t NodeCollectives::landing_offset(std::size_t member) const {
  const bool behind_own = !collective_->takes_own && member > me();
  return piece_offset(member) - (behind_own ? piece_bytes(me()) : 0);
}

// Of `bytes` that members share out, where a share begins: at whole elements, and whole cache lines where there are
// enough.
std::uint64_t NodeCollectives::share_offset(std::uint64_t bytes, std::size_t share) const {
  if (share == members()) return bytes;
  const std::uint64_t element = current_->element_bytes;
  const std::uint64_t unit = bytes >= 16 * cache_line * members() && cache_line % element == 0 ? cache_line : element;
  return bytes / unit * share / members() * unit;
}

// What a member keeps of its own piece, where it lies elsewhere in the end.
void NodeCollectives::copy_own_piece() {
  const std::size_t self = me();
  switch (collective_->kind) {
    case ShmCollectiveKind::all_gather:
    case ShmCollectiveKind::gather:
      if (collective_->takes_own && (collective_->kind == ShmCollectiveKind::all_gather || is_root()))
        copy_between(current_->memory, landing_offset(self), current_->operand, 0, piece_bytes(self));
      break;
    case ShmCollectiveKind::scatter:
      if (is_root() && collective_->takes_own)
        copy_between(current_->memory, 0, current_->operand, piece_offset(self), piece_bytes(self));
      break;
    case ShmCollectiveKind::all_to_all:
      copy_between(current_->memory, self * collective_->bytes, current_->operand, self * collective_->bytes,
                   collective_->bytes);
      break;
    default:
      break;
  }
}

// ---- At once ----

// All members find the same.
bool NodeCollectives::fits_slot() const {
  std::uint64_t most = 0;
  for (std::size_t member = 0; member < members(); ++member) most = std::max(most, given_bytes(member));
  if (ControlBlock::fits_slot(most)) return true;
  if (collective_->kind == ShmCollectiveKind::all_reduce && most * members() > most_reduced_at_once) return false;
  return most <= shape_.area_bytes;
}

bool NodeCollectives::run_at_once(bool& moved) {
  if (!published_) {
    if (is_read_at_once()) {
      if (!slot_is_free(own_fits_slot() ? control_slots : areas_of(pace()))) return false;
      give_at_once();
      publish();
    }
    published_ = moved = true;
  }
  if (!all_arrived([this](std::size_t member) { return takes_from(member); })) return false;
  take_at_once();
  ++steps_.at_once;
  finish();
  return moved = true;
}

Pace NodeCollectives::pace() const {
  switch (collective_->kind) {
    case ShmCollectiveKind::broadcast:
    case ShmCollectiveKind::reduce:
    case ShmCollectiveKind::gather:
    case ShmCollectiveKind::scatter:
      return Pace::ahead;
    default:  // also where nobody takes from those behind: of that each rank judges by its own schedule
      return Pace::in_step;
  }
}

// By others, or by itself where it combines what lies in the slots.
bool NodeCollectives::is_read_at_once() const {
  return gives() && (collective_->kind != ShmCollectiveKind::gather || !is_root());
}

// All members find the same. A piece that is as long as one may be is its giver's own: nobody passes parts of one on.
bool NodeCollectives::is_measured() const {
  const std::uint64_t limit = current_->memory.buffers->piece_limit;
  if (limit == 0 || collective_->kind != ShmCollectiveKind::gather) return false;
  for (std::size_t member = 0; member < members(); ++member)
    if (piece_bytes(member) != limit) return false;
  return true;
}

bool NodeCollectives::own_fits_slot() const {
  const auto bytes = static_cast<std::size_t>(own_bytes_at_once());
  return measured_ ? ControlBlock::fits_slot_measured(bytes) : ControlBlock::fits_slot(bytes);
}

std::uint64_t NodeCollectives::own_bytes_at_once() const {
  return measured_ ? current_->memory.buffers->piece_used : given_bytes(me());
}

// What others need. Nobody else reads a member's own piece of an all_to_all.
void NodeCollectives::give_at_once() {
  const auto bytes = static_cast<std::size_t>(own_bytes_at_once());
  const ControlBlock& own_block = control_blocks_[self_];
  std::byte* content =
      measured_ ? own_block.measured_content(operation_, bytes, pace()) : own_block.content(operation_, bytes, pace());
  if (measured_) own_block.measure(operation_) = bytes;
  const auto give = [&](std::size_t begin, std::size_t end) {
    if (end - begin >= stream_from)
      stream_out(current_->operand, begin, content + begin, end - begin);
    else
      copy_out(current_->operand, begin, content + begin, end - begin);
  };
  if (collective_->kind != ShmCollectiveKind::all_to_all) return give(0, bytes);
  const auto own = static_cast<std::size_t>(me() * collective_->bytes);
  give(0, own);
  give(own + static_cast<std::size_t>(collective_->bytes), bytes);
}

void NodeCollectives::publish() { tell(control_blocks_[self_].slot(operation_).sequence, operation_ + 1); }

// Everybody has finished the operation that used the slot or the area, of `available` ones, before.
bool NodeCollectives::slot_is_free(std::uint32_t available) {
  if (operation_ < available) return true;
  const std::uint64_t wanted = operation_ + 1 - available;
  for (std::size_t local = 0; local < control_blocks_.size(); ++local) {
    if (finished_[local] >= wanted || local == self_) continue;
    finished_[local] = control_blocks_[local].control().finished.load(std::memory_order_acquire);
    if (finished_[local] < wanted) return false;
  }
  return true;
}

void NodeCollectives::take_at_once() {
  const Memory& to = current_->memory;
  const auto content = [this](std::size_t member) {
    return control_block(member).content(operation_, static_cast<std::size_t>(given_bytes(member)), pace());
  };
  switch (collective_->kind) {
    case ShmCollectiveKind::all_reduce:
    case ShmCollectiveKind::reduce:
    case ShmCollectiveKind::reduce_scatter: {
      if (collective_->kind == ShmCollectiveKind::reduce && !is_root()) return;
      const bool pieces = collective_->kind == ShmCollectiveKind::reduce_scatter;
      for (std::size_t member = 0; member < members(); ++member)
        sources_[member] = content(member) + (pieces ? piece_offset(me()) : 0);
      return reduce_into(to, 0, pieces ? piece_bytes(me()) : collective_->bytes);
    }
    case ShmCollectiveKind::broadcast:
      if (!is_root()) copy_in(to, 0, content(root()), collective_->bytes);
      return;
    case ShmCollectiveKind::all_gather:
    case ShmCollectiveKind::gather:
      if (measured_) return take_measured();
      for_others([&](std::size_t member) {
        if (takes_from(member)) copy_in(to, landing_offset(member), content(member), piece_bytes(member));
      });
      return copy_own_piece();
    case ShmCollectiveKind::scatter:
      if (is_root()) return copy_own_piece();
      return copy_in(to, 0, content(root()) + piece_offset(me()), piece_bytes(me()));
    case ShmCollectiveKind::all_to_all:
      for_others([&](std::size_t member) {
        copy_in(to, member * collective_->bytes, content(member) + me() * collective_->bytes, collective_->bytes);
      });
      return copy_own_piece();
  }
}

void NodeCollectives::take_measured() {
  for_others([&](std::size_t member) {
    if (!takes_from(member)) return;
    const auto bytes = static_cast<std::size_t>(control_block(member).measure(operation_));
    copy_in(current_->memory, landing_offset(member), control_block(member).measured_content(operation_, bytes, pace()),
            bytes);
  });
  copy_own_piece();
}

// The combination of `sources_`, which are contiguous, into [offset, offset + bytes) of `to`.
void NodeCollectives::reduce_into(const Memory& to, std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0) return;
  std::size_t done = 0;
  for (MemoryCursor cursor(to, offset); done < bytes;) {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(cursor.contiguous(), bytes - done));
    results_[0] = cursor.data();
    reduce_sources(1, piece, false);
    for (const std::byte*& source : sources_) source += piece;
    cursor.advance(piece);
    done += piece;
  }
}

// Elements of `sources_` into the first `results` of `results_`.
void NodeCollectives::reduce_sources(std::size_t results, std::size_t bytes, bool streaming) {
  reduce_many(*current_->reducer, {.results = results_.data(),
                                   .result_count = results,
                                   .sources = sources_.data(),
                                   .source_count = members(),
                                   .elements = bytes / current_->element_bytes,
                                   .streaming = streaming});
}

void NodeCollectives::put(const Memory& to, std::uint64_t offset, const std::byte* from, std::uint64_t bytes) {
  if (current_->past_caches)
    stream_in(to, offset, from, bytes);
  else
    copy_in(to, offset, from, bytes);
}

}  // namespace plait::tl::detail
