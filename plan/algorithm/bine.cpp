// Bine trees and butterflies (De Sensi et al., SC '25, arXiv 2508.17311): binomial ones whose distances are sums of
// powers of -2: 1, -1, 3, -5, 11, ..., in the long run two thirds of 1, 2, 4, 8, 16, ... Partners are nearer, so that
// fewer messages cross the borders between groups of neighbours, wherever these lie (docs/algorithms.md).
//
// Tree (reduce, broadcast): ceil(log2 g) stages. A member stands for an unbroken run of members, taken round in a
// circle; it halves the run and sends across the middle, to the mirror image of its own place. For powers of two that
// is the tree of the negabinary numbers; for other sizes one half is a member shorter, and its last member stands in
// for a mirror image beyond it.
//
// Butterfly (reduce-scatter, all-gather; an all-reduce is one after the other): log2 g stages for powers of two, each
// member sends (g-1)/g of the data, the longest messages to the nearest. Else surplus members first fold into a
// neighbour, as in recursive doubling. There is no all-reduce of whole vectors: runs that are combined overlap, so that
// members would get other bits than one another.
//
// No order of operands: runs go round in a circle.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"

namespace plait::plan {

namespace {

int around(long place, int size) {
  const long n = size;
  return static_cast<int>((place % n + n) % n);
}

// ---- The tree ----

// Members [first, end), counted around the circle from the root's place 0, of which `holder` has the data.
struct BineRun {
  long first, end, holder;
};

struct BineHop {
  int parent, child;
};

// The runs of the root grow to both sides in turn, so that it stays about a third from one end.
BineRun whole_run(int members) {
  BineRun run{0, members, 0};
  std::vector<long> sizes;
  for (long size = run.end; size > 1; size = (size + 1) / 2) sizes.push_back(size - (size + 1) / 2);
  long to_the_left = 0;
  for (std::size_t stage = 0; stage < sizes.size(); ++stage)
    if (stage % 2 == 1) to_the_left += sizes[sizes.size() - 1 - stage];
  run.first -= to_the_left;
  run.end -= to_the_left;
  return run;
}

// Its holder's part of the run, and the other one with the member that gets the data.
std::pair<BineRun, BineRun> halved(const BineRun& run) {
  const long size = run.end - run.first, longer = (size + 1) / 2;
  const bool left = run.holder < run.first + longer;
  const long middle = left ? run.first + longer : run.end - longer;
  const BineRun low{run.first, middle, run.holder}, high{middle, run.end, run.holder};
  BineRun own = left ? low : high, other = left ? high : low;
  other.holder = std::clamp(2 * middle - 1 - run.holder, other.first, other.end - 1);
  return {own, other};
}

// By stages, in the order in which a broadcast uses them; a reduction uses them backwards. Of one member's hops only
// the runs that it is in need be halved.
std::vector<BineHop> bine_hops(const Moves& moves, int members) {
  const auto matters = [&](const BineRun& run) {
    if (run.end - run.first == 1) return false;
    if (moves.self() == Moves::everybody) return true;
    return around(moves.self() - run.first, members) < run.end - run.first;
  };
  std::vector<BineHop> hops;
  std::vector<BineRun> runs = {whole_run(members)};
  while (!runs.empty()) {
    std::vector<BineRun> halves;
    for (const BineRun& run : runs) {
      if (!matters(run)) continue;
      const auto [own, other] = halved(run);
      hops.push_back({around(own.holder, members), around(other.holder, members)});
      halves.push_back(own);
      halves.push_back(other);
    }
    runs = std::move(halves);
  }
  return hops;
}

void emit_bine_tree(Moves& moves, const GroupWork& work) {
  std::vector<BineHop> hops = bine_hops(moves, work.members);
  const bool reduces = work.what == Instruct::reduce;
  if (reduces) std::reverse(hops.begin(), hops.end());
  moves.next_stage();
  for (const BineHop& hop : hops) {
    if (!moves.wants(hop.parent, hop.child)) continue;
    if (reduces)
      moves.combine(hop.child, hop.parent, 0);
    else
      moves.move(hop.parent, hop.child, 0);
  }
}

// ---- The butterfly ----

// 1, -1, 3, -5, 11, ...: the sum of the powers of -2 up to this stage's.
long bine_distance(int stage) {
  long sum = 0, power = 1;
  for (int k = 0; k <= stage; ++k, power *= -2) sum += power;
  return sum;
}

// A power of two of members, after the surplus ones have folded into the first ones. `by_place`: pieces are numbered by
// the members that do not fold, as an all-reduce's are, not by all of them.
class Butterfly {
 public:
  Butterfly(Moves& moves, int members, bool by_place)
      : moves_(moves),
        size_(static_cast<int>(std::bit_floor(static_cast<unsigned>(members)))),
        surplus_(members - size_),
        stages_(std::countr_zero(static_cast<unsigned>(size_))),
        by_place_(by_place) {}

  void reduce_scatter() {
    fold(everything());
    for (int stage = 0; stage < stages_; ++stage)
      for_each_partner(stage, [&](int place, int other) {
        moves_.combine(member(place), member(other), reached(other, stage + 1));
      });
    if (by_place_) return;
    unfold([&](int place) { return std::vector<int>{member(place) + 1}; });
  }

  void all_gather() {
    if (!by_place_) {
      moves_.next_stage();
      for_each_fold([&](int place) { moves_.move(member(place) + 1, member(place), member(place) + 1); });
    }
    for (int stage = stages_ - 1; stage >= 0; --stage)
      for_each_partner(
          stage, [&](int place, int other) { moves_.move(member(place), member(other), reached(place, stage + 1)); });
    unfold([&](int place) {
      std::vector<int> others = everything();
      if (!by_place_) std::erase(others, member(place) + 1);
      return others;
    });
  }

 private:
  // The member at this place; the one behind it folds into it, where there is a surplus.
  int member(int place) const { return place < surplus_ ? 2 * place : place + surplus_; }
  int place_of(int member) const { return member < 2 * surplus_ ? member / 2 : member - surplus_; }
  bool folds(int member) const { return member < 2 * surplus_ && member % 2 == 1; }

  template <class Visit>
  void for_each_fold(Visit visit) {
    for (int place = 0; place < surplus_; ++place)
      if (moves_.wants(member(place), member(place) + 1)) visit(place);
  }
  template <class Visit>
  void for_each_partner(int stage, Visit visit) {
    moves_.next_stage();
    const int self = moves_.self();
    if (self != Moves::everybody && folds(self)) return;
    for_each_sender(
        size_, self == Moves::everybody ? self : place_of(self), [&](int place) { return partner(place, stage); },
        [&](int place) { visit(place, partner(place, stage)); });
  }

  int partner(int place, int stage) const {
    const long distance = bine_distance(stage);
    return around(place % 2 == 0 ? place + distance : place - distance, size_);
  }

  // The pieces of all that a member reaches by the stages from this one on.
  std::vector<int> reached(int place, int stage) const {
    std::vector<int> pieces;
    append_reached(place, stage, pieces);
    return pieces;
  }
  void append_reached(int place, int stage, std::vector<int>& pieces) const {
    if (stage < stages_) {
      append_reached(place, stage + 1, pieces);
      append_reached(partner(place, stage), stage + 1, pieces);
      return;
    }
    pieces.push_back(by_place_ ? place : member(place));
    if (!by_place_ && place < surplus_) pieces.push_back(member(place) + 1);
  }

  std::vector<int> everything() const {
    std::vector<int> all(static_cast<std::size_t>(by_place_ ? size_ : size_ + surplus_));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  void fold(const std::vector<int>& all) {
    moves_.next_stage();
    for_each_fold([&](int place) { moves_.combine(member(place) + 1, member(place), all); });
  }

  template <class PiecesOf>
  void unfold(PiecesOf pieces_of) {
    moves_.next_stage();
    for_each_fold([&](int place) { moves_.move(member(place), member(place) + 1, pieces_of(place)); });
  }

  Moves& moves_;
  int size_, surplus_, stages_;
  bool by_place_;
};

void emit_bine(Moves& moves, const GroupWork& work) {
  if (work.what == Instruct::reduce || work.what == Instruct::broadcast) return emit_bine_tree(moves, work);
  Butterfly butterfly(moves, work.members, work.what == Instruct::all_reduce);
  if (work.what != Instruct::all_gather) butterfly.reduce_scatter();
  if (work.what != Instruct::reduce_scatter) butterfly.all_gather();
}

// ---- What it costs ----

// A run of members behind a port sends beyond its ends what goes to as far as that.
void charge_bine_tree(AlgorithmCost& cost) {
  const double g = cost.members(), stages = AlgorithmCost::rounds(g, 2);
  cost.mix_levels();
  cost.charge([&](const Port& port, bool) {
    const double sent = AlgorithmCost::rounds(std::ceil(g / port.below), 2) + (port.below > 1 ? 1 : 0);
    return Traffic{std::min(sent, g - port.below), sent, false};
  });
  cost.wait(stages, cost.outermost());
  cost.compute_one_sided(stages, cost.outermost());
}

void charge_bine(AlgorithmCost& cost) {
  if (cost.what() == Instruct::reduce || cost.what() == Instruct::broadcast) return charge_bine_tree(cost);
  const double g = cost.members(), passes = cost.passes();
  const int stages = std::bit_width(static_cast<unsigned>(g)) - 1;
  const bool folds = !std::has_single_bit(static_cast<unsigned>(g));
  // What folds goes to a neighbour and comes back: the whole vector one way, a piece the other. Neighbours are told
  // apart by their last bit, so that none is behind another port where an even number of members is behind each.
  const double folded = folds ? passes * (1 + 1 / g) : 0, fold_messages = folds ? passes * 2 : 0;
  const auto folds_across = [](const Port& port) { return static_cast<long>(port.below) % 2 != 0; };
  const Port& neighbour = folds_across(cost.outermost()) ? cost.outermost() : cost.innermost();
  cost.mix_levels();
  cost.charge([&](const Port& port, bool) {
    Traffic traffic;
    if (folds_across(port)) traffic = {folded, fold_messages};
    double part = 1;
    for (int stage = 0; stage < stages; ++stage) {
      const double distance = static_cast<double>(std::abs(bine_distance(stage)));
      const double crossing = passes * std::min(distance, port.below);
      traffic.volume += crossing * (part /= 2);
      traffic.messages += crossing;
    }
    return traffic;
  });
  cost.wait(passes * stages, cost.outermost());
  cost.compute(passes * stages, passes * (1 - 1 / static_cast<double>(1 << stages)), cost.outermost(),
               cost.outermost());
  if (!folds) return;
  cost.wait(fold_messages, neighbour);
  cost.compute(fold_messages, folded, neighbour, neighbour);
}

}  // namespace

// Where a level is all that an instruction covers, nothing tells neighbours apart, and the binomial ones cost the same;
// between levels that are powers of two recursive halving crosses less.
constinit const Algorithm algorithms::bine = {
    .name = "bine",
    .fits = [](Instruct what, int) { return what <= Instruct::broadcast; },
    .worth_trying = [](Instruct, const Extent& extent) { return extent.several_levels && !extent.aligned; },
    .pieces = [](int members) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(members))); },
    .cost = charge_bine,
    .emit = emit_bine,
};

}  // namespace plait::plan
