// Every member exchanges a message with each other member: one stage of latency, (g-1)/g of the data, messages in the
// order of distance. Gather and scatter: one message a member, all with the root.
#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"
#include "plan/algorithm/rooted_pieces.h"

namespace plait::plan {

namespace {

// Visits each message from a member to the one so many behind it, the nearest first.
template <class Visit>
void for_each_distance(Moves& moves, int size, Visit visit) {
  moves.next_stage();
  for (int distance = 1; distance < size; ++distance)
    for_each_sender(
        size, moves.self(), [&](int member) { return (member + size - distance) % size; },
        [&](int member) { visit(member, (member + distance) % size); });
}

void emit_direct(Moves& moves, const GroupWork& work) {
  const int size = work.members;
  if (work.what == Instruct::gather || work.what == Instruct::scatter) {
    moves.next_stage();
    const int self = moves.self(), first = self > 0 ? self : 1, last = self > 0 ? self : size - 1;
    for (int member = first; member <= last; ++member)
      work.what == Instruct::gather ? moves.move(member, 0, member) : moves.move(0, member, member);
    return;
  }
  if (work.what != Instruct::all_gather)
    for_each_distance(moves, size, [&](int from, int to) { moves.combine(from, to, to); });
  if (work.what != Instruct::reduce_scatter)
    for_each_distance(moves, size, [&](int from, int to) { moves.move(from, to, from); });
}

void charge_direct(AlgorithmCost& cost) {
  if (cost.what() >= Instruct::gather) return charge_rooted_pieces(cost, false);
  const double g = cost.members(), passes = cost.passes();
  cost.mix_levels();
  cost.charge([&](const Port& port, bool) {
    const double pairs = port.below * (g - port.below);
    return Traffic{passes * pairs / g * port.all_meet, passes * pairs};
  });
  cost.wait(passes, cost.outermost());
  const double near = cost.outermost().below - 1, far = g - cost.outermost().below;
  cost.wait_seconds(passes * (far * cost.outermost().overhead + near * cost.innermost().overhead));
  cost.compute(passes * far, passes * far / g, cost.outermost(), cost.outermost());
  if (near > 0) cost.compute(passes * near, passes * near / g, cost.innermost(), cost.innermost());
}

}  // namespace

constinit const Algorithm algorithms::direct = {
    .name = "direct",
    .fits = [](Instruct what, int) { return what != Instruct::reduce && what != Instruct::broadcast; },
    .worth_trying = [](Instruct what, const Extent& extent) { return extent.members > 2 || what >= Instruct::gather; },
    .pieces = a_piece_each,
    .cost = charge_direct,
    .emit = emit_direct,
};

}  // namespace plait::plan
