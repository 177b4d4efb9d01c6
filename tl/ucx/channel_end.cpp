#include "tl/ucx/channel_end.h"

#include <sched.h>

#include <utility>

#include "tl/trace.h"

namespace plait::tl {
namespace {

// A rank that gives up stays to take what its peers have under way to it, until they have given up as well: theirs is
// in its way out then, too. Those that compute, or have come to the end of their schedule, are not waited for.
constexpr std::uint64_t linger_ns = 100'000'000;
// Until what was cut is over.
constexpr std::uint64_t after_cut_ns = 1'000'000'000;

}  // namespace

ChannelEnd::ChannelEnd(std::vector<RailState>& rails, const Membership& membership)
    : rails_(rails),
      farewells_(membership.communicator, membership.rank, membership.ranks, rails.size()),
      patience_ns_(membership.patience_ns) {}

// The connections are those of other communicators as well, and stay. A connection that is not ready has carried
// nothing yet: its peer hears of the failure from elsewhere.
void ChannelEnd::announce(const Status& cause) {
  if (std::exchange(announced_, true)) return;
  farewells_.compose(cause);
  for (RailState& state : rails_) {
    RailWorker& worker = *state.rail.worker;
    const auto turn = worker.lock();
    for (UcxEndpoint* endpoint : state.endpoints)
      if (endpoint != nullptr && worker.ready(*endpoint) && alive(*endpoint)) farewells_.say(worker, *endpoint);
  }
}

void ChannelEnd::come_to(const Status& cause, bool out_of_reach) {
  announce(cause);
  cancel_receives();
  const std::uint64_t begin = monotonic_ns(), patience = out_of_reach ? linger_ns : patience_ns_;
  while (true) {
    const bool over = settle();
    const std::uint64_t waited = monotonic_ns() - begin;
    if (over && (waited >= linger_ns || all_gave_up())) break;
    if (!over && waited >= patience) {
      cut_off();
      break;
    }
    sched_yield();
  }
  let_go();
}

void ChannelEnd::cancel_receives() {
  for (RailState& state : rails_) {
    RailWorker& worker = *state.rail.worker;
    const auto turn = worker.lock();
    state.held.clear();
    for (const Piece& piece : state.pieces)
      if (!piece.sends) worker.ucp().request_cancel(worker.worker(), piece.request);
  }
}

// A glance. True when nothing of this channel's is under way any more. A peer that has given up takes no message, and
// so confirms none: what has left this process ahead of the farewell is over all the same.
bool ChannelEnd::settle() {
  bool over = true;
  for (RailState& state : rails_) {
    RailWorker& worker = *state.rail.worker;
    const auto turn = worker.lock();
    worker.progress();
    const bool told = farewells_.all_left(worker);
    std::erase_if(state.pieces, [&](const Piece& piece) {
      const bool left = piece.confirmed && farewells_.left(*state.endpoints[static_cast<std::size_t>(piece.peer)]);
      if (!left && worker.ucp().request_check_status(piece.request) == UCS_INPROGRESS) return false;
      worker.ucp().request_free(piece.request);
      return true;
    });
    over &= state.pieces.empty() && told;
    farewells_.listen(worker);
  }
  return over;
}

// All to whom this channel is connected, and who are still there.
bool ChannelEnd::all_gave_up() {
  for (RailState& state : rails_) {
    const auto turn = state.rail.worker->lock();
    for (std::size_t rank = 0; rank < state.endpoints.size(); ++rank) {
      UcxEndpoint* endpoint = state.endpoints[rank];
      if (endpoint == nullptr || farewells_.heard_from(rank)) continue;
      if (state.rail.worker->ready(*endpoint) && alive(*endpoint)) return false;
    }
  }
  return true;
}

// The last resort: a peer does not take what was sent to it. Whatever else goes over those connections fails with it.
void ChannelEnd::cut_off() {
  for (RailState& state : rails_) {
    RailWorker& worker = *state.rail.worker;
    const auto turn = worker.lock();
    for (const Piece& piece : state.pieces)
      worker.close(*state.endpoints[static_cast<std::size_t>(piece.peer)], UCS_ERR_TIMED_OUT);
  }
  const std::uint64_t until = monotonic_ns() + after_cut_ns;
  while (!settle() && monotonic_ns() < until) sched_yield();
}

// A receive over a connection that was cut may never be complete, but nothing comes for it either.
void ChannelEnd::let_go() {
  for (RailState& state : rails_) {
    RailWorker& worker = *state.rail.worker;
    const auto turn = worker.lock();
    for (Piece& piece : state.pieces) {
      worker.ucp().request_free(piece.request);
      static_cast<void>(piece.staging.release());  // UCX may still use it
    }
    state.pieces.clear();
    farewells_.forget(worker);
  }
}

}  // namespace plait::tl
