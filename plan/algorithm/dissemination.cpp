// Dissemination (Bruck et al., IEEE TPDS 8(11), 1997): ceil(log2 g) stages, each member sends (g-1)/g of the data.
#include <algorithm>
#include <bit>
#include <vector>

#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"

namespace plait::plan {

namespace {

void emit_dissemination(Moves& moves, const GroupWork& work) {
  const int size = work.members;
  std::vector<int> sent;
  // Before a stage of distance d, member m holds the pieces of m, m+1, .. m+d-1 (modulo the size).
  for (int distance = 1; distance < size; distance *= 2) {
    moves.next_stage();
    for_each_sender(
        size, moves.self(), [&](int member) { return (member + distance) % size; },
        [&](int member) {
          sent.clear();
          for (int k = 0; k < std::min(distance, size - distance); ++k) sent.push_back((member + k) % size);
          moves.move(member, (member + size - distance) % size, sent);
        });
  }
}

void charge_dissemination(AlgorithmCost& cost) {
  const double g = cost.members();
  cost.mix_levels();
  cost.charge([&](const Port& port, bool) {
    Traffic traffic;
    for (double distance = 1; distance < g; distance *= 2) {
      const double crossing = std::min(distance, port.below);
      traffic.volume += crossing * std::min(distance, g - distance) / g;
      traffic.messages += crossing;
    }
    return traffic;
  });
  const double stages = AlgorithmCost::rounds(g, 2);
  cost.wait(stages, cost.outermost());
  cost.compute(stages, (g - 1) / g, cost.outermost(), cost.outermost());
}

// With a power of two recursive doubling is the same.
bool is_dissemination_worth_trying(Instruct, const Extent& extent) {
  return extent.members > 2 && !extent.several_levels && !std::has_single_bit(static_cast<unsigned>(extent.members));
}

}  // namespace

constinit const Algorithm algorithms::dissemination = {
    .name = "diss",
    .fits = [](Instruct what, int) { return what == Instruct::all_gather; },
    .worth_trying = is_dissemination_worth_trying,
    .cost = charge_dissemination,
    .emit = emit_dissemination,
};

}  // namespace plait::plan
