#include "runtime/enforcer/enforcer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "plan/step/step_file.h"
#include "runtime/enforcer/schedule_counts.h"
#include "runtime/execution/caller.h"
#include "runtime/execution/decide.h"
#include "runtime/team/team.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

// Where nothing has moved for so long, another rank may wait for what stands behind something that it waits for: so
// many iterations, at least so long. Twice that where only calls are waited for that the program has not made.
constexpr double still_iterations = 1;
constexpr std::uint64_t still_ns = 50'000'000;
// An operation that was waited for in vain so often is not waited for any more.
constexpr std::uint8_t most_blocked = 3;

// Turns that brought nothing, between two looks whether a rank of another node has failed; and at the clock.
constexpr std::uint32_t failure_look_every = 256, clock_look_every = 32;

std::uint64_t bit_of(int piece) { return std::uint64_t{1} << piece; }

int pieces_of(const Operation& operation) { return static_cast<int>(operation.membership.enforced->after.size()); }

// By which its wait is known: that of a start may come before the start has its place in the order.
std::uint64_t wait_number_of(const Operation& operation) {
  return operation.space != nullptr ? operation.slot : operation.membership.number;
}

bool all_done(const Operation& operation) { return std::popcount(operation.membership.done) == pieces_of(operation); }

}  // namespace

Enforcer::Enforcer(Communicator& communicator, EnforcerConnections connections, std::unique_ptr<KnownSchedule> schedule,
                   std::unique_ptr<ScheduleControl> control)
    : communicator_(communicator),
      connections_(std::move(connections)),
      schedule_(std::move(schedule)),
      control_(std::move(control)) {
  for (const std::unique_ptr<Team>& team : connections_.teams) {
    runners_.emplace_back().team = team.get();
    calls_host_ |= team->routes().need_host();
  }
  if (connections_.talk != nullptr) calls_host_ |= connections_.talk->routes().need_host();
}

Enforcer::~Enforcer() = default;

// ---- Posting ----

// Whether there is a plan for it as a whole, for when no schedule is kept to.
bool Enforcer::takes_blocking(const Request& request) {
  const bool taken = is_set_up(communicator_) && plan::step::in_steps(request.call.collective) &&
                     communicator_.team->schedules
                         .find({.call = request.call,
                                .in_place = request.sharing != Sharing::none,
                                .displacements = request.displacements,
                                .candidate = planners_candidate})
                         .accelerated;
  other_call_ |= !taken && plan::step::in_steps(request.call.collective);
  return taken;
}

void Enforcer::enlist(Operation& operation) {
  all_awaited_.store(false, std::memory_order_release);
  if (!plan::step::in_steps(operation.request.call.collective)) return;  // it runs in its place
  if (operation.prepared == nullptr) {
    other_call_ = true;
    return;
  }
  Membership& membership = operation.membership;
  membership.enlisted = true;
  membership.number = numbers_given_++;
  membership.after_other = std::exchange(other_call_, false);
  membership.posted_ns = monotonic_ns();
  operation.needs_host |= calls_host_;
  if (operation.form == Form::blocking) awaited_.note_wait_for_call(membership.number);
}

void Enforcer::note_request(RequestKey request, const Operation& operation) noexcept {
  awaited_.add(request, wait_number_of(operation));
}

// ---- Running ----

Enforcer::Turn Enforcer::fail(const Status& status) {
  failure_ = status;
  give_up(status);
  return Turn::failed;
}

// The communicator's own connections tell the others why, in a thread that may call the host (look_for_failures()).
void Enforcer::give_up(const Status& cause) {
  if (std::exchange(given_up_, true)) return;
  for (const std::unique_ptr<Team>& team : connections_.teams) team->close(cause);
  if (connections_.talk != nullptr) connections_.talk->close(cause);
}

void Enforcer::note_end(Operation& operation) {
  awaited_.remove(wait_number_of(operation));
  if (operation.failed) give_up(communicator_.operations.failure);
}

// ---- Which calls they are ----

void Enforcer::match(Operation& operation) {
  Membership& membership = operation.membership;
  CallMatcher& matcher = schedule_->matcher;
  const bool followed = matcher.following();
  const std::uint64_t left = matcher.left();
  if (membership.after_other) matcher.leave();
  const Request& request = operation.request;
  const auto found = matcher.next(request.call.collective, payload_bytes(request.call, communicator_.ranks),
                                  operation.form == Form::blocking);
  if (found.has_value() && schedule_->in_force) {
    membership.enforced = schedule_->plans->find(found->operation, request);
    if (membership.enforced == nullptr) matcher.leave();
  }
  const bool kept = followed && matcher.left() == left;
  if (matcher.left() != left) ScheduleCounts::instance().count_other_call();
  if (!matcher.following()) return;
  if (found->operation == 0) {
    const std::uint64_t begin_ns = std::exchange(iteration_begin_ns_, membership.posted_ns);
    if (kept) {
      ScheduleCounts::instance().note_iteration(membership.posted_ns - begin_ns);
      if (control_ != nullptr) control_->note_iteration(membership.posted_ns - begin_ns);
    }
  }
  if (!schedule_->in_force) return;
  membership.epoch = found->epoch;
  membership.call = found->number;
}

void Enforcer::note_posted_call(const Operation& operation) {
  const Membership& membership = operation.membership;
  if (!membership.enlisted) return;  // it runs in its place
  if (membership.epoch == epoch_)
    posted_.end = membership.call + 1;
  else
    posted_.left = true;
}

void Enforcer::look_at_new(OperationQueue& queue) {
  if (schedule_ == nullptr || queue.last->membership.assigned) return;
  for (Operation* operation = queue.first; operation != nullptr; operation = operation->next) {
    if (std::exchange(operation->membership.assigned, true)) continue;
    if (operation->membership.enlisted) match(*operation);
    note_posted_call(*operation);
  }
  if (posted_.left && epoch_ != 0) schedule_->lines.end_before(posted_.end);
}

bool Enforcer::begins_epoch(const Operation& head) const {
  const Membership& membership = head.membership;
  return membership.epoch != 0 && membership.epoch != epoch_;
}

void Enforcer::begin_epoch(const OperationQueue& queue) {
  const Membership& first = queue.first->membership;
  epoch_ = first.epoch;
  schedule_->lines.begin(schedule_->lines.iteration_of(first.call));
  posted_ = {.end = first.call, .left = false};
  blocked_.resize(schedule_->pieces_on.size());
  moved_ns_ = monotonic_ns();
  for (const Operation* operation = queue.first; operation != nullptr; operation = operation->next)
    note_posted_call(*operation);
  if (posted_.left) schedule_->lines.end_before(posted_.end);
}

Operation* Enforcer::find(const OperationQueue& queue, std::uint64_t call) const {
  if (call >= posted_.end) return nullptr;
  for (Operation* operation = queue.first; operation != nullptr; operation = operation->next)
    if (operation->membership.epoch == epoch_ && operation->membership.call == call) return operation;
  return nullptr;
}

// ---- Which schedule is kept to ----

// Before a call with which nothing else runs.
bool Enforcer::consults_before(const Operation& head) const {
  if (control_ == nullptr || head.membership.consulted || control_->is_over()) return false;
  const bool in_force = schedule_ != nullptr && schedule_->in_force;
  return in_force ? begins_epoch(head) : head.membership.number % ScheduleControl::calls_between == 0;
}

Enforcer::Turn Enforcer::consult(OperationQueue& queue, bool may_call_host) {
  const Result<ScheduleControl::Outcome> outcome = control_->consult(may_call_host);
  if (!outcome.ok()) return fail(outcome.status());
  if (*outcome != ScheduleControl::Outcome::decided)
    return *outcome == ScheduleControl::Outcome::moved ? Turn::moved : Turn::waiting;
  queue.first->membership.consulted = true;
  if (!control_->changes(schedule_)) return Turn::moved;
  for (Operation* operation = queue.first; operation != nullptr; operation = operation->next) {
    Membership& membership = operation->membership;
    membership.assigned = false;
    membership.epoch = 0;
    membership.enforced.reset();
  }
  epoch_ = 0;
  blocked_.clear();
  return Turn::moved;
}

// ---- Pieces ----

bool Enforcer::has_begun(const Operation& operation, int piece) const {
  return (operation.membership.begun & bit_of(piece)) != 0;
}

bool Enforcer::may_run(const Operation& operation, int piece) const {
  const Membership& membership = operation.membership;
  return (membership.enforced->after[static_cast<std::size_t>(piece)] & ~membership.done) == 0;
}

// In the order of the program's calls, the same on all ranks.
Enforcer::OwnPiece Enforcer::next_on(const OperationQueue& queue, std::size_t track) const {
  for (Operation* operation = queue.first; operation != nullptr; operation = operation->next) {
    if (operation->membership.epoch != epoch_) continue;
    const auto number = static_cast<std::size_t>(schedule_->lines.operation_of(operation->membership.call));
    for (const int piece : schedule_->pieces_on[number][track])
      if (!has_begun(*operation, piece)) return {operation, piece};
  }
  return {};
}

Enforcer::Turn Enforcer::begin_piece(Runner& runner, Operation& operation, int piece, bool may_call_host) {
  Membership& membership = operation.membership;
  const EnforcedCall& call = *membership.enforced;
  Execution& whole = operation.execution;
  if (!std::exchange(membership.laid_out, true)) {
    operation.laid_out = false;  // for its own plan
    whole.schedule = &call.whole;
    whole.staging = lay_out(operation.request, call.whole, operation.memory);
    whole.staging.flow = nullptr;  // it is of one schedule: data of a device come and go at once
    whole.staging.buffers.flow = nullptr;
    if (!pack(operation.request, whole)) return fail(pack_error(whole.error));
  }
  runner.operation = &operation;
  runner.piece = piece;
  moved_ns_ = monotonic_ns();
  if (piece < pieces_of(operation)) membership.begun |= bit_of(piece);
  runner.execution = {.schedule = &call.pieces[static_cast<std::size_t>(piece)],
                      .staging = {.buffers = whole.staging.buffers}};
  const Result<bool> complete = start(*runner.team, operation.request, runner.execution, may_call_host);
  if (!complete.ok()) return fail(complete.status());
  return *complete ? end_piece(runner, may_call_host) : Turn::moved;
}

Enforcer::Turn Enforcer::end_piece(Runner& runner, bool may_call_host) {
  Operation& operation = *std::exchange(runner.operation, nullptr);
  Membership& membership = operation.membership;
  if (runner.piece < pieces_of(operation)) {
    membership.done |= bit_of(runner.piece);
    return all_done(operation) ? begin_piece(runner, operation, pieces_of(operation), may_call_host) : Turn::moved;
  }
  membership.plan = membership.enforced->plan;
  membership.channels = membership.enforced->channels;
  ScheduleCounts::instance().count_enforced();
  ended_ = &operation;
  return Turn::ended;
}

Enforcer::Turn Enforcer::move_pieces(bool may_call_host) {
  Turn turn = Turn::waiting;
  for (Runner& runner : runners_) {
    if (runner.operation == nullptr || (runner.operation->needs_host && !may_call_host)) continue;
    const Result<bool> complete = progress(*runner.team, runner.execution, may_call_host);
    if (!complete.ok()) return fail(complete.status());
    if (!*complete) {
      if (runner.team->engine.moved()) turn = Turn::moved;
      continue;
    }
    turn = Turn::moved;
    if (const Turn ended = end_piece(runner, may_call_host); ended != Turn::moved) return ended;
  }
  return turn;
}

// What heads a channel and has run makes room, whoever began it.
void Enforcer::pass_what_has_run(const OperationQueue& queue) {
  plan::step::ChannelLines& lines = schedule_->lines;
  for (int channel = 0; channel < lines.channels(); ++channel)
    for (auto head = lines.head(channel); head.has_value() && head->call < posted_.end; head = lines.head(channel)) {
      const Operation* operation = find(queue, head->call);
      if (operation != nullptr && (operation->membership.done & bit_of(head->piece)) == 0) break;
      lines.pass(channel);
    }
}

bool Enforcer::heads_all_its_channels(const Operation& operation, int piece) const {
  const plan::step::CallPiece own{.call = operation.membership.call, .piece = piece};
  const plan::step::ChannelLines& lines = schedule_->lines;
  for (std::uint32_t left = lines.channels_of(lines.operation_of(own.call), piece); left != 0; left &= left - 1)
    if (lines.head(std::countr_zero(left)) != own) return false;
  return true;
}

Enforcer::Turn Enforcer::begin_in_order(const OperationQueue& queue, bool may_call_host) {
  Turn turn = Turn::waiting;
  for (std::size_t track = 0; track < runners_.size();) {
    Runner& runner = runners_[track];
    const OwnPiece next = runner.operation == nullptr ? next_on(queue, track) : OwnPiece{};
    const bool begins = next.operation != nullptr && (!next.operation->needs_host || may_call_host) &&
                        may_run(*next.operation, next.piece) && heads_all_its_channels(*next.operation, next.piece);
    if (!begins) {
      ++track;
      continue;
    }
    const Turn begun = begin_piece(runner, *next.operation, next.piece, may_call_host);
    if (begun != Turn::moved) return begun;
    turn = Turn::moved;
    pass_what_has_run(queue);
    track = 0;  // what has ended may let others begin
  }
  return turn;
}

// ---- Before their turn ----

// A piece of it stands on a channel behind one of a call that the program has not made.
bool Enforcer::waits_behind_unmade(const Operation& operation) const {
  const Membership& membership = operation.membership;
  const plan::step::ChannelLines& lines = schedule_->lines;
  const int number = lines.operation_of(membership.call);
  for (int piece = 0; piece < pieces_of(operation); ++piece) {
    if (has_begun(operation, piece)) continue;
    for (std::uint32_t left = lines.channels_of(number, piece); left != 0; left &= left - 1) {
      const auto head = lines.head(std::countr_zero(left));
      if (head.has_value() && head->call >= posted_.end) return true;
    }
  }
  return false;
}

// Operations that the program has not made when it should have, by the schedule.
void Enforcer::note_blocking_heads() {
  const plan::step::ChannelLines& lines = schedule_->lines;
  for (int channel = 0; channel < lines.channels(); ++channel) {
    const auto head = lines.head(channel);
    if (!head.has_value() || head->call < posted_.end) continue;
    std::uint8_t& times = blocked_[static_cast<std::size_t>(lines.operation_of(head->call))];
    if (times < most_blocked) ++times;
  }
}

// Calls before this one need not wait for their turn.
std::uint64_t Enforcer::may_overrun(const OperationQueue& queue) {
  const plan::step::ChannelLines& lines = schedule_->lines;
  bool unmade = false, in_vain = false;
  for (int channel = 0; channel < lines.channels(); ++channel) {
    const auto head = lines.head(channel);
    if (!head.has_value() || head->call < posted_.end) continue;
    unmade = true;
    in_vain |= blocked_[static_cast<std::size_t>(lines.operation_of(head->call))] == most_blocked;
  }
  if (in_vain) return posted_.end;
  const bool under_way = std::ranges::any_of(runners_, [](const Runner& one) { return one.operation != nullptr; });
  std::uint64_t overrun = 0;
  if (unmade)
    for (const Operation* operation = queue.first; operation != nullptr; operation = operation->next) {
      if (operation->membership.epoch != epoch_) continue;
      const bool awaited = all_awaited_.load(std::memory_order_acquire) || awaited_.awaits(wait_number_of(*operation));
      if (awaited && waits_behind_unmade(*operation)) overrun = operation->membership.call + 1;
    }
  if (overrun == 0) {
    const auto patience = static_cast<std::uint64_t>(still_iterations * schedule_->seconds * 1e9);
    if (monotonic_ns() - moved_ns_ < std::max(still_ns, patience) * (under_way ? 1 : 2)) return 0;
    overrun = posted_.end;
    moved_ns_ = monotonic_ns();
  }
  if (unmade) note_blocking_heads();
  return overrun;
}

Enforcer::Turn Enforcer::begin_before_turn(const OperationQueue& queue, bool may_call_host) {
  const std::uint64_t overrun = may_overrun(queue);
  Turn turn = Turn::waiting;
  for (std::size_t track = 0; overrun != 0 && track < runners_.size();) {
    Runner& runner = runners_[track];
    const OwnPiece next = runner.operation == nullptr ? next_on(queue, track) : OwnPiece{};
    const bool begins = next.operation != nullptr && next.operation->membership.call < overrun &&
                        (!next.operation->needs_host || may_call_host) && may_run(*next.operation, next.piece);
    if (!begins) {
      ++track;
      continue;
    }
    ScheduleCounts::instance().count_early();
    const Turn begun = begin_piece(runner, *next.operation, next.piece, may_call_host);
    if (begun != Turn::moved) return begun;
    turn = Turn::moved;
    track = 0;
  }
  return turn;
}

// ---- Turns ----

// A rank that has failed moves nothing any more.
Status Enforcer::look_for_failures() {
  Team& team = *communicator_.team;
  team.look_at_notice();
  if (!team.notice->heard().ok()) return team.notice->heard();
  if (Status peer = team.connections.peer_failure(); !peer.ok()) return peer;
  for (const std::unique_ptr<Team>& own : connections_.teams) own->look_at_notice();
  if (connections_.talk != nullptr) connections_.talk->look_at_notice();
  return {};
}

Enforcer::Turn Enforcer::run_plainly(Operation& head) {
  if (!std::exchange(head.membership.counted, true)) ScheduleCounts::instance().count_plain();
  return Turn::by_itself;
}

// Where the head is none of the schedule's, what comes after it is kept waiting no longer than that runs.
Enforcer::Turn Enforcer::next_turn(OperationQueue& queue, bool may_call_host) {
  Operation& head = *queue.first;
  look_at_new(queue);
  if (consults_before(head)) return consult(queue, may_call_host);
  if (begins_epoch(head)) begin_epoch(queue);
  if (head.membership.epoch == 0) return run_plainly(head);
  const Turn ran = move_pieces(may_call_host);
  if (ran == Turn::failed || ran == Turn::ended) return ran;
  if (ran == Turn::moved) moved_ns_ = monotonic_ns();
  pass_what_has_run(queue);
  const Turn begun = begin_in_order(queue, may_call_host);
  if (begun != Turn::waiting || ran != Turn::waiting) return begun != Turn::waiting ? begun : ran;
  return idle_turns_ % clock_look_every == 0 ? begin_before_turn(queue, may_call_host) : Turn::waiting;
}

Enforcer::Turn Enforcer::turn(OperationQueue& queue, bool may_call_host) {
  const Turn turn = next_turn(queue, may_call_host);
  if (turn != Turn::waiting || ++idle_turns_ % failure_look_every != 0 || !may_call_host) return turn;
  const Status failed = look_for_failures();
  return failed.ok() ? turn : fail(failed);
}

}  // namespace plait::runtime
