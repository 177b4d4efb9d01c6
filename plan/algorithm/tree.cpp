// Trees to and from the first member: what reduces, broadcasts, gathers and scatters with a root.
//
// Binomial: ceil(log2 g) stages; k-nomial: ceil(log_k g), each of up to k-1 messages. Chain: g-1 hops, a pipeline over
// the chunks. Flat: all with the root. The reductions keep the order of operands. Gather and scatter along the binomial
// tree: inner members forward what they collected.
#include <algorithm>
#include <cmath>

#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"
#include "plan/algorithm/rooted_pieces.h"

namespace plait::plan {

namespace {

// One hop of a tree: from a child to its parent (reduce) or from the parent to the child (broadcast).
struct Hop {
  std::size_t parent, child;
};

// In the order in which a reduction uses them; a broadcast uses them backwards.
std::vector<Hop> knomial_hops(std::size_t size, std::size_t radix) {
  std::vector<Hop> hops;
  for (std::size_t span = 1; span < size; span *= radix)
    for (std::size_t digit = 1; digit < radix; ++digit)
      for (std::size_t child = digit * span; child < size; child += radix * span)
        hops.push_back({child - digit * span, child});
  return hops;
}

std::vector<Hop> chain_hops(std::size_t size) {
  std::vector<Hop> hops;
  for (std::size_t child = size - 1; child > 0; --child) hops.push_back({child - 1, child});
  return hops;
}

std::vector<Hop> flat_hops(std::size_t size) {
  std::vector<Hop> hops;
  for (std::size_t child = 1; child < size; ++child) hops.push_back({0, child});
  return hops;
}

void emit_hops(Builder& builder, const GroupWork& work, const std::vector<Hop>& hops) {
  const Group group = work.members;
  for (const int chunk : builder.chunks()) {
    const std::vector<BlockId> blocks = blocks_of(builder.semantics(), work.segments, chunk);
    if (work.what == Instruct::reduce)
      for (const Hop& hop : hops) builder.combine(group[hop.child], group[hop.parent], blocks);
    else
      for (auto hop = hops.rbegin(); hop != hops.rend(); ++hop)
        builder.move(group[hop->parent], group[hop->child], blocks);
  }
}

// The pieces of members [first, first + count), as far as there are so many.
Segments subtree(Pieces pieces, std::size_t first, std::size_t count) {
  Segments all;
  for (std::size_t i = first; i < std::min(first + count, pieces.size()); ++i)
    all.insert(all.end(), pieces[i].begin(), pieces[i].end());
  return all;
}

void binomial_gather(Builder& builder, Group group, Pieces pieces) {
  for (std::size_t span = 1; span < group.size(); span *= 2)
    for (const int chunk : builder.chunks())
      for (std::size_t member = span; member < group.size(); member += 2 * span)
        builder.move(group[member], group[member - span],
                     blocks_of(builder.semantics(), subtree(pieces, member, span), chunk));
}

void binomial_scatter(Builder& builder, Group group, Pieces pieces) {
  std::size_t top = 1;
  while (top * 2 < group.size()) top *= 2;
  for (std::size_t span = top; span > 0; span /= 2)
    for (const int chunk : builder.chunks())
      for (std::size_t member = span; member < group.size(); member += 2 * span)
        builder.move(group[member - span], group[member],
                     blocks_of(builder.semantics(), subtree(pieces, member, span), chunk));
}

template <std::size_t radix>
void emit_knomial(Builder& builder, const GroupWork& work) {
  emit_hops(builder, work, knomial_hops(work.members.size(), radix));
}

void emit_binomial(Builder& builder, const GroupWork& work) {
  if (work.what == Instruct::gather) return binomial_gather(builder, work.members, work.pieces);
  if (work.what == Instruct::scatter) return binomial_scatter(builder, work.members, work.pieces);
  emit_knomial<2>(builder, work);
}

void charge_knomial(AlgorithmCost& cost, int radix) {
  const double g = cost.members(), children = radix - 1;
  cost.charge([&](const Port& port, bool) {
    const double sent = children * AlgorithmCost::rounds(std::ceil(g / port.below), radix);
    return Traffic{std::min(sent, g - port.below), sent, false};
  });
  for (int l = cost.first(); l <= cost.last(); ++l) {
    const Port& port = cost.port(l);
    const double stages = AlgorithmCost::rounds(port.cardinality, radix);
    const double sent = std::min(children * stages, port.cardinality - 1);
    cost.wait(stages, port);
    cost.wait_seconds((sent - stages) * port.overhead);
    cost.hold_up(l, sent, false);
    cost.compute_one_sided(sent, port);
  }
}

void charge_binomial(AlgorithmCost& cost) {
  if (cost.what() >= Instruct::gather) return charge_rooted_pieces(cost, true);
  charge_knomial(cost, 2);
}

void charge_chain(AlgorithmCost& cost) {
  cost.charge([&](const Port&, bool) { return Traffic{1, 1}; });
  for (int l = cost.first(); l <= cost.last(); ++l) {
    const Port& port = cost.port(l);
    const double hops = (port.cardinality - 1) * port.outer;
    cost.wait(hops, port);
    cost.hold_up(l, hops, false);
    cost.pass_on(std::max(hops - 1, 0.0) * (port.cpu + cost.combine_seconds_per_byte()), cost.ranks_per_core() - 1);
  }
  cost.compute(1, 1, cost.outermost(), cost.innermost());
}

void charge_flat(AlgorithmCost& cost) {
  const double g = cost.members();
  cost.mix_levels();
  cost.charge([&](const Port& port, bool) { return Traffic{g - port.below, g - port.below, false}; });
  cost.wait(1, cost.outermost());
  const double near = cost.outermost().below - 1, far = g - cost.outermost().below;
  cost.wait_seconds((far - 1) * cost.outermost().overhead + near * cost.innermost().overhead);
  cost.compute_one_sided(far, cost.outermost());
  if (near > 0) cost.compute_one_sided(near, cost.innermost());
}

bool reduces_or_broadcasts(Instruct what, int) { return what == Instruct::reduce || what == Instruct::broadcast; }

// Where the members are no more than the radix, the tree is the flat one.
template <int radix>
bool is_knomial_worth_trying(Instruct, const Extent& extent) {
  return extent.members > radix && !extent.several_levels;
}

bool is_binomial_worth_trying(Instruct what, const Extent& extent) {
  return (!extent.several_levels || extent.aligned) && (extent.members > 2 || what < Instruct::gather);
}

// Of two members any tree is the same.
bool has_more_than_two(Instruct, const Extent& extent) { return extent.members > 2; }

}  // namespace

constinit const Algorithm algorithms::binomial = {
    .name = "binomial",
    .fits = [](Instruct what, int) { return what >= Instruct::reduce; },
    .worth_trying = is_binomial_worth_trying,
    .keeps_order = true,
    .cost = charge_binomial,
    .emit = emit_binomial,
};

constinit const Algorithm algorithms::knomial4 = {
    .name = "4nomial",
    .fits = reduces_or_broadcasts,
    .worth_trying = is_knomial_worth_trying<4>,
    .keeps_order = true,
    .cost = [](AlgorithmCost& cost) { charge_knomial(cost, 4); },
    .emit = emit_knomial<4>,
};

constinit const Algorithm algorithms::knomial8 = {
    .name = "8nomial",
    .fits = reduces_or_broadcasts,
    .worth_trying = is_knomial_worth_trying<8>,
    .keeps_order = true,
    .cost = [](AlgorithmCost& cost) { charge_knomial(cost, 8); },
    .emit = emit_knomial<8>,
};

constinit const Algorithm algorithms::chain = {
    .name = "chain",
    .fits = reduces_or_broadcasts,
    .worth_trying = has_more_than_two,
    .keeps_order = true,
    .cost = charge_chain,
    .emit = [](Builder& builder, const GroupWork& work) { emit_hops(builder, work, chain_hops(work.members.size())); },
};

constinit const Algorithm algorithms::flat = {
    .name = "flat",
    .fits = reduces_or_broadcasts,
    .worth_trying = has_more_than_two,
    .keeps_order = true,
    .cost = charge_flat,
    .emit = [](Builder& builder, const GroupWork& work) { emit_hops(builder, work, flat_hops(work.members.size())); },
};

}  // namespace plait::plan
