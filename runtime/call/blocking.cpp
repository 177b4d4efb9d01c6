#include "runtime/call/blocking.h"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <string>

#include "core/attempt.h"
#include "core/intern.h"
#include "core/log.h"
#include "runtime/call/posted_call.h"
#include "runtime/call/timed_call.h"
#include "runtime/execution/call_choice.h"
#include "runtime/execution/call_record.h"
#include "runtime/execution/caller.h"
#include "runtime/execution/decide.h"
#include "runtime/execution/execution.h"
#include "runtime/execution/ordered_exchange.h"
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
void end_timed(Communicator& communicator, const TimedCall& timed, std::uint64_t end_ns) {
  Status status;
  try {
    status = end_timed_call(*communicator.team, *timed.tried, end_ns - timed.begin_ns, timed.bytes);
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

// Where the ranks may find that all of its data are on devices.
[[gnu::noinline]] int run_on_devices(Communicator& communicator, const Request& request, const PreparedCall& prepared) {
  Team& team = *communicator.team;
  if (communicator.on_devices == nullptr) communicator.on_devices = std::make_unique<DeviceExchange>();
  DeviceExchange& exchange = *communicator.on_devices;
  exchange.take(team, communicator.rank, request, prepared.schedule, team.memory, nullptr);
  Execution execution{.schedule = &exchange.question(), .staging = {}, .exchange = &exchange};
  if (const int code = run_through(communicator, request, execution); code != 0) [[unlikely]]
    return code;
  const int error = finish(request, execution);
  return error == 0 ? error : communicator.raise(error);
}

int run(Communicator& communicator, Request& request, const PreparedCall& prepared) {
  Team& team = *communicator.team;
  if (asks_devices(team, request)) [[unlikely]]
    return run_on_devices(communicator, request, prepared);
  Execution execution{.schedule = &prepared.schedule, .staging = lay_out(request, prepared.schedule, team.memory)};
  if (const int code = run_through(communicator, request, execution); code != 0) [[unlikely]]
    return code;
  const int error = finish(request, execution);
  return error == 0 ? error : communicator.raise(error);
}

// ---- Deciding ----

Outcome run_eligible(Communicator& communicator, Request& request, std::uint64_t begin_ns);

SlotSize* slot_size_of(const Communicator& communicator, Collective collective) {
  return communicator.team != nullptr ? communicator.team->slots.of(collective) : nullptr;
}

// What counts calls counts this one.
inline void count(Communicator& communicator, const Call& call, const Decision& decision) {
  if (decision.prepared != nullptr) {
    if (decision.prepared->tried != nullptr) decision.prepared->tried->trial.count();
  } else if (decision.by_lengths) {
    slot_size_of(communicator, call.collective)->note_host_call();
  } else if (decision.eligible && waits_for_set_up(communicator)) {
    ++communicator.eligible_calls;
  }
}

// It neither runs here nor is timed: a set-up before all else, or it is the host's, or fails. Apart from short calls,
// which do without all that.
[[gnu::noinline]] Outcome turn_down(Communicator& communicator, Request& request, std::uint64_t begin_ns,
                                    Decision decision) {
  switch (decision.what) {
    case Decision::What::set_up:
      set_up_now(communicator, decision.extent);
      // Its pieces are in the order of a set-up that was not there when they were read.
      if (on_neighbors(request.call.collective) && is_set_up(communicator)) return Outcome::host(reasons::not_set_up);
      return run_eligible(communicator, request,
                          begin_ns);  // which may be set up for short calls now, and ask for more
    case Decision::What::fail:
      return Outcome::done(communicator.raise(communicator.error));
    default:
      return Outcome::host(decision.reason);
  }
}

// ---- Exchanges by pairs ----

int run(Communicator& communicator, const Request& request, const PairExchange::Problem& problem,
        const PreparedCall& prepared) {
  Team& team = *communicator.team;
  if (communicator.pairs == nullptr) communicator.pairs = std::make_unique<PairExchange>();
  communicator.pairs->take(problem);
  Execution execution{.schedule = &prepared.schedule, .staging = {}, .exchange = communicator.pairs.get()};
  if (const int code = run_through(communicator, request, execution); code != 0) [[unlikely]]
    return code;
  SlotSize& size = *team.slots.of(request.call.collective);
  if (problem.hosts != nullptr)
    size.learn(communicator.pairs->wishes());
  else if (!size.learns())
    size.note_own_call();
  const int error = finish(request, execution);
  return error == 0 ? error : communicator.raise(error);
}

// A gatherv's slots have one size: what its ranks could learn is which calls are the host's.
bool learns_of_host(const Team& team, Collective collective) {
  return collective != Collective::gatherv || team.host_sizes.asks_ranks(collective);
}

Outcome run_by_pairs(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  PairExchange::Problem problem;
  const auto look_up = [&]() -> const PreparedCall& {
    const SlotSize& size = *communicator.team->slots.of(request.call.collective);
    problem = pair_problem(communicator, request, size.bytes());
    const Team& team = *communicator.team;
    if (size.learns() && learns_of_host(team, request.call.collective)) problem.hosts = &team.host_sizes;
    const Call first = PairExchange::first_call(problem);
    return communicator.team->schedules.find({.call = first, .candidate = planners_candidate});
  };
  const Asked asked{.form = Form::blocking, .call = request.call};
  const SlotSize* lengths = slot_size_of(communicator, request.call.collective);
  const Decision decision = decide(asked, agreed_by(communicator, lengths), look_up);
  count(communicator, asked.call, decision);
  if (decision.what != Decision::What::run) return turn_down(communicator, request, begin_ns, decision);
  const PreparedCall& prepared = *decision.prepared;
  if (begin_ns == 0 && communicator.team->trace != nullptr) begin_ns = monotonic_ns();
  note_call({.plan = prepared.plan, .channels = prepared.channels});
  const int code = run(communicator, request, problem, prepared);
  if (begin_ns != 0)
    record(communicator, request, prepared, row_of(communicator, request, prepared, Form::blocking), begin_ns);
  return Outcome::done(code);
}

// ---- Neighbours ----

Outcome run_among_neighbors(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  std::shared_ptr<const PreparedCall> prepared;
  const auto look_up = [&]() -> const PreparedCall& {
    if (communicator.neighbors == nullptr) communicator.neighbors = std::make_unique<NeighborExchange>();
    communicator.neighbors->take(request);
    prepared = communicator.team->neighborhood->find(communicator.neighbors->shape());
    return *prepared;
  };
  const Asked asked{.form = Form::blocking, .call = request.call, .unfit = why_not_among_neighbors(communicator)};
  const Decision decision = decide(asked, agreed_by(communicator), look_up);
  count(communicator, asked.call, decision);
  if (decision.what != Decision::What::run) return turn_down(communicator, request, begin_ns, decision);
  if (begin_ns == 0 && communicator.team->trace != nullptr) begin_ns = monotonic_ns();
  note_call({.plan = prepared->plan, .channels = prepared->channels});
  Execution execution{.schedule = &prepared->schedule, .staging = {}, .exchange = communicator.neighbors.get()};
  if (const int code = run_through(communicator, request, execution); code != 0) [[unlikely]]
    return Outcome::done(code);
  const int error = finish(request, execution);
  if (begin_ns != 0)
    record(communicator, request, *prepared, row_of(communicator, request, *prepared, Form::blocking), begin_ns);
  return Outcome::done(error == 0 ? error : communicator.raise(error));
}

// ---- Sums and products in no order (PLAIT_REPRODUCIBLE=order) ----

int run(Communicator& communicator, Request& request, const PreparedCall& prepared, OrderedExchange& exchange) {
  if (!exchange.runs_apart()) return run(communicator, request, prepared);
  Execution execution{.schedule = &prepared.schedule, .staging = {}, .exchange = &exchange};
  if (const int code = run_through(communicator, request, execution); code != 0) [[unlikely]]
    return code;
  const int error = finish(request, execution);
  return error == 0 ? error : communicator.raise(error);
}

[[gnu::noinline]] Outcome run_ordered(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  std::shared_ptr<const PreparedCall> prepared;
  const auto look_up = [&]() -> const PreparedCall& {
    if (communicator.ordered == nullptr) communicator.ordered = std::make_unique<OrderedExchange>();
    prepared = communicator.ordered->take(*communicator.team, communicator.rank, request);
    return *prepared;
  };
  const Asked asked{.form = Form::blocking, .call = request.call, .never_hosts = true};
  const Decision decision = decide(asked, agreed_by(communicator), look_up);
  count(communicator, asked.call, decision);
  if (decision.what != Decision::What::run) return turn_down(communicator, request, begin_ns, decision);
  if (begin_ns == 0 && communicator.team->trace != nullptr) begin_ns = monotonic_ns();
  note_call({.plan = prepared->plan, .channels = prepared->channels});
  const int code = run(communicator, request, *prepared, *communicator.ordered);
  if (begin_ns != 0)
    record(communicator, request, *prepared, row_of(communicator, request, *prepared, Form::blocking), begin_ns);
  return Outcome::done(code);
}

// ---- Calls of a length that all ranks know ----

// A call in a trial, or one by which a settled class is watched.
Outcome run_timed(Communicator& communicator, Request& request, CallShape shape, TrialClass& tried, bool measuring) {
  Team& team = *communicator.team;
  const int candidate = tried.trial.candidate();
  if (tried.trial.open()) note_trial_call();
  shape.candidate = candidate;
  std::shared_ptr<const PreparedCall> prepared;
  if (candidate != Trial::host) prepared = team.schedules.hold(shape);
  if (const Status met = meet_for_timed_call(team, tried.trial); !met.ok()) [[unlikely]]
    return Outcome::done(fail(communicator, met));
  const std::uint64_t begin_ns = monotonic_ns();
  const TimedCall timed{
      .tried = &tried, .begin_ns = begin_ns, .bytes = payload_bytes(request.call, communicator.ranks)};
  communicator.sample = timed;
  if (prepared == nullptr || !prepared->accelerated) return Outcome::host(tried.reason(), &communicator.sample);
  note_call({.plan = prepared->plan, .channels = prepared->channels});
  const int code = run(communicator, request, *prepared);
  const std::uint64_t end_ns = monotonic_ns();
  communicator.sample = {};
  if (is_broken(communicator)) return Outcome::done(code);
  if (measuring || team.trace != nullptr) record(communicator, request, *prepared, prepared->row, begin_ns);
  end_timed(communicator, timed, end_ns);
  return Outcome::done(code);
}

// It ends the wait of a class that nothing was planned for.
[[gnu::noinline]] Outcome run_newly_planned(Communicator& communicator, Request& request, const TrialClass& unplanned,
                                            std::uint64_t begin_ns) {
  communicator.team->schedules.plan(unplanned);
  return run_eligible(communicator, request, begin_ns);
}

// A part of accelerate(): a call of its own shows in the time of a small one.
[[gnu::always_inline]] inline Outcome run_prepared(Communicator& communicator, Request& request,
                                                   std::uint64_t begin_ns) {
  const CallShape shape{.call = request.call,
                        .in_place = request.sharing != Sharing::none,
                        .displacements = request.displacements,
                        .candidate = candidate_of(request)};
  const auto look_up = [&]() -> const PreparedCall& { return communicator.team->schedules.find(shape); };
  const Asked asked{.form = Form::blocking, .call = request.call, .never_hosts = request.ordered != nullptr};
  const Decision decision = decide(asked, agreed_by(communicator), look_up);
  count(communicator, asked.call, decision);
  if (decision.what != Decision::What::run) [[unlikely]] {
    if (decision.what != Decision::What::time) return turn_down(communicator, request, begin_ns, decision);
    TrialClass& tried = *decision.prepared->tried;
    if (!tried.trial.planned()) return run_newly_planned(communicator, request, tried, begin_ns);
    return run_timed(communicator, request, shape, tried, begin_ns != 0);
  }
  const PreparedCall& prepared = *decision.prepared;
  const bool measuring = begin_ns != 0 || communicator.team->trace != nullptr;
  if (measuring && begin_ns == 0) begin_ns = monotonic_ns();
  note_call({.plan = prepared.plan, .channels = prepared.channels});
  const int code = run(communicator, request, prepared);
  if (measuring) record(communicator, request, prepared, prepared.row, begin_ns);
  return Outcome::done(code);
}

[[gnu::always_inline]] inline Outcome run_here(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  if (is_ordered(request)) [[unlikely]]
    return run_ordered(communicator, request, begin_ns);
  if (!lies_in_pieces(request.call.collective)) [[likely]]
    return run_prepared(communicator, request, begin_ns);
  return by_pairs(request.call.collective) ? run_by_pairs(communicator, request, begin_ns)
                                           : run_among_neighbors(communicator, request, begin_ns);
}

[[gnu::noinline]] Outcome run_eligible(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  return run_here(communicator, request, begin_ns);
}

}  // namespace

void set_up_now(Communicator& communicator, TeamExtent extent) {
  const bool replaces = communicator.team != nullptr;
  communicator.sample = {};
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
    if (job().first_rank) warn(name_of_host(job()) + " keeps a communicator's collectives: " + made.status().message());
  } catch (const std::exception&) {
  }
}

namespace {

// Nothing: it is not one of the communicator's grouping. What was posted before may be under way in other threads,
// where the communicator breaks.
std::optional<int> run_in_grouping(Communicator& communicator, const Request& request, std::uint64_t begin_ns) {
  Status failure;
  try {
    if (!communicator.grouping->takes_blocking(request)) return {};
    return post_and_wait(communicator, request, begin_ns);
  } catch (const std::exception& exception) {  // before it was handed over
    failure = status_of(exception);
  }
  communicator.progress.leave_out(communicator, caller().code_of(failure));
  return communicator.raise(communicator.error);
}

}  // namespace

Outcome accelerate(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  try {
    if (communicator.grouping != nullptr) [[unlikely]]
      if (const auto code = run_in_grouping(communicator, request, begin_ns); code.has_value())
        return Outcome::done(*code);
    if (communicator.operations.pending.load(std::memory_order_acquire) != 0) [[unlikely]]
      communicator.progress.drain(communicator);
    // Left behind where an error handler of the program did not return: other ranks have counted that call.
    if (communicator.sample.tried != nullptr) [[unlikely]]
      end_host_call(communicator, communicator.sample);
    return run_here(communicator, request, begin_ns);
  } catch (const std::exception& exception) {
    // The other ranks go on without this one, so that none can go back to the host now.
    const Status failure = status_of(exception);
    break_off(communicator, failure, caller().code_of(failure));
  }
  // Not within the handler: an error handler of the program's may not return.
  return Outcome::done(communicator.raise(communicator.error));
}

const char* leave_unread(Communicator& communicator, Collective collective) noexcept {
  if (!is_set_up(communicator)) return nullptr;
  // What accelerate() does before it decides is left to it.
  if (communicator.grouping != nullptr || communicator.sample.tried != nullptr ||
      communicator.operations.pending.load(std::memory_order_acquire) != 0)
    return nullptr;
  static const PreparedCall not_looked_up;
  const Call call{.collective = collective};
  const Decision decision =
      decide({.form = Form::blocking, .call = call}, agreed_by(communicator, slot_size_of(communicator, collective)),
             []() -> const PreparedCall& { return not_looked_up; });
  if (decision.what != Decision::What::host || decision.prepared != nullptr) return nullptr;
  count(communicator, call, decision);
  return decision.reason;
}

void end_host_call(Communicator& communicator, TimedCall& sample) {
  const std::uint64_t end_ns = monotonic_ns();
  const TimedCall timed = std::exchange(sample, {});
  end_timed(communicator, timed, end_ns);
}

bool stay_with_host(Communicator& communicator) noexcept {
  if (waits_for_set_up(communicator) && ++communicator.eligible_calls >= job().config.setup_calls) {
    communicator.decline_set_up();
    communicator.host_reason = reasons::no_set_up;
    communicator.road = Road::host;
  }
  return waits_for_set_up(communicator) || hosts_for_good(communicator);
}

}  // namespace plait::runtime
