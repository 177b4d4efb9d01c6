// Ring (Patarasuk and Yuan, JPDC 69(2), 2009): g-1 stages, each member sends (g-1)/g of the data to its neighbour; an
// all-reduce is a reduce-scatter and an all-gather.
#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"

namespace plait::plan {

namespace {

std::size_t wrap(std::ptrdiff_t index, std::size_t size) {
  const auto n = static_cast<std::ptrdiff_t>(size);
  return static_cast<std::size_t>((index % n + n) % n);
}

// Piece i ends, reduced, at member i.
void ring_reduce_scatter(Builder& builder, Group group, Pieces pieces) {
  const std::size_t size = group.size();
  for (std::size_t stage = 0; stage + 1 < size; ++stage)
    for (const int chunk : builder.chunks())
      for (std::size_t member = 0; member < size; ++member) {
        const auto piece = wrap(static_cast<std::ptrdiff_t>(member) - 1 - static_cast<std::ptrdiff_t>(stage), size);
        builder.combine(group[member], group[wrap(static_cast<std::ptrdiff_t>(member) + 1, size)],
                        blocks_of(builder.semantics(), pieces[piece], chunk));
      }
}

// Piece i starts at member i; all members end with all pieces.
void ring_allgather(Builder& builder, Group group, Pieces pieces) {
  const std::size_t size = group.size();
  for (std::size_t stage = 0; stage + 1 < size; ++stage)
    for (const int chunk : builder.chunks())
      for (std::size_t member = 0; member < size; ++member) {
        const auto piece = wrap(static_cast<std::ptrdiff_t>(member) - static_cast<std::ptrdiff_t>(stage), size);
        builder.move(group[member], group[wrap(static_cast<std::ptrdiff_t>(member) + 1, size)],
                     blocks_of(builder.semantics(), pieces[piece], chunk));
      }
}

void emit_ring(Builder& builder, const GroupWork& work) {
  if (work.what == Instruct::reduce_scatter) return ring_reduce_scatter(builder, work.members, work.pieces);
  if (work.what == Instruct::all_gather) return ring_allgather(builder, work.members, work.pieces);
  const std::vector<Segments> parts = cut_evenly(work.segments, work.members.size());
  ring_reduce_scatter(builder, work.members, parts);
  ring_allgather(builder, work.members, parts);
}

void charge_ring(AlgorithmCost& cost) {
  const double g = cost.members(), stages = cost.passes() * (g - 1);
  cost.mix_levels();
  cost.charge([&](const Port&, bool) { return Traffic{stages / g, stages}; });
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
