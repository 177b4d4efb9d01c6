#include "tl/engine.h"

#include <algorithm>
#include <string>

#include "core/work_team.h"
#include "tl/data_flow.h"
#include "tl/memory.h"

namespace plait::tl {
namespace {

// Results of this size on are written past the caches. Two ranks beside a shared L3 of 32 MiB: bcast of 4 / 8 / 16 MiB
// 205 / 450 / 1900 us through the caches, 206 / 408 / 880 us past them.
constexpr std::uint64_t past_caches_from = 8 * 1024 * 1024;

// Long copies and reductions are cut so that the channels get a glance in between; of each thread that works on them.
constexpr std::uint64_t local_piece_bytes = 128 * 1024;

}  // namespace

Engine::Engine(const Channels& channels, WaitPolicy wait)
    : channels_(channels),
      wait_strategy_(wait),
      failure_(wait.failure),
      agree_on_reason_(wait.agree_on_reason),
      context_(wait.context) {
  for (std::size_t kind = 0; kind < channels.size(); ++kind) {
    if (channels[kind] == nullptr) continue;
    present_[present_count_++] = channels[kind];
    if (all_channel_traits[kind].needs_host) over_host_ = channels[kind];
  }
}

// False when another rank has failed.
bool Engine::wait(bool may_progress_host) {
  wait_strategy_.wait(present(), may_progress_host);
  return failure_ == nullptr || failure_->ok();
}

Status Engine::run(const BoundSchedule& schedule, const Buffers& buffers, const Reducer* reducer, StepTrace* trace) {
  const Result<bool> complete = begin(schedule, buffers, reducer, trace);
  if (complete.ok() && *complete) return {};
  Status status = complete.ok() ? run_turns() : complete.status();
  wait_strategy_.reset();
  if (status.ok()) return {};
  if (agree_on_reason_ != nullptr) status = agree_on_reason_(context_, status);
  give_up(status);
  return status;
}

Result<bool> Engine::start(const BoundSchedule& schedule, const Buffers& buffers, const Reducer* reducer,
                           StepTrace* trace) {
  return begin(schedule, buffers, reducer, trace);
}

Result<bool> Engine::progress() { return move_on(); }

Result<bool> Engine::begin(const BoundSchedule& schedule, const Buffers& buffers, const Reducer* reducer,
                           StepTrace* trace) {
  take_on(schedule, buffers, reducer, trace);
  if (alone_) {
    moved_ = true;
    return start_alone();
  }
  prepare();
  return move_on();
}

Result<bool> Engine::move_on() {
  const Result<Turn> made = turn();
  if (!made.ok()) return made.status();
  if (*made == Turn::idle && failure_ != nullptr && !failure_->ok()) return *failure_;
  moved_ = *made != Turn::idle;
  return *made == Turn::complete;
}

void Engine::take_on(const BoundSchedule& schedule, const Buffers& buffers, const Reducer* reducer, StepTrace* trace) {
  schedule_ = &schedule;
  buffers_ = &buffers;
  reducer_ = reducer;
  trace_ = trace;
  flow_ = buffers.flow;
  alone_ = schedule.steps.size() == 1 && trace == nullptr && flow_ == nullptr && !is_local(schedule.steps.front().kind);
}

// Within a node a rank that is stopped may be waited for: the network's peers come first.
void Engine::give_up(const Status& cause) {
  const std::span<Channel* const> channels = present();
  for (Channel* channel : channels) channel->announce_failure(cause);
  for (auto channel = channels.rbegin(); channel != channels.rend(); ++channel) (*channel)->abandon(cause);
}

void Engine::make_room(const BoundSchedule& schedule) {
  size_for(schedule);
  wait_strategy_.make_room(schedule.lanes.size());
  for (Channel* channel : present()) channel->make_room(schedule, 0);
}

void Engine::size_for(const BoundSchedule& schedule) {
  const std::size_t steps = schedule.steps.size();
  if (waiting_for_.size() < steps) {
    waiting_for_.resize(steps);
    transfers_.resize(steps);
    ready_.steps.resize(steps);
    local_.steps.resize(steps);
    completed_.reserve(steps);
  }
  if (lane_next_.size() < schedule.lanes.size()) lane_next_.resize(schedule.lanes.size());
}

void Engine::prepare() {
  const std::size_t steps = schedule_->steps.size();
  size_for(*schedule_);
  if (trace_ != nullptr && begin_ns_.size() < steps) begin_ns_.resize(steps);
  std::fill_n(lane_next_.begin(), schedule_->lanes.size(), 0u);
  ready_.head = ready_.tail = local_.head = local_.tail = 0;
  local_done_ = 0;
  remaining_ = static_cast<std::uint32_t>(steps);
  for (std::uint32_t step = 0; step < steps; ++step) waiting_for_[step] = schedule_->steps[step].predecessors;
  if (flow_ != nullptr) [[unlikely]]
    for (std::uint32_t step = 0; step < steps; ++step) waiting_for_[step] += flow_->awaits(step) ? 1 : 0;
  for (std::uint32_t step = 0; step < steps; ++step)
    if (waiting_for_[step] == 0) offer(step);
}

Status Engine::run_turns() {
  wait_strategy_.reset();
  while (true) {
    const Result<Turn> made = turn();
    if (!made.ok()) return made.status();
    if (*made == Turn::complete) return {};
    if (*made == Turn::moved)
      wait_strategy_.reset();
    else if (!wait(!drives_host()))
      return *failure_;
  }
  wait_strategy_.reset();
  return {};
}

// Whether a channel calls the host's progress itself.
bool Engine::drives_host() const { return over_host_ != nullptr && over_host_->active() > 0; }

// What can start is started, one piece of local work is done, and every channel gets a glance.
Result<Engine::Turn> Engine::turn() {
  if (alone_) return turn_alone();
  if (Status status = start_ready(); !status.ok()) return status;
  if (is_through()) return Turn::complete;
  const bool worked = !local_.empty();
  if (worked) run_local_piece();
  Result<bool> moved = glance();
  if (!moved.ok()) return moved.status();
  if (is_through()) return Turn::complete;
  if (worked || *moved || !ready_.empty()) return Turn::moved;
  if (!in_flight_) return Status(Code::internal, "engine: no step of the schedule can start");
  return Turn::idle;
}

// Small calls within a node are a single step.
Result<bool> Engine::start_alone() {
  if (transfers_.empty()) prepare();
  Transfer& transfer = transfers_.front();
  Channel* channel = channels_[index_of(schedule_->steps.front().channel)];
  if (channel == nullptr) return absent_channel(0);
  fill(transfer, 0);
  transfer.last_of_lane = true;
  return channel->start(transfer);
}

Result<Engine::Turn> Engine::turn_alone() {
  Channel* channel = channels_[index_of(schedule_->steps.front().channel)];
  completed_.clear();
  const Result<bool> moved = channel->progress(completed_);
  if (!moved.ok()) return moved.status();
  if (!completed_.empty()) return Turn::complete;
  return *moved ? Turn::moved : Turn::idle;
}

Status Engine::start_ready() {
  while (!ready_.empty())
    if (Status status = start_step(ready_.steps[ready_.head++]); !status.ok()) return status;
  return {};
}

Status Engine::absent_channel(std::uint32_t index) const {
  return {Code::internal, "engine: step " + std::to_string(index) + " names an absent channel"};
}

void Engine::fill(Transfer& transfer, std::uint32_t index) const {
  const BoundStep& step = schedule_->steps[index];
  transfer.kind = step.kind;
  transfer.incoming_left = step.incoming_left;
  transfer.past_caches = schedule_->output_bytes >= past_caches_from;
  transfer.rail = step.rail;
  transfer.peer = step.peer;
  transfer.step = index;
  transfer.bytes = step.bytes;
  transfer.element_bytes = schedule_->element_bytes;
  transfer.memory = memory(step.kind == StepKind::send ? step.source : step.destination);
  transfer.operand = memory(step.kind == StepKind::shm_collective ? step.source : step.operand);
  transfer.collective =
      step.collective < 0 ? nullptr : &schedule_->collectives[static_cast<std::size_t>(step.collective)];
  transfer.reducer = reducer_;
  transfer.progressed = 0;
  transfer.next = nullptr;
}

Status Engine::start_step(std::uint32_t index) {
  const BoundStep& step = schedule_->steps[index];
  Channel* channel = channels_[index_of(step.channel)];
  if (channel == nullptr) return absent_channel(index);
  Transfer& transfer = transfers_[index];
  fill(transfer, index);
  const SpanList lane = schedule_->lanes[static_cast<std::size_t>(step.lane)].steps;
  transfer.last_of_lane = lane_next_[static_cast<std::size_t>(step.lane)] + 1 == lane.count;
  if (trace_ != nullptr) begin_ns_[index] = monotonic_ns();
  Result<bool> done = channel->start(transfer);
  if (!done.ok()) return done.status();

  const std::uint32_t position = ++lane_next_[static_cast<std::size_t>(step.lane)];
  if (position < lane.count) {
    const std::uint32_t follower = schedule_->lane_steps[lane.first + position];
    if (waiting_for_[follower] == 0) ready_.push(follower);
  }
  if (*done) complete(index);
  return {};
}

void Engine::run_local_piece() {
  const std::uint32_t index = local_.steps[local_.head];
  const BoundStep& step = schedule_->steps[index];
  if (trace_ != nullptr && local_done_ == 0) begin_ns_[index] = monotonic_ns();
  const std::size_t element = std::max<std::size_t>(schedule_->element_bytes, 1);
  const std::uint64_t most = local_piece_bytes * static_cast<std::uint64_t>(own_threads());
  const std::uint64_t whole = std::max<std::uint64_t>(most / element * element, element);
  const std::uint64_t piece = std::min(whole, step.bytes - local_done_);
  if (step.kind == StepKind::copy)
    copy(memory(step.destination), memory(step.source), local_done_, piece);
  else
    reduce(*reducer_, memory(step.destination), memory(step.source), memory(step.operand), local_done_, piece);
  local_done_ += piece;
  if (local_done_ < step.bytes) return;
  local_done_ = 0;
  ++local_.head;
  complete(index);
}

Result<bool> Engine::glance() {
  bool moved = false;
  in_flight_ = false;
  for (Channel* channel : present()) {
    if (channel->active() == 0) continue;
    in_flight_ = true;
    completed_.clear();
    Result<bool> progress = channel->progress(completed_);
    if (!progress.ok()) return progress;
    moved |= *progress;
    for (const Transfer* transfer : completed_) complete(transfer->step);
  }
  if (flow_ == nullptr) [[likely]]
    return moved;
  const Result<bool> flowed = glance_at_flow();
  return flowed.ok() ? Result<bool>(moved || *flowed) : flowed;
}

Result<bool> Engine::glance_at_flow() {
  released_.clear();
  const Result<bool> moved = flow_->progress(released_);
  if (!moved.ok()) return moved;
  for (const std::uint32_t step : released_)
    if (--waiting_for_[step] == 0) offer(step);
  in_flight_ = in_flight_ || remaining_ == 0 || !released_.empty() || flow_->active();
  return moved;
}

bool Engine::is_through() const { return remaining_ == 0 && (flow_ == nullptr || flow_->complete()); }

void Engine::complete(std::uint32_t index) {
  if (trace_ != nullptr) record(index);
  const SpanList successors = schedule_->steps[index].successors;
  for (std::uint32_t i = 0; i < successors.count; ++i) {
    const std::uint32_t successor = schedule_->successors[successors.first + i];
    if (--waiting_for_[successor] == 0) offer(successor);
  }
  if (flow_ != nullptr) [[unlikely]]
    flow_->note_complete(index);
  --remaining_;
}

// A step whose predecessors are complete starts at once, except that a send or receive waits for its turn in its lane;
// the one before it passes the turn on when it starts.
void Engine::offer(std::uint32_t index) {
  const BoundStep& step = schedule_->steps[index];
  if (is_local(step.kind)) {
    local_.push(index);
    return;
  }
  const SpanList lane = schedule_->lanes[static_cast<std::size_t>(step.lane)].steps;
  const std::uint32_t position = lane_next_[static_cast<std::size_t>(step.lane)];
  if (schedule_->lane_steps[lane.first + position] == index) ready_.push(index);
}

void Engine::record(std::uint32_t index) {
  const BoundStep& step = schedule_->steps[index];
  trace_->add({.begin_ns = begin_ns_[index],
               .end_ns = monotonic_ns(),
               .bytes = step.bytes,
               .call = 0,
               .step = index,
               .peer = step.peer,
               .kind = step.kind,
               .channel = step.channel});
}

Memory Engine::memory(SpanList list) const {
  return {schedule_->spans.data() + list.first, list.count, buffers_, schedule_->grids.data()};
}

}  // namespace plait::tl
