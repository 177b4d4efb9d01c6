#include "plugin/fusion.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "plugin/bootstrap.h"
#include "plugin/overlap_counts.h"
#include "plugin/progress_share.h"
#include "plugin/reasons.h"
#include "tl/trace.h"

namespace plait {
namespace {

// A rank that does not wait takes part in an agreement all the same after so long: another one may wait for a call that
// this one has posted. Short against a step, long against an agreement.
constexpr std::uint64_t patience_ns = 20'000'000;

constexpr std::size_t agreement_bytes = 2 * sizeof(std::int64_t);

const Reducer& agreement_reducer() {
  static const Reducer reducer = make_reducer(Op::min, Element::i64);
  return reducer;
}

bool uses_host(const PreparedCall& prepared) {
  return (prepared.schedule.channels_used & std::uint32_t{1} << static_cast<unsigned>(ChannelKind::mpi)) != 0;
}

// Operations of the same group at the head of the queue.
struct Arrived {
  std::size_t calls = 0;
  const Operation* last = nullptr;
  bool closed = false;  // something else comes after them
};

Arrived arrived_of(const OperationQueue& queue) {
  Arrived arrived;
  const std::uint64_t unit = queue.first->membership.unit;
  const Operation* operation = queue.first;
  for (; operation != nullptr && operation->membership.unit == unit; operation = operation->next) {
    ++arrived.calls;
    arrived.last = operation;
  }
  arrived.closed = operation != nullptr;
  return arrived;
}

const std::byte* input_of(const Request& request) {
  return request.sharing == Sharing::input_in_output ? request.output.address : request.input.address;
}

}  // namespace

Fusion::Fusion(Communicator& communicator, const OverlapPlan& plan)
    : communicator_(communicator), plan_(plan), matcher_(plan), runs_(plan.groups.size()) {}

// ---- Posting ----

void Fusion::prepare_agreement() {
  Machinery& machinery = *communicator_.machinery;
  if (prepared_for_ == &machinery) return;
  const Call call{.collective = Collective::allreduce, .count = 2, .element_bytes = sizeof(std::int64_t)};
  agreement_ = machinery.schedules.hold({.call = call, .in_place = true, .way = planners_way});
  if (agreement_->accelerated) {
    agreement_needs_host_ = uses_host(*agreement_);
    const std::size_t bytes = WorkMemory::padded(agreement_bytes);
    std::byte* work = agreement_memory_.reserve(bytes + agreement_->schedule.scratch_bytes);
    agreement_buffers_.base = {work, work, work + bytes};
  }
  prepared_for_ = &machinery;
}

FusedRun& Fusion::unused_run(std::size_t group) {
  for (const std::shared_ptr<FusedRun>& run : runs_[group])
    if (!run->in_use.load(std::memory_order_acquire)) return *run;
  return *runs_[group].emplace_back(std::make_shared<FusedRun>());
}

std::shared_ptr<FusedRun> Fusion::make_run(const Operation& last) {
  const std::size_t group = last.membership.group;
  FusedRun& run = unused_run(group);
  Call call = last.request.call;
  call.count = open_.bytes / call.element_bytes;
  run.bytes = open_.bytes;
  run.prepared = communicator_.machinery->schedules.hold({.call = call, .in_place = true, .way = settled_way});
  if (!run.prepared->accelerated) return nullptr;
  run.needs_host = uses_host(*run.prepared);
  const std::size_t bytes = WorkMemory::padded(run.bytes);
  std::byte* work = run.memory.reserve(bytes + run.prepared->schedule.scratch_bytes);
  run.buffers.base = {work, work, work + bytes};
  run.in_use.store(true, std::memory_order_relaxed);
  const auto same = [&](const std::shared_ptr<FusedRun>& other) { return other.get() == &run; };
  return *std::ranges::find_if(runs_[group], same);
}

void Fusion::enlist(Operation& operation) {
  OverlapCounts& counts = OverlapCounts::instance();
  counts.turns.forget();
  counts.time.forget_turn();
  const Request& request = operation.request;
  const std::size_t bytes = request.call.count * request.call.element_bytes;
  const auto place = matcher_.next(bytes);
  if (operation.prepared == nullptr) return;
  prepare_agreement();
  const bool usable = agreement_->accelerated && request.output.direct && request.input.direct;
  if (!place.has_value() || !usable) {
    open_ = {};
    counts.count_alone(place.has_value() ? reasons::overlap_layout : reasons::not_in_overlap_plan);
    return;
  }
  const Kind kind{.kernel = request.reducer->kernel,
                  .element_bytes = request.call.element_bytes,
                  .in_place = request.sharing != Sharing::none};
  const bool joins = open_.unit != 0 && open_.next_call == place->call && open_.kind == kind;
  if (!joins) {
    forget_open_requests(communicator_);
    open_ = {.unit = ++units_, .kind = kind};
  }
  open_.next_call = place->call + 1;
  open_.bytes += bytes;
  ++open_.calls;
  operation.membership.unit = open_.unit;
  operation.membership.group = place->group;
  operation.membership.left = place->left;
  operation.membership.duty = helper_duty(plan_.groups[place->group].share);
  operation.membership.single = open_.calls == 1 && place->left == 1;
  operation.needs_host |= agreement_needs_host_;
  if (place->left > 1) return;
  if (open_.calls > 1) operation.membership.run = make_run(operation);
  open_ = {};
  forget_open_requests(communicator_);
}

// ---- Running ----

Fusion::Turn Fusion::fail(const Status& status) {
  failure_ = status;
  phase_ = Phase::idle;
  return Turn::failed;
}

// In groups of one call, and in those that were begun early.
Fusion::Turn Fusion::run_by_itself(OperationQueue& queue) {
  Membership& membership = queue.first->membership;
  if (membership.counted) return Turn::by_itself;
  membership.counted = true;
  OverlapCounts& counts = OverlapCounts::instance();
  const std::size_t bytes = queue.first->request.call.count * queue.first->request.call.element_bytes;
  if (plan_.groups[membership.group].calls == 1)
    counts.count_fused(membership.group, bytes);
  else
    counts.count_alone(membership.single ? reasons::group_incomplete : reasons::group_begun_early);
  return Turn::by_itself;
}

// Whether this rank has a say in the next agreement; `wish_` is whether it waits for what is there.
bool Fusion::may_enter(const Operation& head, std::size_t arrived, bool closed) {
  full_ = arrived == head.membership.left;
  wish_ = !full_ && (closed || OverlapCounts::instance().turns.waits());
  if (full_ || wish_) return true;
  const std::uint64_t now_ns = monotonic_ns();
  if (seen_unit_ != head.membership.unit) {
    seen_unit_ = head.membership.unit;
    since_ns_ = now_ns;
  }
  return now_ns - since_ns_ > patience_ns;
}

Fusion::Turn Fusion::begin_agreement(OperationQueue& queue, bool may_call_host) {
  const Operation& head = *queue.first;
  if (head.membership.single || head.membership.unit == alone_unit_) return run_by_itself(queue);
  if (agreement_needs_host_ && !may_call_host) return Turn::waiting;
  const Arrived arrived = arrived_of(queue);
  if (!may_enter(head, arrived.calls, arrived.closed)) return Turn::waiting;
  numbers_ = {static_cast<std::int64_t>(arrived.calls), wish_ ? -1 : 0};
  std::memcpy(agreement_buffers_.base[0], numbers_.data(), agreement_bytes);
  const Result<bool> complete =
      communicator_.machinery->engine.start(agreement_->schedule, agreement_buffers_, &agreement_reducer(), nullptr);
  if (!complete.ok()) return fail(complete.status());
  phase_ = Phase::agreeing;
  return *complete ? end_agreement(queue, may_call_host) : Turn::moved;
}

Fusion::Turn Fusion::end_agreement(OperationQueue& queue, bool may_call_host) {
  OverlapCounts& counts = OverlapCounts::instance();
  counts.count_agreement();
  phase_ = Phase::idle;
  std::memcpy(numbers_.data(), agreement_buffers_.base[0], agreement_bytes);
  const Operation& head = *queue.first;
  const auto calls = static_cast<std::size_t>(numbers_[0]);
  if (calls == head.membership.left) {
    phase_ = Phase::agreed;
    ended_ = calls;
    return begin_run(queue, may_call_host);
  }
  if (numbers_[1] < 0) {
    alone_unit_ = head.membership.unit;
    counts.count_early();
    return run_by_itself(queue);
  }
  seen_unit_ = head.membership.unit;
  since_ns_ = monotonic_ns();
  return Turn::moved;
}

Fusion::Turn Fusion::begin_run(OperationQueue& queue, bool may_call_host) {
  Operation* operation = queue.first;
  for (std::size_t i = 1; i < ended_; ++i) operation = operation->next;
  run_ = operation->membership.run;
  if (run_ != nullptr && run_->needs_host && !may_call_host) return Turn::waiting;
  phase_ = Phase::idle;
  if (run_ == nullptr) {  // no plan for so much data, on no rank
    alone_unit_ = queue.first->membership.unit;
    return run_by_itself(queue);
  }
  std::byte* packed = run_->buffers.base[0];
  operation = queue.first;
  for (std::size_t i = 0; i < ended_; ++i, operation = operation->next) {
    const std::size_t bytes = operation->request.call.count * operation->request.call.element_bytes;
    std::memcpy(packed, input_of(operation->request), bytes);
    packed += bytes;
  }
  Membership& head = queue.first->membership;
  head.enter();
  const Result<bool> complete = communicator_.machinery->engine.start(run_->prepared->schedule, run_->buffers,
                                                                      queue.first->request.reducer, nullptr);
  if (!complete.ok()) return fail(complete.status());
  phase_ = Phase::running;
  return *complete ? end_run(queue) : Turn::moved;
}

Fusion::Turn Fusion::end_run(OperationQueue& queue) {
  phase_ = Phase::idle;
  queue.first->membership.leave();
  OverlapCounts::instance().count_fused(queue.first->membership.group, run_->bytes);
  const std::byte* packed = run_->buffers.base[0];
  Operation* operation = queue.first;
  for (std::size_t i = 0; i < ended_; ++i, operation = operation->next) {
    const std::size_t bytes = operation->request.call.count * operation->request.call.element_bytes;
    std::memcpy(operation->request.output.address, packed, bytes);
    packed += bytes;
    operation->staging = {};
    operation->membership.plan = run_->prepared->plan;
    operation->membership.channels = run_->prepared->channels;
    operation->membership.run.reset();
  }
  run_->prepared.reset();
  run_->in_use.store(false, std::memory_order_release);
  run_.reset();
  return Turn::ended;
}

Fusion::Turn Fusion::turn(OperationQueue& queue, bool may_call_host) {
  if (phase_ == Phase::idle) return begin_agreement(queue, may_call_host);
  if (phase_ == Phase::agreed) return begin_run(queue, may_call_host);
  const bool calls_host = phase_ == Phase::agreeing ? agreement_needs_host_ : run_->needs_host;
  if (calls_host && !may_call_host) return Turn::waiting;
  Engine& engine = communicator_.machinery->engine;
  const Result<bool> complete = engine.progress();
  if (!complete.ok()) return fail(complete.status());
  if (!*complete) return engine.moved() ? Turn::moved : Turn::waiting;
  return phase_ == Phase::agreeing ? end_agreement(queue, may_call_host) : end_run(queue);
}

void Membership::enter() {
  if (std::exchange(entered, true)) return;
  ProgressDuty::instance().enter(duty);
  OverlapCounts::instance().time.begin(monotonic_ns());
}

void Membership::give_back_run() {
  if (run == nullptr) return;
  run->prepared.reset();
  run->in_use.store(false, std::memory_order_release);
  run.reset();
}

void Membership::leave() {
  if (!std::exchange(entered, false)) return;
  ProgressDuty::instance().leave(duty);
  OverlapCounts::instance().time.end(monotonic_ns());
}

Fusion* fusion_of(Communicator& communicator) {
  if (process().overlap == nullptr) return nullptr;
  if (communicator.fusion == nullptr) communicator.fusion = std::make_unique<Fusion>(communicator, *process().overlap);
  return communicator.fusion.get();
}

// ---- Requests of groups that are not full ----

namespace {

struct OpenRequests {
  std::mutex guard;
  std::map<const Communicator*, std::vector<MPI_Request>> of;
};
OpenRequests& open_requests() {
  static auto* all = new OpenRequests;  // never destroyed: calls may come until the process ends
  return *all;
}
constinit std::atomic<int> communicators_with_open_requests{0};

}  // namespace

void note_open_request(const Communicator& communicator, MPI_Request request) {
  const std::scoped_lock lock(open_requests().guard);
  std::vector<MPI_Request>& requests = open_requests().of[&communicator];
  if (requests.empty()) communicators_with_open_requests.fetch_add(1, std::memory_order_relaxed);
  requests.push_back(request);
}

void forget_open_requests(const Communicator& communicator) {
  if (communicators_with_open_requests.load(std::memory_order_relaxed) == 0) return;
  const std::scoped_lock lock(open_requests().guard);
  const auto found = open_requests().of.find(&communicator);
  if (found == open_requests().of.end()) return;
  open_requests().of.erase(found);
  communicators_with_open_requests.fetch_sub(1, std::memory_order_relaxed);
}

void note_wait_for(MPI_Request request) {
  if (communicators_with_open_requests.load(std::memory_order_relaxed) == 0) return;
  const std::scoped_lock lock(open_requests().guard);
  for (const auto& [communicator, requests] : open_requests().of)
    if (std::ranges::find(requests, request) != requests.end()) OverlapCounts::instance().turns.note_wait();
}

}  // namespace plait
