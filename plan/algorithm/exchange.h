// The exchanges of an all-to-all, which are no programs of P²: values like the algorithms within a group (algorithm.h).
#pragma once

#include <array>
#include <string_view>

#include "plan/model/block_moves.h"
#include "plan/model/layer.h"
#include "plan/model/machine.h"
#include "topo/hierarchy.h"

namespace plait::plan {

// Where an exchange would run.
struct ExchangeSystem {
  const Hierarchy& hierarchy;
  const Machine& machine;
  double siblings = 1;        // ranks of the job on a node, over those of this communicator
  bool shared_memory = true;  // a shm channel connects the ranks of each node
};

struct Exchange {
  std::string_view name;    // in tables and as PLAIT_PLAN: never changed once it is out
  bool direct = false;      // nobody passes anything on
  bool knows_nodes = true;  // whether it does otherwise within a node than between nodes
  bool (*fits)(const ExchangeSystem& system);
  double (*seconds)(double bytes, const ExchangeSystem& system);  // predicted; bytes of one pair's message
  void (*emit)(BlockMoves& moves, const Hierarchy& hierarchy);
};

// All of them, a line each; one that fits everywhere comes first.
#define PLAIT_EXCHANGES(LINE) \
  LINE(pairwise)              \
  LINE(leaders)               \
  LINE(together)

namespace exchanges {
#define PLAIT_DECLARED(exchange) extern const Exchange exchange;
PLAIT_EXCHANGES(PLAIT_DECLARED)
#undef PLAIT_DECLARED
}  // namespace exchanges

#define PLAIT_LISTED(exchange) &exchanges::exchange,
inline constexpr std::array all_exchanges = {PLAIT_EXCHANGES(PLAIT_LISTED)};
#undef PLAIT_LISTED

}  // namespace plait::plan
