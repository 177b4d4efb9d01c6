// A UCC team that Plait takes the collectives of.
#pragma once

#include <ucc/api/ucc.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "plugin/layer.h"
#include "plugin/ucc/context.h"
#include "plugin/ucc/oob/gathering.h"
#include "plugin/ucc/oob/peer_processes.h"
#include "plugin/ucc/oob/set_up_thread.h"
#include "plugin/ucc/ucc_all_gather.h"
#include "runtime/execution/communicator.h"
#include "runtime/execution/decide.h"
#include "tl/neighbour_watch.h"

namespace plait::plugin {

// Its set-up, which all its ranks make together, begins where it is made.
class UccTeam final : public Communicator {
 public:
  UccTeam(UccContext& context, const ucc_oob_coll_t& oob, int own_rank, int all_ranks);
  ~UccTeam() override;

  // Whether such a team is set up at all: the same on all ranks.
  static const char* why_not(int ranks);
  // A team of this process: its collectives are copies.
  bool alone() const { return ranks == 1; }
  bool takes_calls() const { return alone() || is_set_up(*this); }
  // Moves its set-up on; true once that has come to its end, or has failed: then it is the host's. Does not block.
  bool turn();
  // For a collective that has not moved for a while: whether others want the core, and whether the other ranks'
  // processes are still there; else the team is given up. Thread-safe.
  void look_around() noexcept;
  // One of its collectives is not waited for any more. Thread-safe.
  void give_up_on_one() noexcept { gave_up_.store(true, std::memory_order_relaxed); }
  // Whether a turn that moves nothing gives the core away at once.
  bool yields() const { return neighbours_.shared() || (team != nullptr && team->engine.yields()); }

  Result<std::unique_ptr<Team>> connect(TeamExtent extent, std::unique_ptr<Team> before) noexcept override;
  void decline_set_up() noexcept override;
  int raise(int code) override { return code; }

 private:
  void look_after_peers(std::uint64_t now_ns) noexcept;

  RailsOfRank& rails_;
  UccAllGather carrier_;
  HandedGathering gathering_;
  SetUpThread set_up_;
  PeerProcesses peers_;
  std::atomic<std::uint64_t> next_look_ns_{0};
  std::atomic<bool> gave_up_{false};
  NeighbourWatch neighbours_;  // of the one thread that calls
  bool ended_ = false;
  ListedTeam listed_{*this};
};

}  // namespace plait::plugin
