// Ring (Patarasuk and Yuan, JPDC 69(2), 2009): g-1 stages, each member sends (g-1)/g of the data to its neighbour; an
// all-reduce is a reduce-scatter and an all-gather.
#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"

namespace plait::plan {

namespace {

int wrap(int index, int size) { return (index % size + size) % size; }

// Piece i ends, reduced, at member i.
void ring_reduce_scatter(Moves& moves, int size) {
  for (int stage = 0; stage + 1 < size; ++stage) {
    moves.next_stage();
    for_each_sender(
        size, moves.self(), [&](int member) { return wrap(member - 1, size); },
        [&](int member) { moves.combine(member, wrap(member + 1, size), wrap(member - 1 - stage, size)); });
  }
}

// Piece i starts at member i; all members end with all pieces.
void ring_allgather(Moves& moves, int size) {
  for (int stage = 0; stage + 1 < size; ++stage) {
    moves.next_stage();
    for_each_sender(
        size, moves.self(), [&](int member) { return wrap(member - 1, size); },
        [&](int member) { moves.move(member, wrap(member + 1, size), wrap(member - stage, size)); });
  }
}

void emit_ring(Moves& moves, const GroupWork& work) {
  if (work.what != Instruct::all_gather) ring_reduce_scatter(moves, work.members);
  if (work.what != Instruct::reduce_scatter) ring_allgather(moves, work.members);
}

void charge_ring(AlgorithmCost& cost) {
  const double g = cost.members(), stages = cost.passes() * (g - 1);
  cost.mix_levels();
  cost.charge([&](const Port& port, bool) { return Traffic{stages / g * port.neighbours_meet, stages}; });
  cost.wait(stages, cost.outermost());
  cost.compute(stages, stages / g, cost.outermost(), cost.innermost());
}

}  // namespace

constinit const Algorithm algorithms::ring = {
    .name = "ring",
    .fits = [](Instruct what, int) { return what <= Instruct::all_gather; },
    .worth_trying = [](Instruct, const Extent&) { return true; },
    .pieces = a_piece_each,
    .cost = charge_ring,
    .emit = emit_ring,
};

}  // namespace plait::plan
