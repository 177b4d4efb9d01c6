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

Enforcer::Enforcer(Communicator& communicator, const plan::step::StepSchedule& schedule,
                   std::unique_ptr<EnforcedPlans> plans, EnforcerConnections connections)
    : communicator_(communicator),
      matcher_(schedule.operations),
      plans_(std::move(plans)),
      connections_(std::move(connections)),
      lines_(schedule),
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

// What the schedule has there, on all ranks; nothing: it has not, or it cannot be run so.
bool Enforcer::match(const Request& request, bool blocking) {
  const std::size_t bytes = payload_bytes(request.call, communicator_.ranks);
  const bool followed = matcher_.following();
  const auto found = matcher_.next(request.call.collective, bytes, blocking);
  taken_plan_ = found.has_value() ? plans_->find(found->operation, request) : nullptr;
  if (taken_plan_ == nullptr) {
    matcher_.leave();
  } else {
    taken_ = *found;
  }
  if (followed && (taken_plan_ == nullptr || taken_.epoch != last_epoch_))
    ScheduleCounts::instance().count_other_call();
  if (taken_plan_ == nullptr) return false;
  const std::uint64_t now_ns = monotonic_ns();
  if (taken_.operation == 0) {
    if (taken_.epoch == last_epoch_) ScheduleCounts::instance().note_iteration(now_ns - iteration_begin_ns_);
    iteration_begin_ns_ = now_ns;
  }
  last_epoch_ = taken_.epoch;
  return true;
}

bool Enforcer::takes_blocking(const Request& request) {
  blocking_taken_ = is_set_up(communicator_) && votes_.possible() && runs_here(request) && match(request, true);
  if (!blocking_taken_) leave();
  return blocking_taken_;
}

// Whether there is a plan for it as a whole, for when the schedule is left.
bool Enforcer::runs_here(const Request& request) const {
  if (lies_in_pieces(request.call.collective)) return false;
  return communicator_.team->schedules
      .find({.call = request.call,
             .in_place = request.sharing != Sharing::none,
             .displacements = request.displacements,
             .candidate = planners_candidate})
      .accelerated;
}

void Enforcer::leave() {
  if (matcher_.following()) ScheduleCounts::instance().count_other_call();
  matcher_.leave();
}

void Enforcer::enlist(Operation& operation) {
  communicator_.progress.host_turns.forget();
  turns_at_post_.store(communicator_.progress.host_turns.in_all(), std::memory_order_relaxed);
  all_awaited_.store(false, std::memory_order_release);
  const bool blocking = std::exchange(blocking_taken_, false);
  if (!blocking) {
    if (operation.prepared == nullptr || !votes_.possible()) return leave();
    if (!match(operation.request, false)) return;
  }
  Membership& membership = operation.membership;
  membership.enlisted = true;
  membership.number = taken_.number;
  membership.epoch = taken_.epoch;
  membership.enforced = std::move(taken_plan_);
  operation.needs_host |= calls_host_ || votes_.needs_host();
  if (blocking) awaited_.note_wait_for_call(membership.number);
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

void Enforcer::begin_epoch(OperationQueue& queue) {
  const Membership& first = queue.first->membership;
  epoch_ = first.epoch;
  until_ = again_from_ = no_call;
  lines_.begin(lines_.iteration_of(first.number));
  subject_ = lines_.next_overtaking(first.number).value_or(no_call);
  posted_ = {.end = first.number, .left = false};
  since_ns_ = 0;
  for (Operation* operation = queue.first; operation != nullptr; operation = operation->next)
    operation->membership.assigned = false;
}

void Enforcer::look_at_new(OperationQueue& queue) {
  if (queue.last->membership.assigned) return;
  for (Operation* operation = queue.first; operation != nullptr; operation = operation->next) {
    Membership& membership = operation->membership;
    if (std::exchange(membership.assigned, true)) continue;
    if (membership.enlisted && membership.epoch == epoch_)
      posted_.end = membership.number + 1;
    else
      posted_.left = true;
  }
}

Operation* Enforcer::find(const OperationQueue& queue, std::uint64_t call) const {
  if (call >= posted_.end) return nullptr;
  Operation* operation = queue.first;
  while (operation != nullptr && operation->membership.number != call) operation = operation->next;
  return operation;
}

// ---- Pieces ----

Enforcer::Runner& Enforcer::runner_of(const plan::step::CallPiece& piece) {
  const std::uint32_t channels = lines_.channels_of(lines_.operation_of(piece.call), piece.piece);
  return *std::ranges::find(runners_, channels, &Runner::channels);
}

// `piece` heads one of its channels, and `runner` is its.
bool Enforcer::may_begin(const plan::step::CallPiece& piece, const Operation& operation, const Runner& runner) const {
  const Membership& membership = operation.membership;
  if (runner.operation != nullptr || piece.call >= subject_) return false;
  if ((membership.enforced->after[static_cast<std::size_t>(piece.piece)] & ~membership.done) != 0) return false;
  for (std::uint32_t left = runner.channels; left != 0; left &= left - 1)
    if (lines_.head(std::countr_zero(left)) != piece) return false;
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
    for (std::uint32_t left = runner.channels; left != 0; left &= left - 1) lines_.pass(std::countr_zero(left));
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
  for (int channel = 0; channel < lines_.channels();) {
    const auto head = lines_.head(channel);
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
  const int number = lines_.operation_of(membership.number);
  for (int piece = 0; piece < pieces_of(operation); ++piece) {
    if ((membership.done & bit_of(piece)) != 0) continue;
    for (std::uint32_t left = lines_.channels_of(number, piece); left != 0; left &= left - 1) {
      const int channel = std::countr_zero(left);
      const auto head = lines_.head(channel);
      if (head.has_value() && head->call >= subject_ && lines_.behind_head(channel, {membership.number, piece}))
        return true;
    }
  }
  return false;
}

// What is there of the calls before the subject waits for the vote, some of it.
bool Enforcer::stands_still(const OperationQueue& queue) const {
  bool any = false;
  for (int channel = 0; channel < lines_.channels() && !any; ++channel) {
    const auto head = lines_.head(channel);
    any = head.has_value() && head->call >= subject_;
  }
  if (!any) return false;
  for (const Operation* operation = queue.first; operation != nullptr; operation = operation->next)
    if (follows(*operation) && operation->membership.number < subject_ && is_stuck(*operation)) return true;
  return false;
}

bool Enforcer::follows(const Operation& operation) const {
  const Membership& membership = operation.membership;
  return membership.enlisted && membership.epoch == epoch_ && membership.number < until_;
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
    const std::uint64_t iteration = lines_.iteration_of(subject_);
    subject_ = lines_.next_overtaking(subject_ + 1).value_or(no_call);
    if (lines_.iteration_of(subject_) != iteration) away_ = 1;
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
  again_from_ = lines_.first_call(lines_.iteration_of(call) + away_);
  away_ = std::min(2 * away_, most_away);
  lines_.end_before(call);
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

Enforcer::Turn Enforcer::turn(OperationQueue& queue, bool may_call_host) {
  Operation& head = *queue.first;
  if (head.membership.epoch != epoch_ || head.membership.number >= again_from_) begin_epoch(queue);
  look_at_new(queue);
  if (head.membership.number >= until_) return run_plainly(head);
  const Turn voted = vote(queue, may_call_host);
  if (voted == Turn::failed) return voted;
  if (head.membership.number >= until_) return run_plainly(head);
  const Turn ran = move_pieces(may_call_host);
  if (ran == Turn::failed || ran == Turn::ended) return ran;
  const Turn begun = begin_pieces(queue, may_call_host);
  if (begun == Turn::failed || begun == Turn::ended) return begun;
  if (voted == Turn::moved || ran == Turn::moved || begun == Turn::moved) return Turn::moved;
  if (may_call_host && ++idle_turns_ % failure_look_every == 0)
    if (const Status failed = look_for_failures(); !failed.ok()) return fail(failed);
  return Turn::waiting;
}

}  // namespace plait::runtime
