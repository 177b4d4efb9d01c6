#include "runtime/execution/decide.h"

#include "runtime/execution/call_choice.h"
#include "runtime/job/reasons.h"

namespace plait::runtime::detail {
namespace {

// The same on all ranks: of data in pieces they know no more than the slots of exchanges by pairs.
CallSize agreed_size(const Call& call, int ranks) {
  if (lies_in_pieces(call.collective)) return {.call = usual_slot_bytes, .all_ranks = usual_slot_bytes};
  return call_size(call, ranks);
}

// A set-up takes all ranks, which only a call that blocks can wait for.
Decision decide_while_waiting(const AskedOfRoad& asked) {
  if (asked.form != Form::blocking) return leave_to_host(reasons::not_set_up_by_blocking);
  if (asked.eligible_calls + 1 < asked.setup_calls) return leave_to_host(reasons::not_set_up);
  const bool all = asked.needs_all || !is_short(asked.call, asked.ranks);
  return {.what = Decision::What::set_up,
          .eligible = true,
          .extent = all ? TeamExtent::all_calls : TeamExtent::short_calls};
}

}  // namespace

Decision decide_by_road(const AskedOfRoad& asked) {
  const CallSize size = agreed_size(asked.call, asked.ranks);
  if (const HostRow* row = always_hosts(host_entries(asked.table), asked.form, asked.call.collective, size);
      row != nullptr && !asked.never_hosts)
    return leave_to_host(*row);
  switch (asked.road) {
    case Road::waiting:
      return decide_while_waiting(asked);
    case Road::broken:
      return {.what = Decision::What::fail, .eligible = true};
    default:
      return leave_to_host(asked.host_reason);
  }
}

const HostRow* host_row(const HostSizes& sizes, Form form, const Call& call, int ranks) {
  return sizes.row(form, call.collective, agreed_size(call, ranks));
}

Decision decide_beyond_set_up(Form form) {
  if (form != Form::blocking) return leave_to_host(reasons::short_set_up);
  return {.what = Decision::What::set_up, .eligible = true, .extent = TeamExtent::all_calls};
}

}  // namespace plait::runtime::detail
