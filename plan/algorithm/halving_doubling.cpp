// Recursive halving and doubling (Thakur et al., IJHPCA 19(1), 2005): partners at distances that double or halve.
//
// Doubling of whole vectors (an all-reduce): ceil(log2 g) stages, each member sends and receives all data in each; when
// g is no power of two, the surplus members first fold into a neighbour and are told the result at the end. It keeps
// the order of operands. Of pieces, for powers of two: log2 g stages, each member sends (g-1)/g of the data; halving
// begins between neighbours and doubling ends there, so that the longest messages are the nearest.
#include <bit>
#include <cassert>
#include <cmath>
#include <vector>

#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"

namespace plait::plan {

namespace {

bool is_power_of_two(int number) { return std::has_single_bit(static_cast<unsigned>(number)); }

// The pieces of the members whose bits below `distance` are those of `member`, and whose next bit is `side`.
std::vector<int> pieces_on_side(int size, int member, int distance, bool side) {
  std::vector<int> pieces;
  for (int owner = (member & (distance - 1)) + (side ? distance : 0); owner < size; owner += 2 * distance)
    pieces.push_back(owner);
  return pieces;
}

void halving_reduce_scatter(Moves& moves, int size) {
  assert(is_power_of_two(size));
  for (int distance = 1; distance < size; distance *= 2) {
    moves.next_stage();
    for_each_sender(
        size, moves.self(), [&](int member) { return member ^ distance; },
        [&](int member) {
          const int partner = member ^ distance;
          moves.combine(member, partner, pieces_on_side(size, member, distance, (partner & distance) != 0));
        });
  }
}

void doubling_allgather(Moves& moves, int size) {
  assert(is_power_of_two(size));
  for (int distance = size / 2; distance > 0; distance /= 2) {
    moves.next_stage();
    for_each_sender(
        size, moves.self(), [&](int member) { return member ^ distance; },
        [&](int member) {
          moves.move(member, member ^ distance, pieces_on_side(size, member, distance, (member & distance) != 0));
        });
  }
}

// The first 2 * surplus members fold in pairs of neighbours, so that each holds an unbroken run of contributions; the
// left ones and those that are no surplus take a place.
class WholeVectors {
 public:
  WholeVectors(Moves& moves, int size)
      : moves_(moves), power_(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))), surplus_(size - power_) {}

  void run() {
    moves_.next_stage();
    for_each_pair([&](int left) { moves_.combine(left + 1, left, 0); });
    for (int distance = 1; distance < power_; distance *= 2) {
      moves_.next_stage();
      for_each_exchange(distance,
                        [&](int place) { moves_.exchange(member_at(place), member_at(place + distance), 0); });
    }
    moves_.next_stage();
    for_each_pair([&](int left) { moves_.move(left, left + 1, 0); });
  }

 private:
  bool in_pair(int member) const { return member < 2 * surplus_; }
  int member_at(int place) const { return place < surplus_ ? 2 * place : place + surplus_; }
  int place_of(int member) const { return in_pair(member) ? member / 2 : member - surplus_; }

  template <class Visit>
  void for_each_pair(Visit visit) {
    if (moves_.self() == Moves::everybody)
      for (int pair = 0; pair < surplus_; ++pair) visit(2 * pair);
    else if (in_pair(moves_.self()))
      visit(moves_.self() / 2 * 2);
  }

  template <class Visit>
  void for_each_exchange(int distance, Visit visit) {
    const int self = moves_.self();
    if (self == Moves::everybody) {
      for (int place = 0; place < power_; ++place)
        if ((place & distance) == 0) visit(place);
    } else if (!in_pair(self) || self % 2 == 0) {
      visit(place_of(self) & ~distance);
    }
  }

  Moves& moves_;
  int power_, surplus_;
};

void emit_doubling(Moves& moves, const GroupWork& work) {
  if (work.what == Instruct::all_gather) return doubling_allgather(moves, work.members);
  WholeVectors(moves, work.members).run();
}

void emit_halving(Moves& moves, const GroupWork& work) {
  halving_reduce_scatter(moves, work.members);
  if (work.what == Instruct::all_reduce) doubling_allgather(moves, work.members);
}

void charge_whole_vectors(AlgorithmCost& cost) {
  const double g = cost.members();
  const bool folds = !is_power_of_two(static_cast<int>(g));
  cost.combine_all();
  cost.charge([&](const Port& port, bool) {
    const double crossing = port.below * AlgorithmCost::rounds(std::ceil(g / port.below), 2) + (folds ? 1 : 0);
    return Traffic{crossing + port.below * port.rounds * (port.wholes_meet - 1), crossing};
  });
  for (int l = cost.first(); l <= cost.last(); ++l) {
    const Port& port = cost.port(l);
    const double stages = port.rounds + (folds && l == cost.first() ? 1 : 0);
    cost.wait(stages, port);
    cost.hold_up(l, stages, true, AlgorithmCost::Movers::all, 1 + port.rounds / stages * (port.wholes_meet - 1));
    cost.compute(stages, stages, port, port);
  }
}

// Pieces that double or halve from stage to stage, the longest between the nearest.
void charge_halves(AlgorithmCost& cost) {
  const double g = cost.members(), passes = cost.passes();
  cost.charge([&](const Port& port, bool) {
    const double here = port.rounds > 0 ? 1 - 1 / port.cardinality : 0;
    return Traffic{passes * (1 - port.below / g + here * (port.halves_meet - 1)),
                   passes * port.below * AlgorithmCost::rounds(g / port.below, 2)};
  });
  for (int l = cost.first(); l <= cost.last(); ++l) {
    const Port& port = cost.port(l);
    const double share = passes * (1 - 1 / port.cardinality);
    cost.wait(passes * port.rounds, port);
    cost.hold_up(l, share / port.below, true, AlgorithmCost::Movers::all, port.halves_meet);
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
