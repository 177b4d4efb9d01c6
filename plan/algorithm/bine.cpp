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
#include <utility>

#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"

namespace plait::plan {

namespace {

std::size_t around(long place, std::size_t size) {
  const long n = static_cast<long>(size);
  return static_cast<std::size_t>((place % n + n) % n);
}

// ---- The tree ----

// Members [first, end), counted around the circle from the root's place 0, of which `holder` has the data.
struct BineRun {
  long first, end, holder;
};

struct BineHop {
  std::size_t parent, child;
};

// The runs of the root grow to both sides in turn, so that it stays about a third from one end.
BineRun whole_run(std::size_t members) {
  BineRun run{0, static_cast<long>(members), 0};
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

// By stages, in the order in which a broadcast uses them; a reduction uses them backwards.
std::vector<BineHop> bine_hops(std::size_t members) {
  std::vector<BineHop> hops;
  std::vector<BineRun> runs = {whole_run(members)};
  while (hops.size() + 1 < members)
    for (std::size_t i = runs.size(); i-- > 0;) {
      if (runs[i].end - runs[i].first == 1) continue;
      const auto [own, other] = halved(runs[i]);
      hops.push_back({around(own.holder, members), around(other.holder, members)});
      runs[i] = own;
      runs.push_back(other);
    }
  return hops;
}

void emit_bine_tree(Builder& builder, const GroupWork& work) {
  std::vector<BineHop> hops = bine_hops(work.members.size());
  const bool reduces = work.what == Instruct::reduce;
  if (reduces) std::reverse(hops.begin(), hops.end());
  for (const int chunk : builder.chunks()) {
    const std::vector<BlockId> blocks = blocks_of(builder.semantics(), work.segments, chunk);
    for (const BineHop& hop : hops)
      if (reduces)
        builder.combine(work.members[hop.child], work.members[hop.parent], blocks);
      else
        builder.move(work.members[hop.parent], work.members[hop.child], blocks);
  }
}

// ---- The butterfly ----

// 1, -1, 3, -5, 11, ...: the sum of the powers of -2 up to this stage's.
long bine_distance(int stage) {
  long sum = 0, power = 1;
  for (int k = 0; k <= stage; ++k, power *= -2) sum += power;
  return sum;
}

// A power of two of members, after the surplus ones have folded into the first ones.
class Butterfly {
 public:
  Butterfly(Builder& builder, Group group, Pieces pieces)
      : builder_(builder),
        group_(group),
        pieces_(pieces),
        size_(std::bit_floor(group.size())),
        surplus_(group.size() - size_),
        stages_(std::countr_zero(size_)) {
    for (std::size_t place = 0; place < size_; ++place) {
      members_.push_back(place < surplus_ ? 2 * place : place + surplus_);
      owned_.push_back(pieces[members_[place]]);
      if (place < surplus_) append(owned_.back(), pieces[members_[place] + 1]);
    }
    find_reached();
  }

  void reduce_scatter() {
    for_each_chunk([&](int chunk) { fold(chunk, everything()); });
    for (int stage = 0; stage < stages_; ++stage)
      for_each_chunk([&](int chunk) {
        for (std::size_t place = 0; place < size_; ++place) {
          const std::size_t other = partner(place, stage);
          builder_.combine(member(place), member(other), blocks(reached(other, stage + 1), chunk));
        }
      });
    for_each_chunk([&](int chunk) {
      for (std::size_t place = 0; place < surplus_; ++place)
        builder_.move(member(place), surplus_member(place), blocks(pieces_[members_[place] + 1], chunk));
    });
  }

  void all_gather() {
    for_each_chunk([&](int chunk) {
      for (std::size_t place = 0; place < surplus_; ++place)
        builder_.move(surplus_member(place), member(place), blocks(pieces_[members_[place] + 1], chunk));
    });
    exchange_pieces();
    for_each_chunk([&](int chunk) {
      for (std::size_t place = 0; place < surplus_; ++place) {
        Segments others;
        for (std::size_t i = 0; i < group_.size(); ++i)
          if (i != members_[place] + 1) append(others, pieces_[i]);
        builder_.move(member(place), surplus_member(place), blocks(others, chunk));
      }
    });
  }

 private:
  static void append(Segments& all, const Segments& more) { all.insert(all.end(), more.begin(), more.end()); }
  int member(std::size_t place) const { return group_[members_[place]]; }
  int surplus_member(std::size_t place) const { return group_[members_[place] + 1]; }
  std::vector<BlockId> blocks(const Segments& segments, int chunk) const {
    return blocks_of(builder_.semantics(), segments, chunk);
  }

  template <class Visit>
  void for_each_chunk(Visit visit) {
    for (const int chunk : builder_.chunks()) visit(chunk);
  }

  std::size_t partner(std::size_t place, int stage) const {
    const long from = static_cast<long>(place), distance = bine_distance(stage);
    return around(place % 2 == 0 ? from + distance : from - distance, size_);
  }

  // The pieces of all that a member reaches by the stages from this one on.
  const Segments& reached(std::size_t place, int stage) const {
    return reached_[static_cast<std::size_t>(stage)][place];
  }
  void find_reached() {
    reached_.assign(static_cast<std::size_t>(stages_) + 1, owned_);
    for (int stage = stages_ - 1; stage > 0; --stage)
      for (std::size_t place = 0; place < size_; ++place) {
        Segments& all = reached_[static_cast<std::size_t>(stage)][place];
        all = reached(place, stage + 1);
        append(all, reached(partner(place, stage), stage + 1));
      }
  }

  Segments everything() const {
    Segments all;
    for (const Segments& piece : pieces_) append(all, piece);
    return all;
  }

  void fold(int chunk, const Segments& all) {
    for (std::size_t place = 0; place < surplus_; ++place)
      builder_.combine(surplus_member(place), member(place), blocks(all, chunk));
  }

  void exchange_pieces() {
    for (int stage = stages_ - 1; stage >= 0; --stage)
      for_each_chunk([&](int chunk) {
        for (std::size_t place = 0; place < size_; ++place)
          builder_.move(member(place), member(partner(place, stage)), blocks(reached(place, stage + 1), chunk));
      });
  }

  Builder& builder_;
  Group group_;
  Pieces pieces_;
  std::size_t size_, surplus_;
  int stages_;
  std::vector<std::size_t> members_;            // by place: index in the group
  std::vector<Segments> owned_;                 // by place, with those of who folded into it
  std::vector<std::vector<Segments>> reached_;  // by stage, then place
};

// An all-reduce's pieces belong to the members that do not fold.
std::vector<Segments> pieces_of_places(const GroupWork& work) {
  const std::size_t size = std::bit_floor(work.members.size()), surplus = work.members.size() - size;
  std::vector<Segments> parts = cut_evenly(work.segments, size), pieces(work.members.size());
  for (std::size_t place = 0; place < size; ++place)
    pieces[place < surplus ? 2 * place : place + surplus] = std::move(parts[place]);
  return pieces;
}

void emit_bine(Builder& builder, const GroupWork& work) {
  if (work.what == Instruct::reduce || work.what == Instruct::broadcast) return emit_bine_tree(builder, work);
  if (work.what == Instruct::reduce_scatter) return Butterfly(builder, work.members, work.pieces).reduce_scatter();
  if (work.what == Instruct::all_gather) return Butterfly(builder, work.members, work.pieces).all_gather();
  const std::vector<Segments> pieces = pieces_of_places(work);
  Butterfly butterfly(builder, work.members, pieces);
  butterfly.reduce_scatter();
  butterfly.all_gather();
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
