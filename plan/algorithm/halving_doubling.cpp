// Recursive halving and doubling (Thakur et al., IJHPCA 19(1), 2005): partners at distances that double or halve.
//
// Doubling of whole vectors (an all-reduce): ceil(log2 g) stages, each member sends and receives all data in each; when
// g is no power of two, the surplus members first fold into a neighbour and are told the result at the end. It keeps
// the order of operands. Of pieces, for powers of two: log2 g stages, each member sends (g-1)/g of the data; halving
// begins between neighbours and doubling ends there, so that the longest messages are the nearest.
#include <bit>
#include <cassert>
#include <cmath>

#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"

namespace plait::plan {

namespace {

bool is_power_of_two(int number) { return std::has_single_bit(static_cast<unsigned>(number)); }

// The pieces of the members whose bits below `distance` are those of `member`, and whose next bit is `side`.
Segments pieces_on_side(Pieces pieces, std::size_t member, std::size_t distance, bool side) {
  Segments result;
  for (std::size_t owner = 0; owner < pieces.size(); ++owner)
    if (((owner ^ member) & (distance - 1)) == 0 && ((owner & distance) != 0) == side)
      result.insert(result.end(), pieces[owner].begin(), pieces[owner].end());
  return result;
}

void halving_reduce_scatter(Builder& builder, Group group, Pieces pieces) {
  assert(std::has_single_bit(group.size()));
  for (std::size_t distance = 1; distance < group.size(); distance *= 2)
    for (const int chunk : builder.chunks())
      for (std::size_t member = 0; member < group.size(); ++member) {
        const std::size_t partner = member ^ distance;
        const Segments sent = pieces_on_side(pieces, member, distance, (partner & distance) != 0);
        builder.combine(group[member], group[partner], blocks_of(builder.semantics(), sent, chunk));
      }
}

void doubling_allgather(Builder& builder, Group group, Pieces pieces) {
  assert(std::has_single_bit(group.size()));
  for (std::size_t distance = group.size() / 2; distance > 0; distance /= 2)
    for (const int chunk : builder.chunks())
      for (std::size_t member = 0; member < group.size(); ++member) {
        const Segments sent = pieces_on_side(pieces, member, distance, (member & distance) != 0);
        builder.move(group[member], group[member ^ distance], blocks_of(builder.semantics(), sent, chunk));
      }
}

void doubling_allreduce(Builder& builder, Group group, const Segments& segments) {
  const std::size_t power = std::bit_floor(group.size());
  const std::size_t surplus = group.size() - power;

  // The first 2 * surplus members fold in pairs of neighbours, so that each holds an unbroken run of contributions.
  std::vector<int> active;
  for (std::size_t pair = 0; pair < surplus; ++pair) active.push_back(group[2 * pair]);
  for (std::size_t member = 2 * surplus; member < group.size(); ++member) active.push_back(group[member]);

  const Semantics& semantics = builder.semantics();
  for (const int chunk : builder.chunks())
    for (std::size_t pair = 0; pair < surplus; ++pair)
      builder.combine(group[2 * pair + 1], group[2 * pair], blocks_of(semantics, segments, chunk));
  for (std::size_t distance = 1; distance < power; distance *= 2)
    for (const int chunk : builder.chunks())
      for (std::size_t member = 0; member < power; ++member)
        if ((member & distance) == 0)
          builder.exchange(active[member], active[member + distance], blocks_of(semantics, segments, chunk));
  for (const int chunk : builder.chunks())
    for (std::size_t pair = 0; pair < surplus; ++pair)
      builder.move(group[2 * pair], group[2 * pair + 1], blocks_of(semantics, segments, chunk));
}

void emit_doubling(Builder& builder, const GroupWork& work) {
  if (work.what == Instruct::all_gather) return doubling_allgather(builder, work.members, work.pieces);
  doubling_allreduce(builder, work.members, work.segments);
}

void emit_halving(Builder& builder, const GroupWork& work) {
  if (work.what == Instruct::reduce_scatter) return halving_reduce_scatter(builder, work.members, work.pieces);
  const std::vector<Segments> parts = cut_evenly(work.segments, work.members.size());
  halving_reduce_scatter(builder, work.members, parts);
  doubling_allgather(builder, work.members, parts);
}

void charge_whole_vectors(AlgorithmCost& cost) {
  const double g = cost.members();
  const bool folds = !is_power_of_two(static_cast<int>(g));
  cost.combine_all();
  cost.charge([&](const Port& port, bool) {
    const double crossing = port.below * AlgorithmCost::rounds(std::ceil(g / port.below), 2) + (folds ? 1 : 0);
    return Traffic{crossing, crossing};
  });
  for (int l = cost.first(); l <= cost.last(); ++l) {
    const Port& port = cost.port(l);
    const double stages = port.rounds + (folds && l == cost.first() ? 1 : 0);
    cost.wait(stages, port);
    cost.hold_up(l, port.below * stages, true);
    cost.compute(stages, stages, port, port);
  }
}

// Pieces that double or halve from stage to stage, the longest between the nearest.
void charge_halves(AlgorithmCost& cost) {
  const double g = cost.members(), passes = cost.passes();
  cost.charge([&](const Port& port, bool) {
    return Traffic{passes * (1 - port.below / g), passes * port.below * AlgorithmCost::rounds(g / port.below, 2)};
  });
  for (int l = cost.first(); l <= cost.last(); ++l) {
    const Port& port = cost.port(l);
    const double share = passes * (1 - 1 / port.cardinality);
    cost.wait(passes * port.rounds, port);
    cost.hold_up(l, share, true);
    cost.compute(passes * port.rounds, share / port.below, port, port);
  }
}

bool is_doubling_worth_trying(Instruct what, const Extent& extent) {
  return what == Instruct::all_reduce || (extent.members > 2 && extent.aligned);
}

}  // namespace

constinit const Algorithm algorithms::recursive_doubling = {
    .name = "rd",
    .fits =
        [](Instruct what, int members) {
          return what == Instruct::all_reduce || (what == Instruct::all_gather && is_power_of_two(members));
        },
    .worth_trying = is_doubling_worth_trying,
    .keeps_order = true,
    .cost =
        [](AlgorithmCost& cost) {
          cost.what() == Instruct::all_reduce ? charge_whole_vectors(cost) : charge_halves(cost);
        },
    .emit = emit_doubling,
};

constinit const Algorithm algorithms::recursive_halving = {
    .name = "rh",
    .fits =
        [](Instruct what, int members) {
          return (what == Instruct::all_reduce || what == Instruct::reduce_scatter) && is_power_of_two(members);
        },
    .worth_trying = [](Instruct, const Extent& extent) { return extent.members > 2 && extent.aligned; },
    .pieces = a_piece_each,
    .cost = charge_halves,
    .emit = emit_halving,
};

}  // namespace plait::plan
