// The proof of a plan by its parts says what the proof among all ranks says: of plans that are right, and of damaged
// ones.
#include "plan/lower/composition.h"

#include <gtest/gtest.h>

#include <random>

#include "all_candidates.h"
#include "damage.h"
#include "plan/lower/exchange_proof.h"
#include "plan/lower/group_emission.h"
#include "plan/lower/proof.h"

namespace plait::plan {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int damaged_plans = 400;
#else
constexpr int damaged_plans = 6000;
#endif

Hierarchy random_hierarchy(std::mt19937& random) {
  std::vector<Location> locations(2 + random() % 11);
  for (Location& location : locations) {
    location.host.low = random() % 4;
    location.package = static_cast<int>(random() % 2);
    location.core = static_cast<int>(random() % 4);
  }
  return Hierarchy::from_locations(locations);
}

// A program for a collective on a hierarchy, drawn.
struct Drawn {
  Hierarchy hierarchy = {};
  Routes routes = Routes(ChannelKind::mpi);
  Collective collective = Collective::allreduce;
  bool commutative = true;
  int root = 0;
  Candidate candidate = {};
  bool lean = false;  // nothing of it is superfluous: without any of its messages it is wrong

  LoweredCall call() const { return {collective, root, commutative, hierarchy}; }
  std::string text() const {
    return std::string(name(collective)) + " " + candidate.name + " on " + hierarchy.describe() + " root " +
           std::to_string(root) + (commutative ? "" : " in order");
  }
};

// Whether the ranks end with no more than the collective asks for. A broadcast that scatters and gathers brings its
// root what that has.
bool ends_lean(const Program& program, const Grid& grid, Collective collective, bool ordered) {
  const auto scatters = [](const Instruction& one) { return one.what == Instruct::scatter; };
  if (collective == Collective::bcast && std::ranges::any_of(program.instructions, scatters)) return false;
  const SynthesisTask task = task_on(grid, collective, ordered);
  LevelState state = task.start;
  for (const Instruction& one : program.instructions) {
    // Some have the data of a broadcast over levels that are full in part already.
    for (int level = one.first; level <= one.last; ++level)
      if (one.what == Instruct::broadcast && state.at(level) == LevelStatus::full) return false;
    state = *apply(task, state, one.what, one.first, one.last);
  }
  LevelStatus least = LevelStatus::full;
  if (collective == Collective::reduce || collective == Collective::gather) least = LevelStatus::rooted;
  if (collective == Collective::scatter || collective == Collective::reduce_scatter ||
      collective == Collective::reduce_scatter_block)
    least = LevelStatus::scattered;
  return state == LevelState::all(grid.levels(), least);
}

// Who folds into a neighbour leaves its piece of a reduce-scatter there as well.
bool leaves_more(const Instruction& instruction) {
  return instruction.what == Instruct::reduce_scatter && instruction.algorithm == &algorithms::bine;
}

// The cheapest programs, with any algorithms.
std::vector<Candidate> lean_candidates(const Drawn& drawn, std::mt19937& random) {
  const Machine machine = default_machine();
  const Call call = sized_call(drawn.collective, drawn.commutative, std::size_t{8} << random() % 18);
  std::vector<Candidate> found;
  for (Candidate& one : candidates(call, {.hierarchy = drawn.hierarchy, .machine = machine}, 3)) {
    if (one.program.instructions.empty()) continue;
    const Grid grid = grid_of(one, drawn.call(), drawn.routes);
    if (!ends_lean(one.program, grid, drawn.collective, in_order(drawn.call()))) continue;
    for (Instruction& instruction : one.program.instructions) do
        instruction.algorithm = all_algorithms[random() % all_algorithms.size()];
      while (!fits(instruction, grid) || (in_order(drawn.call()) && !keeps_order(instruction)) ||
             leaves_more(instruction));
    one.chunks = 1 + static_cast<int>(random() % 2);
    one.name = text(one.program);
    found.push_back(std::move(one));
  }
  return found;
}

Drawn draw(std::mt19937& random) {
  while (true) {
    Drawn drawn{.hierarchy = random_hierarchy(random)};
    drawn.routes = routes_by_node(drawn.hierarchy, ChannelKind::shm, ChannelKind::ucx);
    drawn.collective = static_cast<Collective>(random() % planned_collectives);
    if (drawn.collective == Collective::alltoall) continue;
    drawn.commutative = !reduces(drawn.collective) || random() % 2 == 0;
    if (rooted(drawn.collective))
      drawn.root = static_cast<int>(random() % static_cast<unsigned>(drawn.hierarchy.ranks()));
    drawn.lean = random() % 4 != 0;
    const auto all = drawn.lean ? lean_candidates(drawn, random)
                                : all_candidates(drawn.collective, drawn.hierarchy, drawn.commutative, 4, 30,
                                                 1 + static_cast<int>(random() % 2), random);
    if (all.empty()) continue;
    drawn.candidate = all[random() % all.size()];
    if (random() % 2 == 0) drawn.candidate.rails = {1, 0};
    return drawn;
  }
}

// What both proofs said of many plans. Of a plan that does more than it must the proof by parts may find wrong what the
// result does not need; never right what is wrong.
struct Tally {
  int refused = 0, accepted = 0, superfluous = 0;
  void expect_same(const Status& among_all, const Status& by_parts, const std::string& what, bool lean = true) {
    if (!lean && among_all.ok() && !by_parts.ok()) {
      ++superfluous;
      return;
    }
    EXPECT_EQ(among_all.ok(), by_parts.ok())
        << what << "\n  among all: " << among_all.message() << "\n  by parts: " << by_parts.message();
    ++(among_all.ok() ? accepted : refused);
  }
};

TEST(Composition, SaysTheSameOfDamagedSchedules) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Tally tally;
  while (tally.refused + tally.accepted < damaged_plans && !testing::Test::HasFailure()) {
    const Drawn drawn = draw(random);
    const auto all =
        lower(drawn.candidate, drawn.collective, drawn.root, drawn.commutative, drawn.hierarchy, drawn.routes);
    ASSERT_TRUE(all.ok()) << drawn.text() << ": " << all.status().message();
    const Grid grid = grid_of(drawn.candidate, drawn.call(), drawn.routes);
    const ComposedPlan composed{drawn.candidate.program, grid, in_order(drawn.call()), drawn.routes,
                                drawn.candidate.rails};
    for (int round = 0; round < 4; ++round) {
      LoweredPlan plan = *all;
      const auto rank = static_cast<std::size_t>(random() % plan.schedules.size());
      const std::string what = damage(plan.schedules[rank], plan.semantics.ranks(), !drawn.commutative, random);
      if (what == "nothing") continue;
      tally.expect_same(prove(plan.semantics, plan.schedules, drawn.commutative),
                        prove_own(composed, {plan.semantics, plan.schedules[rank]}, static_cast<int>(rank)),
                        drawn.text() + ", rank " + std::to_string(rank) + ": " + what, drawn.lean);
    }
  }
  EXPECT_GT(tally.refused, damaged_plans / 3);
  EXPECT_GT(tally.accepted, damaged_plans / 50);
}

TEST(Composition, SaysTheSameOfDamagedAlgorithms) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Tally tally;
  while (tally.refused + tally.accepted < damaged_plans / 2 && !testing::Test::HasFailure()) {
    Drawn drawn = draw(random);
    auto& instructions = drawn.candidate.program.instructions;
    Instruction& instruction = instructions[random() % instructions.size()];
    instruction.algorithm = &damaged(*instruction.algorithm, random);
    const auto all =
        lower(drawn.candidate, drawn.collective, drawn.root, drawn.commutative, drawn.hierarchy, drawn.routes);
    const Status among_all = all.ok() ? prove(all->semantics, all->schedules, drawn.commutative) : all.status();
    const Grid grid = grid_of(drawn.candidate, drawn.call(), drawn.routes);
    const bool ordered = in_order(drawn.call());
    const ComposedPlan composed{drawn.candidate.program, grid, ordered, drawn.routes, drawn.candidate.rails};
    const auto segments = segments_needed(drawn.candidate.program, grid, drawn.collective, ordered);
    ASSERT_TRUE(segments.ok()) << segments.status().message();
    GroupProofs proofs;
    const Semantics semantics(drawn.collective, drawn.hierarchy.ranks(), drawn.root, *segments, drawn.candidate.chunks);
    Status by_parts = prove_parts(composed, semantics, proofs);
    for (int rank = 0; rank < drawn.hierarchy.ranks() && by_parts.ok(); ++rank) {
      const auto own = lower_own(drawn.candidate, drawn.call(), drawn.routes, rank);
      by_parts = own.ok() ? prove_own(composed, *own, rank) : own.status();
    }
    tally.expect_same(among_all, by_parts, drawn.text() + ": " + describe_damage(), drawn.lean);
  }
  EXPECT_GT(tally.refused, damaged_plans / 10);
}

TEST(Composition, SaysTheSameOfDamagedExchanges) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Tally tally;
  while (tally.refused + tally.accepted < damaged_plans / 4 && !testing::Test::HasFailure()) {
    const Hierarchy hierarchy = random_hierarchy(random);
    const Routes routes =
        random() % 2 == 0 ? routes_by_node(hierarchy, ChannelKind::shm, ChannelKind::ucx) : Routes(ChannelKind::mpi);
    const Candidate candidate{.name = "pairwise", .exchange = &exchanges::pairwise};
    auto plan = lower(candidate, Collective::alltoall, 0, true, hierarchy, routes);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const auto rank = static_cast<std::size_t>(random() % plan->schedules.size());
    const std::string what = damage(plan->schedules[rank], hierarchy.ranks(), false, random);
    if (what == "nothing") continue;
    tally.expect_same(prove(plan->semantics, plan->schedules, true),
                      prove_direct(exchanges::pairwise, hierarchy, routes, {plan->semantics, plan->schedules[rank]},
                                   static_cast<int>(rank)),
                      hierarchy.describe() + ", rank " + std::to_string(rank) + ": " + what);
  }
  EXPECT_GT(tally.refused, damaged_plans / 20);
}

// A group whose pieces overlap, or leave out a segment.
TEST(Composition, SaysTheSameOfDamagedPieces) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Tally tally;
  while (tally.refused + tally.accepted < damaged_plans / 4 && !testing::Test::HasFailure()) {
    const int ranks = 2 + static_cast<int>(random() % 7), segments = 2 * ranks;
    const Algorithm& algorithm = *all_algorithms[random() % all_algorithms.size()];
    if (!algorithm.fits(Instruct::all_reduce, ranks) || algorithm.needs_whole_node) continue;
    const int pieces = pieces_of(algorithm, Instruct::all_reduce, ranks);
    std::vector<Segments> cut;
    for (int piece = 0; piece < pieces; ++piece)
      cut.push_back({{segments * piece / pieces, segments * (piece + 1) / pieces - segments * piece / pieces}});
    SegmentRun& changed = cut[random() % cut.size()].front();
    const unsigned kind = random() % 4;
    if (kind == 0 && changed.end() < segments) ++changed.count;
    if (kind == 1) --changed.count;
    if (kind == 2 && changed.end() < segments) ++changed.first;
    if (kind == 3 && cut.size() > 1) std::swap(cut.front(), cut.back());
    std::vector<int> members, outer;
    for (int rank = 0; rank < ranks; ++rank) members.push_back(rank), outer.push_back(rank);
    Builder builder(Semantics(Collective::allreduce, ranks, 0, segments, 1), Routes(ChannelKind::mpi));
    emit(algorithm, Instruct::all_reduce,
         {members, [&](int piece) { return cut[static_cast<std::size_t>(piece)]; }, outer, {{0, segments}}}, builder);
    const auto plan = builder.finish();
    const Status among_all = plan.ok() ? prove(plan->semantics, plan->schedules, true) : plan.status();
    const bool fine = are_pieces_of({{0, segments}}, cut, segments);
    tally.expect_same(among_all, fine ? Status() : Status(Code::invalid, "pieces"),
                      std::string(algorithm.name) + " of " + std::to_string(ranks) + " kind " + std::to_string(kind));
  }
  EXPECT_GT(tally.refused, damaged_plans / 20);
}

// Without an instruction, with one twice, or with two in another order.
TEST(Composition, SaysTheSameOfDamagedPrograms) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Tally tally;
  while (tally.refused + tally.accepted < damaged_plans / 4 && !testing::Test::HasFailure()) {
    Drawn drawn = draw(random);
    const auto right =
        lower(drawn.candidate, drawn.collective, drawn.root, drawn.commutative, drawn.hierarchy, drawn.routes);
    ASSERT_TRUE(right.ok()) << right.status().message();
    auto& instructions = drawn.candidate.program.instructions;
    const std::size_t at = random() % instructions.size();
    switch (random() % 3) {
      case 0:
        instructions.erase(instructions.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        instructions.insert(instructions.begin() + static_cast<std::ptrdiff_t>(at), instructions[at]);
        break;
      default:
        std::swap(instructions[at], instructions[(at + 1) % instructions.size()]);
    }
    if (instructions.empty()) continue;
    const auto all =
        lower(drawn.candidate, drawn.collective, drawn.root, drawn.commutative, drawn.hierarchy, drawn.routes);
    const Grid grid = grid_of(drawn.candidate, drawn.call(), drawn.routes);
    const ComposedPlan composed{drawn.candidate.program, grid, in_order(drawn.call()), drawn.routes,
                                drawn.candidate.rails};
    GroupProofs proofs;
    Status by_parts = prove_parts(composed, all.ok() ? all->semantics : right->semantics, proofs);
    for (int rank = 0; rank < drawn.hierarchy.ranks() && by_parts.ok() && all.ok(); ++rank)
      by_parts = prove_own(composed, {all->semantics, all->schedules[static_cast<std::size_t>(rank)]}, rank);
    drawn.candidate.name = text(drawn.candidate.program);
    tally.expect_same(all.ok() ? prove(all->semantics, all->schedules, drawn.commutative) : all.status(), by_parts,
                      drawn.text(), drawn.lean);
  }
  EXPECT_GT(tally.refused, damaged_plans / 20);
}

TEST(Composition, GroupsOfThousandsAreProven) {
  for (const auto& [what, algorithm] :
       {std::pair{Instruct::all_reduce, "ring"}, std::pair{Instruct::all_reduce, "rh"},
        std::pair{Instruct::reduce_scatter, "direct"}, std::pair{Instruct::all_gather, "diss"},
        std::pair{Instruct::reduce_scatter, "bine"}, std::pair{Instruct::gather, "binomial"}}) {
    const Status status = prove_group({algorithm_named(algorithm), what, 512, false});
    EXPECT_TRUE(status.ok()) << algorithm << ": " << status.message();
  }
  for (const auto& [what, algorithm] : {std::pair{Instruct::all_reduce, "rd"}, std::pair{Instruct::reduce, "binomial"},
                                        std::pair{Instruct::broadcast, "bine"}, std::pair{Instruct::reduce, "chain"}})
    for (const int members : {4096, 5000}) {
      const Status status = prove_group({algorithm_named(algorithm), what, members, what != Instruct::broadcast});
      EXPECT_TRUE(status.ok()) << algorithm << " of " << members << ": " << status.message();
    }
  EXPECT_EQ(prove_group({algorithm_named("ring"), Instruct::all_reduce, 4096, false}).code(), Code::unsupported);
}

}  // namespace
}  // namespace plait::plan
