// One operation of all ranks of a node in their shared memory (ShmCollective): each member writes once what it gives
// and reads once what it gets; long vectors are reduced and copied in shares, all members at the same time
// (tl/shm/node_collectives.h).
#include <array>

#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"

namespace plait::plan {

namespace {

// In multiples of a message's overhead: writing one's own line, and reading another rank's.
constexpr double group_line_written = 0.3, group_line_read = 0.1;

ShmCollectiveKind kind_of(Instruct what) {
  constexpr std::array kinds = {ShmCollectiveKind::all_reduce, ShmCollectiveKind::reduce_scatter,
                                ShmCollectiveKind::all_gather, ShmCollectiveKind::reduce,
                                ShmCollectiveKind::broadcast,  ShmCollectiveKind::gather,
                                ShmCollectiveKind::scatter};
  return kinds[static_cast<std::size_t>(what)];
}

void emit_shared(Moves& moves, const GroupWork& work) {
  moves.next_stage();
  moves.together(kind_of(work.what));
}

double shared_volume(Instruct what, double others) {
  if (what == Instruct::all_reduce) return 0.8 * others;
  if (what == Instruct::broadcast) return 0.4;
  if (what == Instruct::gather) return 0.3 * others;  // only the root copies, and only it needs room for all
  return 0.4 * others;
}

void charge_shared(AlgorithmCost& cost) {
  const double g = cost.members();
  const Port& port = cost.innermost();
  const double lines = group_line_written + (g - 1) * group_line_read;
  cost.wait_seconds(cost.outermost().latency + lines * port.overhead);
  cost.compute(lines, shared_volume(cost.what(), (g - 1) / g), port, port);
  cost.fill_as_busy();
}

}  // namespace

constinit const Algorithm algorithms::shared = {
    .name = "shared",
    .fits = [](Instruct, int) { return true; },
    .worth_trying = [](Instruct, const Extent&) { return true; },
    .keeps_order = true,
    .needs_whole_node = true,
    .cost = charge_shared,
    .emit = emit_shared,
};

}  // namespace plait::plan
