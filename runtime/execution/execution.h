// A call on its way through the engine, once it is clear that it runs here: its data is packed, its schedule runs, its
// results are unpacked. A blocking call is run to its end; non-blocking and persistent ones, groups of them,
// reshardings and exchanges by pairs, whatever their form, are the same started and moved on. What the ranks run among
// themselves (a trial's meeting, an agreement about a group) is one as well.
#pragma once

#include "core/status.h"
#include "plan/lower/bound_schedule.h"
#include "runtime/execution/exchange.h"
#include "runtime/execution/request.h"
#include "runtime/execution/staging.h"
#include "runtime/layer.h"
#include "runtime/team/team.h"

namespace plait::runtime {

struct Execution {
  const BoundSchedule* schedule = nullptr;  // what runs, or runs first; the caller's
  Staging staging;                          // where the data of one schedule is
  Exchange* exchange = nullptr;             // of data in pieces, which has taken them; nullptr: they lie in regions
  const GroupMembers* group = nullptr;      // of requests that run as one; nullptr: one request
  bool at_rest = false;                     // of an exchange: what comes after its first schedule runs
  int error = 0;                            // of the data, where that is why it failed: a code of the caller's
};

// First of all. False where the data cannot be packed: for `error`. May throw std::bad_alloc.
inline bool pack(const Request& request, Execution& execution) {
  execution.error = execution.exchange != nullptr ? execution.exchange->begin(*execution.schedule)
                    : execution.group != nullptr  ? stage_in(*execution.group, *execution.schedule, execution.staging)
                                                  : stage_in(request, *execution.schedule, execution.staging);
  return execution.error == 0;
}

Status run_exchange(Team& team, Execution& execution);

// Blocks until the schedule is through. May throw std::bad_alloc. In the header for the sake of short calls.
inline Status run(Team& team, const Request& request, Execution& execution) {
  if (execution.exchange != nullptr) return run_exchange(team, execution);
  const Buffers buffers = execution.staging.buffers;  // the engine need not know of the rest, which stays in registers
  return team.engine.run(*execution.schedule, buffers, request.reducer, begin_trace(team));
}

// The same without blocking: true when all is through; after false progress() is called until it says so or fails.
// What fails is told to the other ranks before the channels are closed, where the thread may call the host.
Result<bool> start(Team& team, const Request& request, Execution& execution, bool may_call_host);
Result<bool> progress(Team& team, Execution& execution, bool may_call_host);

// After the end: unpacks. Returns a code of the caller's; may throw std::bad_alloc.
inline int finish(const Request& request, Execution& execution) {
  if (execution.exchange != nullptr) return execution.exchange->end();
  return execution.group != nullptr ? stage_out(*execution.group, execution.staging)
                                    : stage_out(request, execution.staging);
}

}  // namespace plait::runtime
