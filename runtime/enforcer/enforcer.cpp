#include "runtime/enforcer/enforcer.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "core/attempt.h"
#include "runtime/enforcer/schedule_counts.h"
#include "runtime/execution/caller.h"
#include "runtime/execution/decide.h"
#include "runtime/job/job.h"
#include "runtime/oob/oob.h"
#include "runtime/progress/progress.h"
#include "runtime/team/team.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

constexpr std::uint64_t no_call = std::numeric_limits<std::uint64_t>::max();

// A rank that does not wait votes all the same after so long: another one may wait for a call that this one has posted.
// Short against a step, long against a vote.
constexpr std::uint64_t vote_patience_ns = 20'000'000;
// Who only asks whether its calls are complete is taken for one that waits after that.
constexpr std::uint64_t test_patience_ns = 5 * vote_patience_ns;
// A rank that has made the subject and waits for what it overtakes leaves the others so long to make it, too: they may
// wait, outside of MPI, for what this one does next. Longer than steps take.
constexpr std::uint64_t made_patience_ns = 100 * vote_patience_ns;
// Iterations that are left one after the other keep the schedule away from twice as many each time, up to so many.
constexpr std::uint64_t most_away = 16;

// Turns that brought nothing, between two looks whether a rank of another node has failed.
constexpr std::uint32_t failure_look_every = 256;

constexpr std::size_t vote_numbers = 2;

const Reducer& vote_reducer() {
  static const Reducer reducer = make_reducer(Op::min, Element::i64);
  return reducer;
}

std::uint64_t bit_of(int piece) { return std::uint64_t{1} << piece; }

int pieces_of(const Operation& operation) { return static_cast<int>(operation.membership.enforced->after.size()); }

bool all_done(const Operation& operation) { return std::popcount(operation.membership.done) == pieces_of(operation); }

}  // namespace

Enforcer::Enforcer(Communicator& communicator, EnforcerConnections connections, std::unique_ptr<KnownSchedule> schedule,
                   std::unique_ptr<ScheduleControl> control)
    : communicator_(communicator),
      connections_(std::move(connections)),
      schedule_(std::move(schedule)),
      control_(std::move(control)),
      until_(0),
      again_from_(0),
      subject_(no_call) {
  for (std::size_t team = 0; team < connections_.teams.size(); ++team) {
    Runner& runner = runners_.emplace_back();
    runner.team = connections_.teams[team].get();
    runner.channels = connections_.channels[team];
    calls_host_ |= connections_.teams[team]->routes().need_host();
  }
  votes_.prepare(*connections_.votes, vote_numbers, vote_reducer());
}

Enforcer::~Enforcer() = default;

// ---- Posting ----

// Whether there is a plan for it as a whole, for when no schedule is kept to.
bool Enforcer::takes_blocking(const Request& request) {
  const bool taken = is_set_up(communicator_) && votes_.possible() && in_schedules(request.call.collective) &&
                     communicator_.team->schedules
                         .find({.call = request.call,
                                .in_place = request.sharing != Sharing::none,
                                .displacements = request.displacements,
                                .candidate = planners_candidate})
                         .accelerated;
  other_call_ |= !taken && in_schedules(request.call.collective);
  return taken;
}

void Enforcer::enlist(Operation& operation) {
  communicator_.progress.host_turns.forget();
  turns_at_post_.store(communicator_.progress.host_turns.in_all(), std::memory_order_relaxed);
  all_awaited_.store(false, std::memory_order_release);
  if (!in_schedules(operation.request.call.collective)) return;
  if (operation.prepared == nullptr || !votes_.possible()) {
    other_call_ = true;
    return;
  }
  Membership& membership = operation.membership;
  membership.enlisted = true;
  membership.number = numbers_given_++;
  membership.after_other = std::exchange(other_call_, false);
  membership.posted_ns = monotonic_ns();
  operation.needs_host |= calls_host_ || votes_.needs_host();
  if (operation.form == Form::blocking) awaited_.note_wait_for_call(membership.number);
}

void Enforcer::note_request(RequestKey request, const Operation& operation) noexcept {
  awaited_.add(request, operation.membership.number);
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
  connections_.votes->close(cause);
}

void Enforcer::note_end(Operation& operation) {
  awaited_.remove(operation.membership.number);
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
}

bool Enforcer::begins_epoch(const Operation& head) const {
  const Membership& membership = head.membership;
  return membership.epoch != 0 && (membership.epoch != epoch_ || membership.call >= again_from_);
}

void Enforcer::begin_epoch(const OperationQueue& queue) {
  const Membership& first = queue.first->membership;
  plan::step::ChannelLines& lines = schedule_->lines;
  epoch_ = first.epoch;
  until_ = again_from_ = no_call;
  lines.begin(lines.iteration_of(first.call));
  subject_ = lines.next_overtaking(first.call).value_or(no_call);
  posted_ = {.end = first.call, .left = false};
  since_ns_ = 0;
  for (const Operation* operation = queue.first; operation != nullptr; operation = operation->next)
    note_posted_call(*operation);
}

bool Enforcer::runs_plainly(const Operation& head) const {
  return head.membership.epoch == 0 || head.membership.call >= until_;
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
  return Turn::moved;
}

// ---- Pieces ----

Enforcer::Runner& Enforcer::runner_of(const plan::step::CallPiece& piece) {
  const std::uint32_t channels = schedule_->lines.channels_of(schedule_->lines.operation_of(piece.call), piece.piece);
  return *std::ranges::find(runners_, channels, &Runner::channels);
}

// `piece` heads one of its channels, and `runner` is its.
bool Enforcer::may_begin(const plan::step::CallPiece& piece, const Operation& operation, const Runner& runner) const {
  const Membership& membership = operation.membership;
  if (runner.operation != nullptr || piece.call >= subject_) return false;
  if ((membership.enforced->after[static_cast<std::size_t>(piece.piece)] & ~membership.done) != 0) return false;
  for (std::uint32_t left = runner.channels; left != 0; left &= left - 1)
    if (schedule_->lines.head(std::countr_zero(left)) != piece) return false;
  return true;
}

Enforcer::Turn Enforcer::begin_piece(Runner& runner, Operation& operation, int piece, bool may_call_host) {
  Membership& membership = operation.membership;
  const EnforcedCall& call = *membership.enforced;
  Execution& whole = operation.execution;
  if (!std::exchange(membership.laid_out, true)) {
    whole.schedule = &call.whole;
    whole.staging = lay_out(operation.request, call.whole, operation.memory);
    if (!pack(operation.request, whole)) return fail(pack_error(whole.error));
  }
  runner.operation = &operation;
  runner.piece = piece;
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
    for (std::uint32_t left = runner.channels; left != 0; left &= left - 1)
      schedule_->lines.pass(std::countr_zero(left));
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

Enforcer::Turn Enforcer::begin_pieces(const OperationQueue& queue, bool may_call_host) {
  Turn turn = Turn::waiting;
  for (int channel = 0; channel < schedule_->lines.channels();) {
    const auto head = schedule_->lines.head(channel);
    Operation* operation = head.has_value() ? find(queue, head->call) : nullptr;
    const bool allowed = operation != nullptr && (!operation->needs_host || may_call_host);
    if (!allowed || !may_begin(*head, *operation, runner_of(*head))) {
      ++channel;
      continue;
    }
    const Turn begun = begin_piece(runner_of(*head), *operation, head->piece, may_call_host);
    if (begun != Turn::moved) return begun;
    turn = Turn::moved;
    channel = 0;  // what has ended may let others begin
  }
  return turn;
}

// ---- Votes ----

// A piece of it waits on a channel behind one that must wait for a vote.
bool Enforcer::is_stuck(const Operation& operation) const {
  const Membership& membership = operation.membership;
  const int number = schedule_->lines.operation_of(membership.call);
  for (int piece = 0; piece < pieces_of(operation); ++piece) {
    if ((membership.done & bit_of(piece)) != 0) continue;
    for (std::uint32_t left = schedule_->lines.channels_of(number, piece); left != 0; left &= left - 1) {
      const int channel = std::countr_zero(left);
      const auto head = schedule_->lines.head(channel);
      if (head.has_value() && head->call >= subject_ &&
          schedule_->lines.behind_head(channel, {.call = membership.call, .piece = piece}))
        return true;
    }
  }
  return false;
}

// What is there of the calls before the subject waits for the vote, some of it.
bool Enforcer::stands_still(const OperationQueue& queue) const {
  bool any = false;
  for (int channel = 0; channel < schedule_->lines.channels() && !any; ++channel) {
    const auto head = schedule_->lines.head(channel);
    any = head.has_value() && head->call >= subject_;
  }
  if (!any) return false;
  for (const Operation* operation = queue.first; operation != nullptr; operation = operation->next)
    if (follows(*operation) && operation->membership.call < subject_ && is_stuck(*operation)) return true;
  return false;
}

bool Enforcer::follows(const Operation& operation) const {
  const Membership& membership = operation.membership;
  return membership.epoch == epoch_ && membership.call < until_;
}

// The subject is made here, but not everywhere, for what its maker may be waiting for.
bool Enforcer::waits_too_long(const OperationQueue& queue, std::uint64_t now_ns) const {
  return now_ns - since_ns_ > made_patience_ns && stands_still(queue) && waits_in_vain(queue, now_ns);
}

bool Enforcer::waits_in_vain(const OperationQueue& queue, std::uint64_t now_ns) const {
  if (posted_.left || all_awaited_.load(std::memory_order_acquire)) return true;
  if (now_ns - since_ns_ > test_patience_ns &&
      communicator_.progress.host_turns.waits(turns_at_post_.load(std::memory_order_relaxed)))
    return true;
  const bool idle = std::ranges::all_of(runners_, [](const Runner& one) { return one.operation == nullptr; });
  for (const Operation* operation = queue.first; operation != nullptr; operation = operation->next)
    if (follows(*operation) && awaited_.awaits(operation->membership.number) && (idle || is_stuck(*operation)))
      return true;
  return false;
}

Enforcer::Turn Enforcer::vote(const OperationQueue& queue, bool may_call_host) {
  if (votes_.needs_host() && !may_call_host) return Turn::waiting;
  if (voting_) {
    const Result<bool> complete = votes_.progress(may_call_host);
    if (!complete.ok()) return fail(complete.status());
    if (*complete) return end_vote();
    return votes_.moved() ? Turn::moved : Turn::waiting;
  }
  if (subject_ == no_call) return Turn::waiting;
  const bool posted = posted_.end > subject_;
  if (!posted && !stands_still(queue)) {
    since_ns_ = 0;
    return Turn::waiting;
  }
  const std::uint64_t now_ns = monotonic_ns();
  if (since_ns_ == 0) since_ns_ = voted_ns_ = now_ns;
  const bool waits = posted ? waits_too_long(queue, now_ns) : waits_in_vain(queue, now_ns);
  if (!posted && !waits && now_ns - voted_ns_ < vote_patience_ns) return Turn::waiting;
  numbers_ = {posted ? 1 : 0, waits ? -1 : 0};
  voting_ = true;
  const Result<bool> complete = votes_.start(std::span<const std::int64_t>(numbers_), may_call_host);
  if (!complete.ok()) return fail(complete.status());
  return *complete ? end_vote() : Turn::moved;
}

Enforcer::Turn Enforcer::end_vote() {
  voting_ = false;
  votes_.answer(std::span(numbers_));
  ScheduleCounts::instance().count_vote();
  if (numbers_[0] == 1) {
    const std::uint64_t iteration = schedule_->lines.iteration_of(subject_);
    subject_ = schedule_->lines.next_overtaking(subject_ + 1).value_or(no_call);
    if (schedule_->lines.iteration_of(subject_) != iteration) away_ = 1;
    since_ns_ = 0;
  } else if (numbers_[1] < 0) {
    leave_from(subject_);
  } else {
    voted_ns_ = monotonic_ns();
  }
  return Turn::moved;
}

// None of it has begun. A program that does so in each iteration loses the time until the ranks see it in few of them.
void Enforcer::leave_from(std::uint64_t call) {
  ScheduleCounts::instance().count_wait();
  until_ = call;
  again_from_ = schedule_->lines.first_call(schedule_->lines.iteration_of(call) + away_);
  away_ = std::min(2 * away_, most_away);
  schedule_->lines.end_before(call);
  subject_ = no_call;
  since_ns_ = 0;
}

// ---- Turns ----

// A rank that has failed moves nothing any more.
Status Enforcer::look_for_failures() {
  Team& team = *communicator_.team;
  team.look_at_notice();
  if (!team.notice->heard().ok()) return team.notice->heard();
  if (Status peer = team.connections.peer_failure(); !peer.ok()) return peer;
  for (const std::unique_ptr<Team>& own : connections_.teams) own->look_at_notice();
  connections_.votes->look_at_notice();
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
  if (runs_plainly(head)) return run_plainly(head);
  const Turn voted = vote(queue, may_call_host);
  if (voted == Turn::failed) return voted;
  if (runs_plainly(head)) return run_plainly(head);
  const Turn ran = move_pieces(may_call_host);
  if (ran == Turn::failed || ran == Turn::ended) return ran;
  const Turn begun = begin_pieces(queue, may_call_host);
  if (begun == Turn::failed || begun == Turn::ended) return begun;
  return voted == Turn::moved || ran == Turn::moved || begun == Turn::moved ? Turn::moved : Turn::waiting;
}

Enforcer::Turn Enforcer::turn(OperationQueue& queue, bool may_call_host) {
  const Turn turn = next_turn(queue, may_call_host);
  if (turn != Turn::waiting || !may_call_host || ++idle_turns_ % failure_look_every != 0) return turn;
  const Status failed = look_for_failures();
  return failed.ok() ? turn : fail(failed);
}

}  // namespace plait::runtime
