#include "plugin/ucc/team.h"

#include <exception>
#include <utility>

#include "core/attempt.h"
#include "core/log.h"
#include "plugin/ucc/oob/gather_oob.h"
#include "runtime/call/blocking.h"
#include "runtime/execution/caller.h"
#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "runtime/progress/progress.h"
#include "runtime/team/set_up.h"
#include "tl/trace.h"

namespace plait::plugin {
namespace {

constexpr std::uint64_t look_every_ns = 500'000'000;

// For a rank that cannot go on: the others' set-up ends.
void withdraw_from(Gathering& gathering) noexcept {
  try {
    GatherOob(gathering).withdraw();
  } catch (const std::exception&) {  // nothing is left to tell them by
  }
}

}  // namespace

UccTeam::UccTeam(UccContext& context, const ucc_oob_coll_t& oob, int own_rank, int all_ranks)
    : Communicator(context.progress), rails_(context.rails), carrier_(oob, own_rank, all_ranks), gathering_(carrier_) {
  rank = own_rank;
  ranks = all_ranks;
  posts = true;
  ended_ = alone();
  if (ended_) return;
  if (set_up_.start(gathering_, [this] { set_up_now(*this, TeamExtent::all_calls); })) return;
  OwnGathering own(carrier_);
  withdraw_from(own);
  host_reason = reasons::no_set_up;
  road = Road::host;
  ended_ = true;
}

// What UCC has given up, as its time was over, may wait for a rank that never comes.
UccTeam::~UccTeam() {
  if (gave_up_.load(std::memory_order_relaxed) && team != nullptr) progress.leave_out(*this, UCC_ERR_TIMED_OUT);
  progress.retire(*this);
}

const char* UccTeam::why_not(int ranks) { return ranks == 1 ? nullptr : reasons::of_communicator(false, ranks); }

bool UccTeam::turn() {
  ended_ = ended_ || set_up_.turn();
  return ended_;
}

void UccTeam::look_around() noexcept {
  const std::uint64_t now_ns = tl::monotonic_ns();
  if (!threaded()) neighbours_.look(now_ns);
  look_after_peers(now_ns);
}

void UccTeam::look_after_peers(std::uint64_t now_ns) noexcept {
  std::uint64_t due_ns = next_look_ns_.load(std::memory_order_relaxed);
  if (now_ns < due_ns) return;
  if (!next_look_ns_.compare_exchange_strong(due_ns, now_ns + look_every_ns, std::memory_order_relaxed)) return;
  const Status seen = attempt([this] { return peers_.look(); });
  if (seen.ok() || is_broken(*this)) return;
  if (progress.progress() != 0) {  // it has left what is awaited, and ended meanwhile
    next_look_ns_.store(now_ns, std::memory_order_relaxed);
    return;
  }
  warn("a collective of UCC's ends: " + seen.message());
  progress.leave_out(*this, caller().code_of(seen));
}

Result<std::unique_ptr<Team>> UccTeam::connect(TeamExtent extent, std::unique_ptr<Team> before) noexcept {
  std::unique_ptr<Oob> oob;
  try {
    if (before == nullptr) oob = std::make_unique<GatherOob>(gathering_);
    if (before == nullptr)
      if (Status met = peers_.meet(*oob); !met.ok()) return met;
    return runtime::set_up({.extent = extent,
                            .channels = channels,
                            .grid = grid,
                            .name = {},
                            .neighbors = {},
                            .location = {},
                            .rails = &rails_},
                           std::move(oob), std::move(before));
  } catch (const std::exception& exception) {
    withdraw_from(gathering_);
    return status_of(exception);
  }
}

void UccTeam::decline_set_up() noexcept { withdraw_from(gathering_); }

}  // namespace plait::plugin
