// Whether an operation that was read runs here, and by what: the same for all who post. In a header for the sake of
// short calls.
#pragma once

#include <algorithm>
#include <memory>

#include "runtime/execution/call_choice.h"
#include "runtime/execution/decide.h"
#include "runtime/execution/staging.h"
#include "runtime/job/job.h"
#include "runtime/layer.h"
#include "runtime/progress/operation.h"
#include "runtime/team/team.h"

namespace plait::runtime {
namespace detail {

inline const PreparedCall& look_up_ordered(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  if (operation.ordered == nullptr) operation.ordered = std::make_unique<OrderedExchange>();
  operation.prepared = operation.ordered->take(*communicator.team, communicator.rank, operation.request);
  return *operation.prepared;
}

// Whether some part of it calls the host: packing, or a channel over its messages. Precondition: it is prepared.
inline bool calls_host(const Operation& operation) {
  const Request& request = operation.request;
  if (lies_in_pieces(request.call.collective)) {
    const auto packed = [](const Piece& piece) { return piece.type != nullptr && !piece.type->contiguous; };
    return operation.communicator->team->routes().need_host() || std::ranges::any_of(request.lists->sends, packed) ||
           std::ranges::any_of(request.lists->receives, packed);
  }
  if (runs_ordered(operation)) return operation.communicator->team->routes().need_host();
  const bool packed = request.input.type != nullptr && !request.input.direct;
  return packed || operation.prepared->schedule.channels_used.any(&ChannelTraits::needs_host);
}

inline const PreparedCall& look_up_in_pieces(Operation& operation) {
  const Communicator& communicator = *operation.communicator;
  if (by_pairs(operation.request.call.collective)) {
    const Call first = PairExchange::first_call(pair_problem(communicator, operation.request, usual_slot_bytes));
    operation.prepared = communicator.team->schedules.hold({.call = first, .candidate = planners_candidate});
    return *operation.prepared;
  }
  if (operation.neighbors == nullptr) operation.neighbors = std::make_unique<NeighborExchange>();
  operation.neighbors->take(operation.request);
  operation.prepared = communicator.team->neighborhood->find(operation.neighbors->shape());
  return *operation.prepared;
}

// nullptr: it has none, or one that is planned.
inline const TrialClass* unplanned_class(const Decision& decision) {
  const bool asked = decision.what == Decision::What::host && decision.prepared != nullptr;
  const TrialClass* tried = asked ? decision.prepared->tried : nullptr;
  return tried == nullptr || tried->trial.planned() ? nullptr : tried;
}

}  // namespace detail

// Where it runs here `operation.prepared` is set, else `operation.reason`. `unfit`: why it cannot run here on any
// communicator; the same on all ranks. May throw std::bad_alloc.
[[gnu::always_inline]] inline Decision prepare_operation(Operation& operation, Form form, const char* unfit) {
  const Request& request = operation.request;
  Communicator& communicator = *operation.communicator;
  const auto look_up = [&]() -> const PreparedCall& {
    if (lies_in_pieces(request.call.collective)) [[unlikely]]
      return detail::look_up_in_pieces(operation);
    if (is_ordered(request)) [[unlikely]]
      return detail::look_up_ordered(operation);
    operation.prepared = communicator.team->schedules.hold({.call = request.call,
                                                            .in_place = request.sharing != Sharing::none,
                                                            .displacements = request.displacements,
                                                            .candidate = candidate_of(request)});
    return *operation.prepared;
  };
  const Asked asked{.form = form, .call = request.call, .unfit = unfit, .never_hosts = request.ordered != nullptr};
  Decision decision = decide(asked, agreed_by(communicator), look_up);
  // The posts of a class are not counted: it is planned with the first.
  if (const TrialClass* unplanned = detail::unplanned_class(decision); unplanned != nullptr) [[unlikely]] {
    communicator.team->schedules.plan(*unplanned);
    decision = decide(asked, agreed_by(communicator), look_up);
  }
  if (decision.what != Decision::What::run) [[unlikely]] {
    operation.prepared.reset();
    operation.reason = decision.reason;
    return decision;
  }
  operation.needs_host = detail::calls_host(operation);
  if (on_device(operation.request)) [[unlikely]]
    follow_program(operation.request, operation.memory);
  note_call({.plan = operation.prepared->plan, .channels = operation.prepared->channels});
  return decision;
}

}  // namespace plait::runtime
