// Trees to and from the first member: what reduces, broadcasts, gathers and scatters with a root.
//
// Binomial: ceil(log2 g) stages; k-nomial: ceil(log_k g), each of up to k-1 messages. Chain: g-1 hops, a pipeline over
// the chunks. Flat: all with the root. The reductions keep the order of operands. Gather and scatter along the binomial
// tree: inner members forward what they collected.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"
#include "plan/algorithm/rooted_pieces.h"

namespace plait::plan {

namespace {

// The hops of a tree, from a child to its parent (reduce, gather) or from the parent to the child (broadcast, scatter):
// in the order in which a reduction uses them; a broadcast uses them backwards. Each calls visit(parent, child).

// One digit of the children's numbers: children `digit` times `span` behind their parents.
template <class Visit>
void visit_digit(const Moves& moves, int size, int span, int digit, int radix, Visit visit) {
  const int behind = digit * span, period = radix * span;
  if (moves.self() == Moves::everybody) {
    for (int child = behind; child < size; child += period) visit(child - behind, child);
    return;
  }
  const int place = moves.self() % period;
  if (place == 0 && moves.self() + behind < size) visit(moves.self(), moves.self() + behind);
  if (place == behind) visit(moves.self() - behind, moves.self());
}

// visit_digit(span, digit) for each, the nearest first or last.
template <class Visit>
void for_each_digit(int size, int radix, bool backwards, Visit visit) {
  std::vector<std::pair<int, int>> digits;
  for (long span = 1; span < size; span *= radix)
    for (int digit = 1; digit < radix; ++digit) digits.emplace_back(static_cast<int>(span), digit);
  if (backwards) std::reverse(digits.begin(), digits.end());
  for (const auto& [span, digit] : digits) visit(span, digit);
}

void hop(Moves& moves, Instruct what, int parent, int child) {
  if (!moves.wants(parent, child)) return;
  if (what == Instruct::reduce)
    moves.combine(child, parent, 0);
  else
    moves.move(parent, child, 0);
}

template <int radix>
void emit_knomial(Moves& moves, const GroupWork& work) {
  moves.next_stage();
  for_each_digit(work.members, radix, work.what == Instruct::broadcast, [&](int span, int digit) {
    visit_digit(moves, work.members, span, digit, radix,
                [&](int parent, int child) { hop(moves, work.what, parent, child); });
  });
}

// A hop to each child whose parent is the member before it; the last one first, or backwards.
void emit_chain(Moves& moves, const GroupWork& work) {
  moves.next_stage();
  const bool everybody = moves.self() == Moves::everybody;
  const int first = everybody ? 1 : std::max(moves.self(), 1);
  const int last = everybody ? work.members - 1 : std::min(moves.self() + 1, work.members - 1);
  for (int i = first; i <= last; ++i) {
    const int child = work.what == Instruct::broadcast ? i : first + last - i;
    hop(moves, work.what, child - 1, child);
  }
}

void emit_flat(Moves& moves, const GroupWork& work) {
  moves.next_stage();
  if (moves.self() > 0) return hop(moves, work.what, 0, moves.self());
  for (int i = 1; i < work.members; ++i)
    hop(moves, work.what, 0, work.what == Instruct::broadcast ? work.members - i : i);
}

// A child stands for the members from itself on to the next child.
void emit_binomial_pieces(Moves& moves, const GroupWork& work) {
  std::vector<int> passed_on;
  for_each_digit(work.members, 2, work.what == Instruct::scatter, [&](int span, int digit) {
    moves.next_stage();
    visit_digit(moves, work.members, span, digit, 2, [&](int parent, int child) {
      passed_on.resize(static_cast<std::size_t>(std::min(span, work.members - child)));
      std::iota(passed_on.begin(), passed_on.end(), child);
      if (work.what == Instruct::gather)
        moves.move(child, parent, passed_on);
      else
        moves.move(parent, child, passed_on);
    });
  });
}

void emit_binomial(Moves& moves, const GroupWork& work) {
  if (work.what == Instruct::gather || work.what == Instruct::scatter) return emit_binomial_pieces(moves, work);
  emit_knomial<2>(moves, work);
}

// Messages that pass the ports on the longest way, where those of a member leave together: all of the root's before its
// largest subtree begins, then all of that one's root, and so on.
double sent_together(int members, int radix, int stages) {
  double sum = 0;
  long subtree = 1;
  for (int stage = 1; stage <= stages; ++stage) {
    subtree = std::min<long>(subtree * radix, members);
    sum += std::min<double>((radix - 1.0) * stage, static_cast<double>(subtree - 1));
  }
  return sum;
}

void charge_knomial(AlgorithmCost& cost, int radix) {
  const double g = cost.members(), children = radix - 1;
  cost.charge([&](const Port& port, bool) {
    const double sent = children * AlgorithmCost::rounds(std::ceil(g / port.below), radix);
    return Traffic{std::min(sent, g - port.below), sent, false};
  });
  for (int l = cost.first(); l <= cost.last(); ++l) {
    const Port& port = cost.port(l);
    const int stages = AlgorithmCost::rounds(port.cardinality, radix);
    const double sent = std::min(children * stages, port.cardinality - 1);
    const bool together = port.shared && cost.what() == Instruct::broadcast;
    cost.wait(stages, port);
    cost.wait_seconds((sent - stages) * port.overhead);
    cost.hold_up(l, together ? sent_together(static_cast<int>(port.cardinality), radix, stages) : sent, false);
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
    .emit = emit_chain,
};

constinit const Algorithm algorithms::flat = {
    .name = "flat",
    .fits = reduces_or_broadcasts,
    .worth_trying = has_more_than_two,
    .keeps_order = true,
    .cost = charge_flat,
    .emit = emit_flat,
};

}  // namespace plait::plan
