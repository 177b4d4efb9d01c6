#include "plugin/ucc/team.h"

#include <exception>
#include <utility>

#include "core/attempt.h"
#include "plugin/ucc/oob/gather_oob.h"
#include "runtime/call/blocking.h"
#include "runtime/job/reasons.h"
#include "runtime/team/set_up.h"

namespace plait::plugin {
namespace {

// For a rank that cannot go on: the others' set-up ends.
void withdraw_from(Exchange& exchange) noexcept {
  try {
    GatherOob(exchange).withdraw();
  } catch (const std::exception&) {  // nothing is left to tell them by
  }
}

}  // namespace

UccTeam::UccTeam(UccContext& context, const ucc_oob_coll_t& oob, int own_rank, int all_ranks)
    : Communicator(context.progress), carrier_(oob, own_rank, all_ranks), exchange_(carrier_) {
  rank = own_rank;
  ranks = all_ranks;
  posts = true;
  ended_ = alone();
  if (ended_) return;
  if (set_up_.start(exchange_, [this] { set_up_now(*this, TeamExtent::all_calls); })) return;
  OwnExchange own(carrier_);
  withdraw_from(own);
  host_reason = reasons::no_set_up;
  road = Road::host;
  ended_ = true;
}

UccTeam::~UccTeam() { progress.retire(*this); }

const char* UccTeam::why_not(int ranks) { return ranks == 1 ? nullptr : reasons::of_communicator(false, ranks); }

bool UccTeam::turn() {
  ended_ = ended_ || set_up_.turn();
  return ended_;
}

Result<std::unique_ptr<Team>> UccTeam::connect(TeamExtent extent, std::unique_ptr<Team> before) noexcept {
  std::unique_ptr<Oob> oob;
  try {
    if (before == nullptr) oob = std::make_unique<GatherOob>(exchange_);
    return runtime::set_up({.extent = extent, .channels = channels, .grid = grid, .name = {}, .neighbors = {}, .location = {}}, std::move(oob),
                           std::move(before));
  } catch (const std::exception& exception) {
    withdraw_from(exchange_);
    return status_of(exception);
  }
}

void UccTeam::decline_set_up() noexcept { withdraw_from(exchange_); }

}  // namespace plait::plugin
