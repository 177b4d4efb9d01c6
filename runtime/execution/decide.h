// Whether a call runs here, and by what. Blocking, non-blocking and persistent calls all ask here, once a call (and
// once more where the answer was to set the communicator up). The answer follows from what the call is and from what
// its ranks have agreed on, so that all of them come to the same one; asking changes nothing.
#pragma once

#include <cstdint>

#include "plan/choose/host_rows.h"
#include "runtime/execution/communicator.h"
#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "runtime/layer.h"
#include "runtime/team/extent.h"
#include "runtime/team/schedule_cache.h"
#include "runtime/team/slot_size.h"
#include "runtime/team/team.h"

namespace plait::runtime {

struct Asked {
  Form form = Form::blocking;
  const Call& call;  // of an exchange by pairs only the collective and the root count: ranks do not know the rest
  const char* unfit = nullptr;  // why it cannot run here on any communicator; the same on all ranks
  bool never_hosts = false;     // though the host may be faster: it would not give the bits that are asked for
};

// What the ranks of a communicator have agreed on, or each knows by having made the same calls.
struct Agreed {
  int ranks = 1;
  Road road = Road::waiting;
  const char* host_reason = "";             // on Road::host
  int eligible_calls = 0, setup_calls = 0;  // while it waits: so far, and with which it is set up
  bool posts = false;
  bool short_calls_only = false;
  bool lengths_are_hosts = false;      // of an exchange by pairs: most ranks wished so (SlotSize)
  const TuningTable* table = nullptr;  // the job's
  const HostSizes* sizes = nullptr;    // once it is set up: which are the host's
};

// What becomes of the call, and what the asker needs for it.
struct Decision {
  enum class What : std::uint8_t {
    run,     // here, by `prepared`
    time,    // as a sample for the trial of its class, prepared->tried, by whichever candidate has its turn
    host,    // the host's, for `reason`
    set_up,  // the communicator, for `extent`; then ask again
    fail,    // with the communicator's error
  };
  What what = What::host;
  bool eligible = false;    // counts among the calls that make a set-up worth while
  bool by_lengths = false;  // the host's by Agreed::lengths_are_hosts, whose turn is over then
  TeamExtent extent = TeamExtent::all_calls;
  const char* reason = nullptr;
  const PreparedCall* prepared = nullptr;  // once the schedules were asked; as long as they say
};

// ---- Where a communicator stands: what asks for its road, of whatever form, asks by these ----

// Whether it is still to be set up, or to be left to the host for good.
inline bool waits_for_set_up(const Communicator& communicator) { return communicator.road == Road::waiting; }
// It has a team, and its calls may run here.
inline bool is_set_up(const Communicator& communicator) { return communicator.road == Road::accelerated; }
// For good, whatever the call: then nothing else of it need be looked at.
inline bool hosts_for_good(const Communicator& communicator) { return communicator.road == Road::host; }
// Its calls and starts fail.
inline bool is_broken(const Communicator& communicator) { return communicator.road == Road::broken; }

// Of a call among neighbours; nullptr: the communicator has those, or is not set up for them yet.
inline const char* why_not_among_neighbors(const Communicator& communicator) {
  const Team* team = communicator.team.get();
  const bool known = team != nullptr && !team->short_calls_only;
  return known && team->neighborhood == nullptr ? reasons::no_neighborhood : nullptr;
}

// As it stands. `lengths`: of an exchange by pairs whose ranks learn of them; nullptr: none.
inline Agreed agreed_by(const Communicator& communicator, const SlotSize* lengths = nullptr) {
  const Team* team = communicator.team.get();
  return {.ranks = communicator.ranks,
          .road = communicator.road,
          .host_reason = communicator.host_reason,
          .eligible_calls = communicator.eligible_calls,
          .setup_calls = job().config.setup_calls,
          .posts = communicator.posts,
          .short_calls_only = team != nullptr && team->short_calls_only,
          .lengths_are_hosts = lengths != nullptr && lengths->is_hosts(),
          .table = job().table.get(),
          .sizes = team != nullptr ? &team->host_sizes : nullptr};
}

namespace detail {

// What is asked of a communicator without schedules. Built where that is known: short calls, which pass it by, keep all
// that they look at in registers.
struct AskedOfRoad {
  Form form;
  const Call& call;
  int ranks;
  Road road;
  const char* host_reason;
  int eligible_calls, setup_calls;
  bool needs_all;
  bool never_hosts;
  const TuningTable* table;
};
[[gnu::cold]] Decision decide_by_road(const AskedOfRoad& asked);
// Where some row looks at calls of its kind: by which it is the host's; nullptr: by none.
const HostRow* host_row(const HostSizes& sizes, Form form, const Call& call, int ranks);
// Of one that is set up for short calls only, which this call may not be.
[[gnu::cold]] Decision decide_beyond_set_up(Form form);

inline Decision leave_to_host(const char* reason) {
  return {.what = Decision::What::host, .eligible = true, .reason = reason};
}
inline Decision leave_to_host(const HostRow& row) {
  return {.what = Decision::What::host, .eligible = !row.always, .reason = row.reason};
}

// Whether it is known beforehand that what is set up for short calls does not do: how long data in pieces
// are no rank knows, and what is set up for a program that posts is for any length.
inline bool needs_all(const Asked& asked, const Agreed& agreed) {
  return lies_in_pieces(asked.call.collective) || (asked.form == Form::blocking && agreed.posts);
}

// What a persistent call makes on a broken communicator fails when it is started.
inline bool fails_later(const Asked& asked, const Agreed& agreed) {
  return asked.form == Form::persistent && agreed.road == Road::broken;
}

inline bool is_due(const Asked& asked, const PreparedCall& prepared) {
  return asked.form == Form::blocking && prepared.tried != nullptr && prepared.tried->trial.due();
}

}  // namespace detail

// `look_up` finds the call among the schedules; asked only of a communicator that has some, and last, as it may plan.
// In the header for the sake of short calls.
template <class LookUp>
[[gnu::always_inline]] inline Decision decide(const Asked& asked, const Agreed& agreed, LookUp&& look_up) {
  using What = Decision::What;
  if (asked.unfit != nullptr) [[unlikely]]
    return {.what = What::host, .reason = asked.unfit};
  if (agreed.road != Road::accelerated && !detail::fails_later(asked, agreed)) [[unlikely]]
    return detail::decide_by_road({.form = asked.form,
                                   .call = asked.call,
                                   .ranks = agreed.ranks,
                                   .road = agreed.road,
                                   .host_reason = agreed.host_reason,
                                   .eligible_calls = agreed.eligible_calls,
                                   .setup_calls = agreed.setup_calls,
                                   .needs_all = detail::needs_all(asked, agreed),
                                   .never_hosts = asked.never_hosts,
                                   .table = agreed.table});
  if (agreed.sizes->any(asked.form, asked.call.collective)) [[unlikely]]
    if (const HostRow* row = detail::host_row(*agreed.sizes, asked.form, asked.call, agreed.ranks);
        row != nullptr && !asked.never_hosts)
      return detail::leave_to_host(*row);
  if (agreed.lengths_are_hosts) [[unlikely]]
    return {.what = What::host, .eligible = true, .by_lengths = true, .reason = plan::reasons::host_has_lengths};
  if (agreed.short_calls_only && detail::needs_all(asked, agreed)) [[unlikely]]
    return detail::decide_beyond_set_up(asked.form);
  const PreparedCall& prepared = look_up();
  if (prepared.too_long) [[unlikely]] {
    Decision beyond = detail::decide_beyond_set_up(asked.form);
    beyond.prepared = &prepared;
    return beyond;
  }
  if (detail::is_due(asked, prepared)) return {.what = What::time, .eligible = true, .prepared = &prepared};
  if (prepared.accelerated) [[likely]]
    return {.what = What::run, .eligible = true, .prepared = &prepared};
  return {.what = What::host, .eligible = true, .reason = prepared.reason, .prepared = &prepared};
}

}  // namespace plait::runtime
