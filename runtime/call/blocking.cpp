#include "runtime/call/blocking.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>

#include "core/attempt.h"
#include "core/intern.h"
#include "core/log.h"
#include "runtime/call/timed_call.h"
#include "runtime/execution/call_choice.h"
#include "runtime/execution/call_record.h"
#include "runtime/execution/caller.h"
#include "runtime/execution/execution.h"
#include "runtime/execution/pair_exchange.h"
#include "runtime/execution/staging.h"
#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "runtime/progress/progress.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

// ---- Running ----

// No later call runs: the ranks may disagree on what was done. `error`: the caller's code for `status`.
void break_off(Communicator& communicator, const Status& status, int error) {
  communicator.error = error;
  communicator.road = Road::broken;
  if (communicator.team != nullptr) communicator.team->give_up(status);
}

int fail(Communicator& communicator, const Status& status, int error) {
  break_off(communicator, status, error);
  return communicator.raise(communicator.error);
}

// The call itself is done: what fails here shows in the next one.
void end_timed(Communicator& communicator, TrialClass& tried, std::uint64_t nanoseconds) {
  Status status;
  try {
    status = end_timed_call(*communicator.team, tried, nanoseconds);
  } catch (const std::exception& exception) {
    status = status_of(exception);
  }
  if (!status.ok()) break_off(communicator, status, caller().code_of(status));
}

int fail(Communicator& communicator, const Status& status) {
  return fail(communicator, status, caller().code_of(status));
}

// Without what is done with its results. Returns what the call is to return.
inline int run_through(Communicator& communicator, const Request& request, Execution& execution) {
  Team& team = *communicator.team;
  if (!pack(request, execution)) [[unlikely]]
    return fail(communicator, pack_error(execution.error), execution.error);
  const Status status = run(team, request, execution);
  if (!status.ok()) [[unlikely]]
    return fail(communicator, team.reason_of(status));
  return 0;
}

int run(Communicator& communicator, Request& request, const PreparedCall& prepared) {
  Team& team = *communicator.team;
  Execution execution{.schedule = &prepared.schedule, .staging = lay_out(request, prepared.schedule, team.memory)};
  if (const int code = run_through(communicator, request, execution); code != 0) [[unlikely]]
    return code;
  const int error = finish(request, execution);
  return error == 0 ? error : communicator.raise(error);
}

TeamExtent extent_for(const Communicator& communicator, const Call& call) {
  if (lies_in_pieces(call.collective)) return TeamExtent::all_calls;  // how long they are no rank knows
  return is_short(call, communicator.ranks) && !communicator.posts ? TeamExtent::short_calls : TeamExtent::all_calls;
}

// ---- Exchanges by pairs ----

// Whose lengths follow from what all ranks see in each call; nullptr where the slots' size is fixed.
SlotSize* slot_size_of(Team& team, Collective collective) {
  if (collective == Collective::gatherv) return nullptr;  // what the root sees the others do not
  return collective == Collective::scatterv ? &team.from_root : &team.to_all;
}

int run(Communicator& communicator, const Request& request, const PairExchange::Problem& problem,
        const PreparedCall& prepared) {
  Team& team = *communicator.team;
  if (communicator.pairs == nullptr) communicator.pairs = std::make_unique<PairExchange>();
  communicator.pairs->take(problem);
  Execution execution{.schedule = &prepared.schedule, .staging = {}, .exchange = communicator.pairs.get()};
  if (const int code = run_through(communicator, request, execution); code != 0) [[unlikely]]
    return code;
  if (SlotSize* size = slot_size_of(team, request.call.collective); size != nullptr)
    size->learn(communicator.pairs->wishes());
  const int error = finish(request, execution);
  return error == 0 ? error : communicator.raise(error);
}

// The same on all ranks: what they know of the lengths is what earlier calls have told all of them.
const char* why_faster_on_host(Collective collective, SlotSize* size) {
  if (!job().config.host_when_faster) return nullptr;
  if (collective == Collective::gatherv) return plan::reasons::host_is_faster;
  return size != nullptr && size->host_has_turn() ? "the host is faster with lengths such as the last" : nullptr;
}

Outcome run_by_pairs(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  if (communicator.team->short_calls_only) [[unlikely]] {
    set_up_now(communicator, TeamExtent::all_calls);
    if (communicator.road == Road::host) return {.reason = communicator.host_reason};
    if (communicator.road == Road::broken) return {.code = communicator.raise(communicator.error)};
  }
  Team& team = *communicator.team;
  SlotSize* size = slot_size_of(team, request.call.collective);
  if (const char* reason = why_faster_on_host(request.call.collective, size)) return {.reason = reason};
  const PairExchange::Problem problem =
      pair_problem(communicator, request, size != nullptr ? size->bytes() : usual_slot_bytes);
  const Call first = PairExchange::first_call(problem);
  const PreparedCall& prepared = team.schedules.find({.call = first, .candidate = planners_candidate});
  if (!prepared.accelerated) return {.reason = prepared.reason};
  if (begin_ns == 0 && team.trace != nullptr) begin_ns = monotonic_ns();
  note_call({.plan = prepared.plan, .channels = prepared.channels});
  const int code = run(communicator, request, problem, prepared);
  if (begin_ns != 0)
    record(communicator, request, prepared, row_of(communicator, request, prepared, Form::blocking), begin_ns);
  return {.code = code};
}

// ---- Neighbours ----

// A call's pieces are in the order that its communicator's set-up found: the call that sets it up is the host's.
Outcome run_with_neighbors(Communicator& communicator, Request& request, bool just_set_up, std::uint64_t begin_ns) {
  if (communicator.team->short_calls_only) [[unlikely]] {
    set_up_now(communicator, TeamExtent::all_calls);
    if (communicator.road == Road::host) return {.reason = communicator.host_reason};
    if (communicator.road == Road::broken) return {.code = communicator.raise(communicator.error)};
    just_set_up = true;
  }
  if (just_set_up) return {.reason = reasons::not_set_up};
  Team& team = *communicator.team;
  if (team.neighborhood == nullptr) return {.reason = reasons::no_neighborhood};
  if (communicator.neighbors == nullptr) communicator.neighbors = std::make_unique<NeighborExchange>();
  communicator.neighbors->take(request);
  const std::shared_ptr<const PreparedCall> prepared = team.neighborhood->find(communicator.neighbors->shape());
  if (!prepared->accelerated) return {.reason = prepared->reason};
  if (begin_ns == 0 && team.trace != nullptr) begin_ns = monotonic_ns();
  note_call({.plan = prepared->plan, .channels = prepared->channels});
  Execution execution{.schedule = &prepared->schedule, .staging = {}, .exchange = communicator.neighbors.get()};
  if (const int code = run_through(communicator, request, execution); code != 0) [[unlikely]]
    return {.code = code};
  const int error = finish(request, execution);
  if (begin_ns != 0)
    record(communicator, request, *prepared, row_of(communicator, request, *prepared, Form::blocking), begin_ns);
  return {.code = error == 0 ? error : communicator.raise(error)};
}

// A call in a trial, or one by which a settled class is watched.
Outcome run_timed(Communicator& communicator, Request& request, CallShape shape, TrialClass& tried, bool measuring) {
  Team& team = *communicator.team;
  const int candidate = tried.trial.candidate();
  shape.candidate = candidate;
  std::shared_ptr<const PreparedCall> prepared;
  if (candidate != Trial::host) prepared = team.schedules.hold(shape);
  if (const Status met = meet_for_timed_call(team, tried.trial); !met.ok()) [[unlikely]]
    return {.code = fail(communicator, met)};
  const std::uint64_t begin_ns = monotonic_ns();
  communicator.timed = {.tried = &tried, .begin_ns = begin_ns};
  if (prepared == nullptr || !prepared->accelerated) return {.reason = tried.reason()};
  note_call({.plan = prepared->plan, .channels = prepared->channels});
  const int code = run(communicator, request, *prepared);
  const std::uint64_t took_ns = monotonic_ns() - begin_ns;
  communicator.timed = {};
  if (communicator.road == Road::broken) return {.code = code};
  if (measuring || team.trace != nullptr) record(communicator, request, *prepared, prepared->row, begin_ns);
  end_timed(communicator, tried, took_ns);
  return {.code = code};
}

Outcome run_prepared(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  if (request.prefix != Prefix::none && scan_is_hosts(*communicator.team, request))
    return {.reason = plan::reasons::host_is_faster};
  const CallShape shape{.call = request.call,
                        .in_place = request.sharing != Sharing::none,
                        .displacements = request.displacements,
                        .candidate = candidate_of(request)};
  const PreparedCall* prepared = &communicator.team->schedules.find(shape);
  if (prepared->too_long || (communicator.posts && communicator.team->short_calls_only)) [[unlikely]] {
    set_up_now(communicator, TeamExtent::all_calls);
    if (communicator.road == Road::host) return {.reason = communicator.host_reason};
    if (communicator.road == Road::broken) return {.code = communicator.raise(communicator.error)};
    prepared = &communicator.team->schedules.find(shape);
  }
  if (prepared->tried != nullptr && !prepared->tried->trial.passes()) [[unlikely]]
    return run_timed(communicator, request, shape, *prepared->tried, begin_ns != 0);
  if (!prepared->accelerated) return {.reason = prepared->reason};
  const bool measuring = begin_ns != 0 || communicator.team->trace != nullptr;
  if (measuring && begin_ns == 0) begin_ns = monotonic_ns();
  note_call({.plan = prepared->plan, .channels = prepared->channels});
  const int code = run(communicator, request, *prepared);
  if (measuring) record(communicator, request, *prepared, prepared->row, begin_ns);
  return {.code = code};
}

}  // namespace

void set_up_now(Communicator& communicator, TeamExtent extent) {
  const bool replaces = communicator.team != nullptr;
  communicator.timed = {};
  communicator.grouping.reset();  // it has plans of the set-up that is replaced
  Result<std::unique_ptr<Team>> made = communicator.connect(extent, std::move(communicator.team));
  if (made.ok()) {
    communicator.team = std::move(*made);
    communicator.road = Road::accelerated;
    return;
  }
  if (replaces && (made.status().code() == Code::peer_failed || made.status().code() == Code::peer_left)) {
    break_off(communicator, made.status(), caller().code_of(made.status()));
    return;
  }
  communicator.host_reason = reasons::no_set_up;
  communicator.road = Road::host;
  try {
    communicator.host_reason = intern(made.status().message());
    if (job().first_rank) warn("the host MPI keeps a communicator's collectives: " + made.status().message());
  } catch (const std::exception&) {
  }
}

Outcome accelerate(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  Status failure;
  try {
    if (communicator.operations.pending.load(std::memory_order_acquire) != 0) [[unlikely]]
      communicator.progress.drain(communicator);
    // Left behind where an error handler of the program did not return: other ranks have counted that call.
    if (communicator.timed.tried != nullptr) [[unlikely]]
      end_host_call(communicator);
    bool just_set_up = false;
    if (communicator.road == Road::waiting) [[unlikely]] {
      if (++communicator.eligible_calls < job().config.setup_calls) return {.reason = reasons::not_set_up};
      set_up_now(communicator, extent_for(communicator, request.call));
      just_set_up = true;
    }
    if (communicator.road == Road::host) [[unlikely]]
      return {.reason = communicator.host_reason};
    if (communicator.road == Road::broken) [[unlikely]]
      return {.code = communicator.raise(communicator.error)};
    if (by_pairs(request.call.collective)) return run_by_pairs(communicator, request, begin_ns);
    if (on_neighbors(request.call.collective)) return run_with_neighbors(communicator, request, just_set_up, begin_ns);
    return run_prepared(communicator, request, begin_ns);
  } catch (const std::exception& exception) {
    failure = status_of(exception);
  }
  // The other ranks go on without this one, so that none can go back to the host now.
  return {.code = fail(communicator, failure)};
}

void end_host_call(Communicator& communicator) {
  const std::uint64_t end_ns = monotonic_ns();
  const TimedCall timed = std::exchange(communicator.timed, {});
  end_timed(communicator, *timed.tried, end_ns - timed.begin_ns);
}

bool stay_with_host(Communicator& communicator) noexcept {
  if (communicator.road == Road::waiting && ++communicator.eligible_calls >= job().config.setup_calls) {
    communicator.decline_set_up();
    communicator.host_reason = reasons::no_set_up;
    communicator.road = Road::host;
  }
  return communicator.road == Road::waiting || communicator.road == Road::host;
}

}  // namespace plait::runtime
