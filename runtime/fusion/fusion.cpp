#include "runtime/fusion/fusion.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <span>
#include <utility>

#include "runtime/execution/caller.h"
#include "runtime/fusion/overlap_counts.h"
#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "runtime/progress/progress.h"
#include "runtime/progress/progress_share.h"
#include "runtime/team/team.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

// A rank that does not wait takes part in an agreement all the same after so long: another one may wait for a call that
// this one has posted. Short against a step, long against an agreement.
constexpr std::uint64_t patience_ns = 20'000'000;

constexpr std::size_t agreement_values = 2;
constexpr std::size_t exchange_values = 64;  // of a learner's question at a time

const Reducer& agreement_reducer() {
  static const Reducer reducer = make_reducer(Op::min, Element::i64);
  return reducer;
}

const Reducer& exchange_reducer() {
  static const Reducer reducer = make_reducer(Op::max, Element::f64);
  return reducer;
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

std::size_t bytes_of(const Operation& operation) {
  return operation.request.call.count * operation.request.call.element_bytes;
}

// The helper threads' share while its data, or its group's, is under way.
void enter_share(Membership& membership) {
  if (membership.share.duty == 0 || std::exchange(membership.entered, true)) return;
  ProgressShare::instance().enter(membership.share);
  OverlapCounts::instance().time.begin(monotonic_ns());
}

void leave_share(Membership& membership) {
  if (!std::exchange(membership.entered, false)) return;
  ProgressShare::instance().leave(membership.share);
  OverlapCounts::instance().time.end(monotonic_ns());
}

double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

}  // namespace

Fusion::Fusion(Communicator& communicator, std::shared_ptr<const OverlapPlan> plan)
    : communicator_(communicator),
      found_ns_(std::make_shared<std::atomic<std::uint64_t>>(0)),
      published_(plan),
      plan_(std::move(plan)) {
  if (plan_ != nullptr)
    matcher_ = std::make_unique<StepMatcher>(*plan_);
  else
    learner_ = std::make_unique<OverlapLearner>();
}

Fusion::~Fusion() = default;

// ---- Posting ----

void Fusion::prepare() {
  if (prepared_for_ == communicator_.team.get()) return;
  agreement_.prepare(*communicator_.team, agreement_values, agreement_reducer());
  if (job().learns_overlap) exchange_.prepare(*communicator_.team, exchange_values, exchange_reducer());
  prepared_for_ = communicator_.team.get();
}

bool Fusion::can_consult() const {
  return agreement_.possible() && (exchange_.prepared() == nullptr || exchange_.possible());
}

std::shared_ptr<FusedPlans> Fusion::fused_plans(std::size_t element_bytes) {
  std::shared_ptr<const OverlapPlan> plan;
  {
    const std::scoped_lock lock(guard_);
    plan = published_;
  }
  if (plan == nullptr || short_of_memory_) {
    fused_.clear();
    return nullptr;
  }
  ScheduleCache& schedules = communicator_.team->schedules;
  const auto outdated = [&](const std::shared_ptr<FusedPlans>& fused) {
    return fused->plan != plan || fused->changes != schedules.changes();
  };
  std::erase_if(fused_, outdated);
  const auto found = std::ranges::find(fused_, element_bytes, [](const auto& fused) { return fused->element_bytes; });
  if (found != fused_.end()) return *found;
  try {
    return fused_.emplace_back(make_fused_plans(schedules, std::move(plan), element_bytes));
  } catch (const std::bad_alloc&) {
    short_of_memory_ = true;
    return nullptr;
  }
}

void Fusion::enlist(Operation& operation) {
  if (operation.request.call.collective != Collective::allreduce) return;
  OverlapCounts& counts = OverlapCounts::instance();
  const std::uint64_t now_ns = monotonic_ns();
  communicator_.progress.host_turns.forget();
  turns_at_post_.store(communicator_.progress.host_turns.in_all(), std::memory_order_relaxed);
  counts.time.forget_turn();
  if (operation.prepared == nullptr) return;
  prepare();
  const Request& request = operation.request;
  if (!can_consult() || !request.output.direct || !request.input.direct)
    return counts.count_alone(reasons::overlap_layout);
  Membership& membership = operation.membership;
  membership.enlisted = true;
  membership.number = numbers_given_++;
  membership.plans = fused_plans(request.call.element_bytes);
  membership.posted_ns = now_ns;
  membership.computed_ns = left_mpi_ns_ == 0 ? 0 : now_ns - std::max(left_mpi_ns_, HostTurns::own_last_ns());
  // Turns of the host's would not do: where the helper completes requests, a wait that comes late takes none.
  membership.found_ns = found_ns_;
  const bool waited = found_ns_->load(std::memory_order_acquire) > left_mpi_ns_;
  membership.all_done_before = waited && communicator_.operations.pending.load(std::memory_order_acquire) == 0;
  operation.needs_host |= agreement_.needs_host() || exchange_.needs_host();
}

void Fusion::note_request(RequestKey request, const Operation& operation) noexcept {
  awaited_.add(request, operation.membership.number);
}

void Fusion::note_posted() { left_mpi_ns_ = monotonic_ns(); }

void Fusion::note_found_complete(const Operation& operation) {
  if (operation.membership.found_ns == nullptr) return;
  const std::uint64_t now_ns = monotonic_ns();
  HostTurns::note_own(now_ns);
  operation.membership.found_ns->store(now_ns, std::memory_order_release);
}

// ---- Running ----

Result<bool> Fusion::progress_running(bool may_call_host) {
  if (phase_ == Phase::agreeing) return agreement_.progress(may_call_host);
  if (phase_ == Phase::asking) return exchange_.progress(may_call_host);
  return progress(*communicator_.team, run_execution_, may_call_host);
}

bool Fusion::running_needs_host() const {
  return phase_ == Phase::agreeing ? agreement_.needs_host()
         : phase_ == Phase::asking ? exchange_.needs_host()
                                   : run_->needs_host[run_group_];
}

Fusion::Turn Fusion::fail(const Status& status) {
  failure_ = status;
  phase_ = Phase::idle;
  run_.reset();
  return Turn::failed;
}

void Fusion::note_end(Operation& operation) {
  Membership& membership = operation.membership;
  leave_share(membership);
  awaited_.remove(membership.number);
  if (learner_ == nullptr || learner_->settled()) return;
  learner_->note({.bytes = bytes_of(operation),
                  .computed = seconds(membership.computed_ns),
                  .posted = seconds(membership.posted_ns),
                  .begin = seconds(membership.begin_ns),
                  .end = seconds(monotonic_ns()),
                  .all_done_before = membership.all_done_before});
  if (learner_->settled()) note_verdict();
}

// ---- Learning ----

bool Fusion::asks(const Operation& head) {
  if (learner_ == nullptr || !question_.empty()) return learner_ != nullptr;
  question_ = learner_->question(head.membership.number, seconds(head.membership.posted_ns));
  asked_ = 0;
  asked_ns_ = monotonic_ns();
  return !question_.empty();
}

Fusion::Turn Fusion::begin_question(bool may_call_host) {
  if (exchange_.needs_host() && !may_call_host) return Turn::waiting;
  const std::size_t values = std::min(exchange_values, question_.size() - asked_);
  std::array<double, exchange_values> block{};
  std::copy_n(question_.begin() + static_cast<std::ptrdiff_t>(asked_), values, block.begin());
  const Result<bool> complete = exchange_.start(std::span<const double>(block), may_call_host);
  if (!complete.ok()) return fail(complete.status());
  phase_ = Phase::asking;
  return *complete ? Turn::ended : Turn::moved;  // ended: of the block
}

void Fusion::take_answer(std::uint64_t call) {
  const std::size_t blocks = (question_.size() + exchange_values - 1) / exchange_values;
  const double each = seconds(monotonic_ns() - asked_ns_) / static_cast<double>(blocks);
  learner_->answer(call, std::exchange(question_, {}), each);
  note_verdict();
  if (learner_->plan() == plan_) return;
  plan_ = learner_->plan();
  open_ = {};
  {
    const std::scoped_lock lock(guard_);
    published_ = plan_;
  }
  matcher_ = plan_ == nullptr ? nullptr : std::make_unique<StepMatcher>(*plan_);
  if (plan_ != nullptr) first_counted_ = OverlapCounts::instance().add(*plan_, communicator_.ranks);
}

// The same on all ranks.
void Fusion::note_verdict() {
  if (communicator_.rank != 0) return;
  OverlapCounts::instance().note_verdict(place_, {.ranks = communicator_.ranks, .calls = learner_->calls_of_step()},
                                         learner_->plan() != nullptr, learner_->verdict());
}

// ---- Groups ----

// In the order of the queue, and no further than the next question, whose answer may change the plan.
void Fusion::assign(OperationQueue& queue) {
  if (queue.last->membership.assigned) return;
  const std::uint64_t end = learner_ == nullptr ? ~std::uint64_t{0} : learner_->next_question();
  for (Operation* operation = queue.first; operation != nullptr; operation = operation->next) {
    Membership& membership = operation->membership;
    if (membership.assigned) continue;
    if (membership.enlisted && membership.number >= end) return;
    membership.assigned = true;
    if (membership.enlisted) assign(*operation);
  }
}

void Fusion::assign(Operation& operation) {
  const Request& request = operation.request;
  Membership& membership = operation.membership;
  const auto place = matcher_->next(bytes_of(operation));
  if (!place.has_value()) {
    open_ = {};
    return OverlapCounts::instance().count_alone(reasons::not_in_overlap_plan);
  }
  const OverlapGroup& group = plan_->groups[place->group];
  const Kind kind{.kernel = request.reducer->kernel,
                  .element_bytes = request.call.element_bytes,
                  .in_place = request.sharing != Sharing::none};
  const bool joins = open_.unit != 0 && open_.next_call == place->call && open_.kind == kind;
  if (!joins) open_ = {.unit = ++units_, .next_call = 0, .kind = kind};
  open_.next_call = place->call + 1;
  membership.unit = open_.unit;
  membership.group = place->group;
  membership.left = place->left;
  membership.share = group.share;
  membership.alone = group.calls == 1 || (!joins && place->call != group.first_call);
  // What follows in the group may not join what has begun without its first calls.
  if (place->left == 1 || membership.alone) open_ = {};
}

// In groups of one call, in those that were begun early, and where there is no plan.
Fusion::Turn Fusion::run_by_itself(Operation& head) {
  Membership& membership = head.membership;
  if (std::exchange(membership.counted, true)) return Turn::by_itself;
  membership.begin_ns = monotonic_ns();
  if (plan_ == nullptr || membership.unit == 0) {
    if (learner_ != nullptr) membership.share = {.threads = 1, .duty = learner_->duty(membership.number)};
    return Turn::by_itself;
  }
  OverlapCounts& counts = OverlapCounts::instance();
  if (plan_->groups[membership.group].calls == 1)
    counts.count_fused(first_counted_ + membership.group, bytes_of(head));
  else
    counts.count_alone(membership.alone ? reasons::group_incomplete : reasons::group_begun_early);
  return Turn::by_itself;
}

bool Fusion::program_waits() const {
  return awaited_.awaits_any() ||
         communicator_.progress.host_turns.waits(turns_at_post_.load(std::memory_order_relaxed));
}

// Whether the program waits, and has posted no more than these. It may have posted the others of the group and begun to
// wait since this turn took what had arrived: what the next turn finds is all that it waits for.
bool Fusion::waits_for_these(const Look& look) {
  const Look before = std::exchange(awaited_look_, program_waits() ? look : Look{});
  return awaited_look_ == look && before == look;
}

// Whether this rank has a say in the next agreement; `wish_` is whether it waits for what is there, or can have it only
// call by call.
bool Fusion::may_enter(const Operation& head, std::size_t arrived, bool closed, bool runnable) {
  full_ = arrived == head.membership.left;
  wish_ = full_ ? !runnable : closed || waits_for_these({.unit = head.membership.unit, .arrived = arrived});
  if (full_ || wish_) return true;
  const std::uint64_t now_ns = monotonic_ns();
  if (seen_unit_ != head.membership.unit) {
    seen_unit_ = head.membership.unit;
    since_ns_ = now_ns;
  }
  return now_ns - since_ns_ > patience_ns;
}

Fusion::Turn Fusion::begin_group(OperationQueue& queue, bool may_call_host) {
  Operation& head = *queue.first;
  if (plan_ != nullptr) assign(queue);
  const Membership& membership = head.membership;
  if (plan_ == nullptr || membership.unit == 0 || membership.alone || membership.unit == alone_unit_)
    return run_by_itself(head);
  return begin_agreement(queue, may_call_host);
}

Fusion::Turn Fusion::begin_agreement(OperationQueue& queue, bool may_call_host) {
  if (agreement_.needs_host() && !may_call_host) return Turn::waiting;
  const Operation& head = *queue.first;
  const Arrived arrived = arrived_of(queue);
  const FusedPlans* plans = arrived.last->membership.plans.get();
  const bool runnable = plans != nullptr && plans->plan == plan_ && plans->groups[head.membership.group] != nullptr;
  if (!may_enter(head, arrived.calls, arrived.closed, runnable)) return Turn::waiting;
  numbers_ = {full_ && !runnable ? 0 : static_cast<std::int64_t>(arrived.calls), wish_ ? -1 : 0};
  const Result<bool> complete = agreement_.start(std::span<const std::int64_t>(numbers_), may_call_host);
  if (!complete.ok()) return fail(complete.status());
  phase_ = Phase::agreeing;
  return *complete ? end_agreement(queue, may_call_host) : Turn::moved;
}

Fusion::Turn Fusion::end_agreement(OperationQueue& queue, bool may_call_host) {
  OverlapCounts& counts = OverlapCounts::instance();
  counts.count_agreement();
  phase_ = Phase::idle;
  agreement_.answer(std::span(numbers_));
  Operation& head = *queue.first;
  const auto calls = static_cast<std::size_t>(numbers_[0]);
  if (calls == head.membership.left) {
    phase_ = Phase::agreed;
    ended_ = calls;
    return begin_run(queue, may_call_host);
  }
  if (numbers_[1] < 0) {
    alone_unit_ = head.membership.unit;
    counts.count_early();
    return run_by_itself(head);
  }
  seen_unit_ = head.membership.unit;
  since_ns_ = monotonic_ns();
  return Turn::moved;
}

Fusion::Turn Fusion::begin_run(OperationQueue& queue, bool may_call_host) {
  Operation* operation = queue.first;
  for (std::size_t i = 1; i < ended_; ++i) operation = operation->next;
  run_ = operation->membership.plans;
  run_group_ = operation->membership.group;
  if (run_->needs_host[run_group_] && !may_call_host) return Turn::waiting;
  phase_ = Phase::idle;
  enter_share(queue.first->membership);
  run_->members.clear();
  operation = queue.first;
  for (std::size_t i = 0; i < ended_; ++i, operation = operation->next) run_->members.push_back(&operation->request);
  run_request_.reducer = queue.first->request.reducer;
  run_execution_ = {.schedule = &run_->groups[run_group_]->schedule, .staging = run_->staging, .group = &run_->members};
  bring_from_device(queue);
  const Result<bool> complete = runtime::start(*communicator_.team, run_request_, run_execution_, may_call_host);
  if (!complete.ok()) return fail(complete.status());
  phase_ = Phase::running;
  return *complete ? end_run(queue) : Turn::moved;
}

// Where some of their data lie in memory of a device: after what the program had asked the device for at each post.
void Fusion::bring_from_device(OperationQueue& queue) {
  if (std::ranges::none_of(run_->members, [](const Request* member) { return on_device(*member); })) return;
  lay_out(run_->members, *run_execution_.schedule, run_->memory, run_execution_.staging);
  Operation* operation = queue.first;
  for (std::size_t i = 0; i < ended_; ++i, operation = operation->next)
    if (operation->memory.has_flow()) run_->memory.flow().follow(operation->memory.flow());
}

Fusion::Turn Fusion::end_run(OperationQueue& queue) {
  phase_ = Phase::idle;
  if (const int error = finish(run_request_, run_execution_); error != 0) return fail(pack_error(error));
  const PreparedCall& prepared = *run_->groups[run_group_];
  std::size_t bytes = 0;
  Operation* operation = queue.first;
  for (std::size_t i = 0; i < ended_; ++i, operation = operation->next) {
    bytes += bytes_of(*operation);
    operation->execution.staging = {};
    operation->membership.plan = prepared.plan;
    operation->membership.channels = prepared.channels;
  }
  leave_share(queue.first->membership);
  OverlapCounts::instance().count_fused(first_counted_ + run_group_, bytes);
  run_.reset();
  return Turn::ended;
}

// ---- Turns ----

// All blocks of the learner's question, one after the other, and then the group at the head.
Fusion::Turn Fusion::end_question(OperationQueue& queue, bool may_call_host) {
  Turn turn = Turn::ended;
  while (turn == Turn::ended) {
    phase_ = Phase::idle;
    const std::size_t values = std::min(exchange_values, question_.size() - asked_);
    exchange_.answer(std::span(question_).subspan(asked_, values));
    asked_ += values;
    if (asked_ == question_.size()) take_answer(queue.first->membership.number);
    if (!asks(*queue.first)) return begin_group(queue, may_call_host);
    turn = begin_question(may_call_host);
  }
  return turn;
}

Fusion::Turn Fusion::next_turn(OperationQueue& queue, bool may_call_host) {
  if (phase_ == Phase::agreed) return begin_run(queue, may_call_host);
  if (phase_ == Phase::idle) {
    // What runs by itself has no more to ask.
    if (queue.first->membership.counted) return Turn::by_itself;
    if (!asks(*queue.first)) return begin_group(queue, may_call_host);
    const Turn begun = begin_question(may_call_host);
    return begun == Turn::ended ? end_question(queue, may_call_host) : begun;
  }
  if (running_needs_host() && !may_call_host) return Turn::waiting;
  const Result<bool> complete = progress_running(may_call_host);
  if (!complete.ok()) return fail(complete.status());
  if (!*complete) return communicator_.team->engine.moved() ? Turn::moved : Turn::waiting;
  if (phase_ == Phase::asking) return end_question(queue, may_call_host);
  return phase_ == Phase::agreeing ? end_agreement(queue, may_call_host) : end_run(queue);
}

Operation* Fusion::take_ended(OperationQueue& queue) {
  if (ended_ == 0) return nullptr;
  --ended_;
  return queue.first;
}

Fusion::Turn Fusion::turn(OperationQueue& queue, bool may_call_host) {
  const Turn turn = next_turn(queue, may_call_host);
  if (turn == Turn::by_itself) enter_share(queue.first->membership);
  return turn;
}

Grouping* grouping_of(Communicator& communicator) {
  if (communicator.grouping == nullptr && job().overlaps())
    communicator.grouping = std::make_unique<Fusion>(communicator, job().overlap);
  return communicator.grouping.get();
}

}  // namespace plait::runtime
