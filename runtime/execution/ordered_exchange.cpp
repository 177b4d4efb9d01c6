#include "runtime/execution/ordered_exchange.h"

#include <algorithm>
#include <cstring>

namespace plait::runtime {
namespace {

// Of all ranks' operands together: what is no more goes to all of them, in one round.
constexpr std::size_t most_gathered_bytes = 16 * 1024;

bool is_share(Collective collective) {
  return collective == Collective::reduce_scatter_block || collective == Collective::reduce_scatter;
}

ShmCollectiveKind kind_for(Collective collective) {
  if (collective == Collective::allreduce) return ShmCollectiveKind::all_reduce;
  return collective == Collective::reduce ? ShmCollectiveKind::reduce : ShmCollectiveKind::reduce_scatter;
}

// Whether it is one step of all ranks that gives each its result: then it is so on all of them. Such a step combines
// all members' operands of an element in one reduce_many().
bool combines_at_once(const BoundSchedule& schedule, const Call& call, int ranks) {
  if (schedule.steps.size() != 1 || schedule.steps[0].kind != StepKind::shm_collective) return false;
  const BoundShmCollective& step = schedule.collectives[static_cast<std::size_t>(schedule.steps[0].collective)];
  if (step.kind != kind_for(call.collective) || step.members.size() != static_cast<std::size_t>(ranks)) return false;
  return call.collective != Collective::reduce || step.members[static_cast<std::size_t>(step.root)] == call.root;
}

// Of memory that is shared out.
class Rooms {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t place = bytes_;
    bytes_ += WorkMemory::padded(bytes);
    return place;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace

// ---- Which way ----

std::shared_ptr<const PreparedCall> OrderedExchange::take(Team& team, int rank, Request& request) {
  request_ = request;
  reduction_ = request.ordered;
  rank_ = rank;
  ranks_ = team.planner.hierarchy().ranks();
  element_bytes_ = request.call.element_bytes;
  second_.reset();
  Prepared first = choose(team);
  if (!runs_apart()) request.reducer = &reduction_->at_once;
  return first;
}

OrderedExchange::Prepared OrderedExchange::choose(Team& team) {
  const bool one_node = team.planner.hierarchy().nodes() == 1;
  way_ = OrderedWay::at_once;
  if (one_node)
    if (Prepared own = own_plan(team); own != nullptr) return own;
  if (request_.input.bytes <= most_gathered_bytes / static_cast<std::size_t>(ranks_)) return prepare_gathered(team);
  wide_ = one_node || reduction_->wide == nullptr ? nullptr : reduction_->wide(ranks_);
  return wide_ != nullptr ? prepare_wide(team) : prepare_exchanged(team);
}

// nullptr: it is another one. One that is none decides for all ways, as they would be none as well.
OrderedExchange::Prepared OrderedExchange::own_plan(Team& team) {
  Prepared own = look_up(team, request_.call, request_.sharing != Sharing::none);
  const bool fits = !own->accelerated || combines_at_once(own->schedule, request_.call, ranks_);
  return fits ? own : nullptr;
}

OrderedExchange::Prepared OrderedExchange::look_up(Team& team, const Call& call, bool in_place) const {
  return team.schedules.hold({.call = call, .in_place = in_place, .candidate = planners_candidate});
}

OrderedExchange::Prepared OrderedExchange::prepare_gathered(Team& team) {
  way_ = OrderedWay::gathered;
  Call call{.collective = Collective::allgather, .count = elements(), .element_bytes = element_bytes_};
  if (request_.call.collective == Collective::reduce) {
    call.collective = Collective::gather;
    call.root = request_.call.root;
  }
  return look_up(team, call);
}

// Shares of one length, of which the last ones may be partly or wholly empty.
OrderedExchange::Prepared OrderedExchange::prepare_exchanged(Team& team) {
  way_ = OrderedWay::exchanged;
  const auto ranks = static_cast<std::size_t>(ranks_);
  const Call& asked = request_.call;
  share_ = asked.collective == Collective::reduce_scatter ? *std::max_element(asked.counts, asked.counts + ranks)
                                                          : (elements() + ranks - 1) / ranks;
  Prepared first =
      look_up(team, {.collective = Collective::alltoall, .count = share_, .element_bytes = element_bytes_});
  if (is_share(asked.collective)) return first;
  Call second{.collective = Collective::allgather, .count = share_, .element_bytes = element_bytes_};
  if (asked.collective == Collective::reduce) {
    second.collective = Collective::gather;
    second.root = asked.root;
  }
  second_ = look_up(team, second, asked.collective == Collective::allreduce);
  return both(std::move(first));
}

OrderedExchange::Prepared OrderedExchange::prepare_wide(Team& team) {
  way_ = OrderedWay::wide;
  Prepared first = look_up(team,
                           {.collective = Collective::allreduce,
                            .count = elements() * wide_->reals,
                            .element_bytes = wide_->keys.element_bytes},
                           true);
  Call second = request_.call;
  second.count *= wide_->reals;
  second.element_bytes = wide_->steps.element_bytes;
  if (second.counts != nullptr) {
    real_counts_.assign(second.counts, second.counts + ranks_);
    for (std::size_t& count : real_counts_) count *= wide_->reals;
    second.counts = real_counts_.data();
  }
  second_ = look_up(team, second, !is_share(second.collective) && gets_result());
  return both(std::move(first));
}

// The one that the call does not run by, if there is such a one.
OrderedExchange::Prepared OrderedExchange::both(Prepared first) {
  const bool runs = second_->accelerated && !second_->too_long;
  return runs ? first : second_;
}

void OrderedExchange::leave(std::size_t most_bytes_kept) {
  second_.reset();
  if (memory_.bytes() > most_bytes_kept) memory_.clear();
}

// ---- Places ----

OrderedExchange::Part OrderedExchange::part_of(int rank) const {
  const auto place = static_cast<std::size_t>(rank);
  if (const std::size_t* counts = request_.call.counts; counts != nullptr) {
    Part part{.count = counts[place]};
    for (std::size_t before = 0; before < place; ++before) part.first += counts[before];
    return part;
  }
  const std::size_t first = std::min(place * share_, elements());
  return {.first = first, .count = std::min(share_, elements() - first)};
}

// What this rank gets.
OrderedExchange::Part OrderedExchange::result() const {
  if (request_.call.collective == Collective::reduce_scatter) return part_of(rank_);
  if (request_.call.collective != Collective::reduce_scatter_block) return {.first = 0, .count = elements()};
  return {.first = request_.call.count * static_cast<std::size_t>(rank_), .count = request_.call.count};
}

// What lies on a device is brought at once: nothing of it is computed there.
int OrderedExchange::take_input(std::byte* room) {
  input_ = request_.input.address;
  if (request_.input.device == nullptr) return 0;
  input_ = room;
  return pack(request_.input, room);
}

std::byte* OrderedExchange::result_or(std::byte* room) const {
  return request_.output.device == nullptr ? request_.output.address : room;
}

int OrderedExchange::give_result(const std::byte* from) const {
  return from == request_.output.address ? 0 : unpack(request_.output, from);
}

// Elements [offset, offset + count) of the ranks' segments.
void OrderedExchange::combine(const std::byte* segments, std::size_t segment_bytes, std::size_t offset, std::byte* to,
                              std::size_t count) {
  sources_.resize(static_cast<std::size_t>(ranks_));
  for (std::size_t rank = 0; rank < sources_.size(); ++rank)
    sources_[rank] = segments + rank * segment_bytes + offset * element_bytes_;
  reduce_many(reduction_->at_once, {.results = &to,
                                    .result_count = 1,
                                    .sources = sources_.data(),
                                    .source_count = sources_.size(),
                                    .elements = count,
                                    .streaming = false});
}

// ---- A run ----

int OrderedExchange::begin(const BoundSchedule& first) {
  if (way_ == OrderedWay::gathered) return begin_gathered(first);
  return way_ == OrderedWay::exchanged ? begin_exchanged(first) : begin_wide(first);
}

const BoundSchedule* OrderedExchange::rest(const Routes&) {
  if (way_ == OrderedWay::exchanged) rest_exchanged();
  if (way_ == OrderedWay::wide) rest_wide();
  return second_ != nullptr ? &second_->schedule : nullptr;
}

int OrderedExchange::end() {
  if (way_ == OrderedWay::gathered) return end_gathered();
  if (way_ == OrderedWay::wide) return end_wide();
  return gets_result() ? give_result(result_) : 0;
}

// ---- Gathered ----

int OrderedExchange::begin_gathered(const BoundSchedule& first) {
  const std::size_t bytes = request_.input.bytes;
  Rooms rooms;
  const std::size_t input = rooms.add(request_.input.device != nullptr ? bytes : 0);
  const std::size_t segments = rooms.add(gets_result() ? bytes * static_cast<std::size_t>(ranks_) : 0);
  const std::size_t result = rooms.add(gets_result() ? request_.output.bytes : 0);
  const std::size_t scratch = rooms.add(first.scratch_bytes);
  std::byte* work = memory_.reserve(rooms.bytes());
  first_ = work + segments;
  result_ = result_or(work + result);
  reducer_ = nullptr;
  const int error = take_input(work + input);
  buffers_.base = {const_cast<std::byte*>(input_), first_, work + scratch};
  return error;
}

int OrderedExchange::end_gathered() {
  if (!gets_result()) return 0;
  const Part part = result();
  combine(first_, request_.input.bytes, part.first, result_, part.count);
  return give_result(result_);
}

// ---- Exchanged ----

int OrderedExchange::begin_exchanged(const BoundSchedule& first) {
  const auto ranks = static_cast<std::size_t>(ranks_);
  const std::size_t share_bytes = share_ * element_bytes_, all_bytes = share_bytes * ranks;
  const bool shares = is_share(request_.call.collective);
  // Where the shares fill the vector its data may stay where they are.
  const bool whole = all_bytes == request_.input.bytes;
  const bool in_place = whole && !shares && gets_result() && request_.output.device == nullptr;
  Rooms rooms;
  const std::size_t given = rooms.add(whole && request_.input.device == nullptr ? 0 : all_bytes);
  const std::size_t taken = rooms.add(all_bytes);
  const std::size_t own = rooms.add(share_bytes);
  const std::size_t result = rooms.add(in_place || !gets_result() ? 0 : all_bytes);
  const std::size_t scratch =
      rooms.add(std::max(first.scratch_bytes, second_ != nullptr ? second_->schedule.scratch_bytes : 0));
  std::byte* work = memory_.reserve(rooms.bytes());
  first_ = work + taken;
  second_data_ = work + own;
  scratch_ = work + scratch;
  result_ = in_place ? request_.output.address : work + result;
  if (shares) result_ = result_or(work + own);
  reducer_ = nullptr;
  const int error = take_input(work + given);
  if (!whole && error == 0) {
    // From the last rank's on, as a device's data lie packed at the same place.
    for (int rank = ranks_ - 1; rank >= 0; --rank) {
      const Part part = part_of(rank);
      std::byte* slot = work + given + static_cast<std::size_t>(rank) * share_bytes;
      std::memmove(slot, input_ + part.first * element_bytes_, part.count * element_bytes_);
      std::memset(slot + part.count * element_bytes_, 0, share_bytes - part.count * element_bytes_);
    }
    input_ = work + given;
  }
  buffers_.base = {const_cast<std::byte*>(input_), first_, scratch_};
  return error;
}

void OrderedExchange::rest_exchanged() {
  const std::size_t share_bytes = share_ * element_bytes_;
  const auto place = static_cast<std::size_t>(rank_) * share_bytes;
  const bool all = request_.call.collective == Collective::allreduce;
  if (all) second_data_ = result_ + place;
  if (is_share(request_.call.collective)) second_data_ = result_;
  const std::size_t count = is_share(request_.call.collective) ? part_of(rank_).count : share_;
  combine(first_, share_bytes, 0, second_data_, count);
  buffers_.base = {second_data_, result_, scratch_};
}

// ---- Wide ----

int OrderedExchange::begin_wide(const BoundSchedule& first) {
  const std::size_t reals = elements() * wide_->reals;
  const std::size_t own = is_share(request_.call.collective) ? result().count * wide_->reals : 0;
  Rooms rooms;
  const std::size_t input = rooms.add(request_.input.device != nullptr ? request_.input.bytes : 0);
  const std::size_t keys = rooms.add(reals * wide_->keys.element_bytes);
  const std::size_t steps = rooms.add(reals * wide_->steps.element_bytes);
  const std::size_t sum = rooms.add(own * wide_->steps.element_bytes);
  const std::size_t result = rooms.add(request_.output.device != nullptr ? request_.output.bytes : 0);
  const std::size_t scratch = rooms.add(std::max(first.scratch_bytes, second_->schedule.scratch_bytes));
  std::byte* work = memory_.reserve(rooms.bytes());
  first_ = work + keys;
  second_data_ = work + steps;
  scratch_ = work + scratch;
  result_ = result_or(work + result);
  reducer_ = &wide_->keys;
  const int error = take_input(work + input);
  if (error == 0) wide_->make_keys(first_, input_, reals);
  buffers_.base = {first_, first_, scratch_};
  sums_ = own > 0 || is_share(request_.call.collective) ? work + sum : second_data_;
  return error;
}

void OrderedExchange::rest_wide() {
  wide_->cut(second_data_, input_, first_, elements() * wide_->reals);
  reducer_ = &wide_->steps;
  buffers_.base = {second_data_, sums_, scratch_};
}

int OrderedExchange::end_wide() {
  if (!gets_result()) return 0;
  const Part part = result();
  const std::byte* keys = first_ + part.first * wide_->reals * wide_->keys.element_bytes;
  wide_->round(result_, sums_, keys, part.count * wide_->reals);
  return give_result(result_);
}

}  // namespace plait::runtime
