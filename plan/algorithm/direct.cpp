// Every member exchanges a message with each other member: one stage of latency, (g-1)/g of the data, messages in the
// order of distance. Gather and scatter: one message a member, all with the root.
#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"
#include "plan/algorithm/rooted_pieces.h"

namespace plait::plan {

namespace {

void direct_reduce_scatter(Builder& builder, Group group, Pieces pieces) {
  const std::size_t size = group.size();
  for (const int chunk : builder.chunks())
    for (std::size_t distance = 1; distance < size; ++distance)
      for (std::size_t member = 0; member < size; ++member) {
        const std::size_t owner = (member + distance) % size;
        builder.combine(group[member], group[owner], blocks_of(builder.semantics(), pieces[owner], chunk));
      }
}

void direct_allgather(Builder& builder, Group group, Pieces pieces) {
  const std::size_t size = group.size();
  for (const int chunk : builder.chunks())
    for (std::size_t distance = 1; distance < size; ++distance)
      for (std::size_t member = 0; member < size; ++member)
        builder.move(group[member], group[(member + distance) % size],
                     blocks_of(builder.semantics(), pieces[member], chunk));
}

void direct_gather(Builder& builder, Group group, Pieces pieces) {
  for (const int chunk : builder.chunks())
    for (std::size_t member = 1; member < group.size(); ++member)
      builder.move(group[member], group[0], blocks_of(builder.semantics(), pieces[member], chunk));
}

void direct_scatter(Builder& builder, Group group, Pieces pieces) {
  for (const int chunk : builder.chunks())
    for (std::size_t member = 1; member < group.size(); ++member)
      builder.move(group[0], group[member], blocks_of(builder.semantics(), pieces[member], chunk));
}

void emit_direct(Builder& builder, const GroupWork& work) {
  if (work.what == Instruct::reduce_scatter) return direct_reduce_scatter(builder, work.members, work.pieces);
  if (work.what == Instruct::all_gather) return direct_allgather(builder, work.members, work.pieces);
  if (work.what == Instruct::gather) return direct_gather(builder, work.members, work.pieces);
  if (work.what == Instruct::scatter) return direct_scatter(builder, work.members, work.pieces);
  const std::vector<Segments> parts = cut_evenly(work.segments, work.members.size());
  direct_reduce_scatter(builder, work.members, parts);
  direct_allgather(builder, work.members, parts);
}

void charge_direct(AlgorithmCost& cost) {
  if (cost.what() >= Instruct::gather) return charge_rooted_pieces(cost, false);
  const double g = cost.members(), passes = cost.passes();
  cost.mix_levels();
  cost.charge([&](const Port& port, bool) {
    const double pairs = port.below * (g - port.below);
    return Traffic{passes * pairs / g, passes * pairs};
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
