// Bine trees and butterflies: those of the paper for powers of two, right and as shallow for every other size, and
// nearer than binomial ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <random>
#include <set>

#include "plan/choose/candidate.h"
#include "plan/lower/proof.h"
#include "simulation.h"

namespace plait::plan {
namespace {

LoweredPlan one_level(Collective collective, const char* program, int members, int root = 0, int chunks = 1) {
  const Candidate candidate{.name = program, .program = *parse_program(program), .chunks = chunks};
  auto plan = lower(candidate, collective, root, true, Hierarchy::uniform_of(std::vector<int>{members}));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

using Message = std::pair<int, int>;  // from, to

std::set<Message> messages_of(const LoweredPlan& plan) {
  std::set<Message> messages;
  for (std::size_t rank = 0; rank < plan.schedules.size(); ++rank)
    for (const Step& step : plan.schedules[rank].steps)
      if (step.kind == StepKind::send) messages.emplace(static_cast<int>(rank), step.peer);
  return messages;
}

// Even ranks add the sum of the powers of -2 up to this stage's, odd ones take it away.
int papers_partner(int rank, int stage, int ranks) {
  int sum = 0;
  for (int k = 0, power = 1; k <= stage; ++k, power *= -2) sum += power;
  return ((rank % 2 == 0 ? rank + sum : rank - sum) % ranks + ranks) % ranks;
}

TEST(Bine, TreesAreThePapersForPowersOfTwo) {
  for (int ranks = 2; ranks <= 256; ranks *= 2) {
    std::set<Message> down, up;
    std::vector<int> holders = {0};
    for (int stage = std::countr_zero(static_cast<unsigned>(ranks)) - 1; stage >= 0; --stage)
      for (std::size_t i = holders.size(); i-- > 0;) {
        const int child = papers_partner(holders[i], stage, ranks);
        down.emplace(holders[i], child);
        up.emplace(child, holders[i]);
        holders.push_back(child);
      }
    EXPECT_EQ(messages_of(one_level(Collective::bcast, "BC.1(bine)", ranks)), down) << ranks;
    EXPECT_EQ(messages_of(one_level(Collective::reduce, "RD.1(bine)", ranks)), up) << ranks;
  }
}

TEST(Bine, ButterfliesAreThePapersForPowersOfTwo) {
  for (int ranks = 2; ranks <= 128; ranks *= 2) {
    std::set<Message> wanted;
    for (int stage = 0; 1 << stage < ranks; ++stage)
      for (int rank = 0; rank < ranks; ++rank) wanted.emplace(rank, papers_partner(rank, stage, ranks));
    EXPECT_EQ(messages_of(one_level(Collective::allgather, "AG.1(bine)", ranks)), wanted) << ranks;
    EXPECT_EQ(messages_of(one_level(Collective::reduce_scatter_block, "RS.1(bine)", ranks)), wanted) << ranks;
  }
}

// Rounds in which each rank sends one message, in the order of its steps.
int rounds_of(const LoweredPlan& plan) {
  int last = 0;
  const std::function<void(int, int)> visit = [&](int rank, int round) {
    last = std::max(last, round);
    for (const Step& step : plan.schedules[static_cast<std::size_t>(rank)].steps)
      if (step.kind == StepKind::send) visit(step.peer, ++round);
  };
  visit(0, 0);
  return last;
}

TEST(Bine, TreesOfAnySizeTakeNoMoreRoundsThanBinomialOnes) {
  for (int ranks = 2; ranks <= 260; ++ranks)
    EXPECT_EQ(rounds_of(one_level(Collective::bcast, "BC.1(bine)", ranks)),
              static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1))))
        << ranks;
}

TEST(Bine, EverySizeIsProven) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr std::pair<Collective, const char*> programs[] = {{Collective::bcast, "BC.1(bine)"},
                                                             {Collective::reduce, "RD.1(bine)"},
                                                             {Collective::reduce_scatter_block, "RS.1(bine)"},
                                                             {Collective::allgather, "AG.1(bine)"},
                                                             {Collective::allreduce, "AR.1(bine)"},
                                                             {Collective::allreduce, "RS.1(bine) AG.1(bine)"}};
  for (int ranks = 2; ranks <= 130; ++ranks)
    for (const auto& [collective, program] : programs) {
      // Those whose blocks grow with the square of the ranks: each size up to 40, then some.
      if (ranks > 40 && collective != Collective::bcast && collective != Collective::reduce && random() % 8 != 0)
        continue;
      const int root = rooted(collective) ? static_cast<int>(random() % static_cast<unsigned>(ranks)) : 0;
      const LoweredPlan plan = one_level(collective, program, ranks, root, 1 + static_cast<int>(random() % 2));
      const Status status = prove(plan.semantics, plan.schedules, true);
      EXPECT_TRUE(status.ok()) << program << " of " << ranks << " root " << root << ": " << status.message();
    }
}

// Bytes between switches of so many ranks, of which the first has `left` of this job's.
std::size_t cells_across(const LoweredPlan& plan, int size, int left) {
  const auto switch_of = [&](int rank) { return (rank + size - left) / size; };
  std::size_t cells = 0;
  for (std::size_t rank = 0; rank < plan.schedules.size(); ++rank) {
    const Schedule& schedule = plan.schedules[rank];
    for (const Step& step : schedule.steps)
      if (step.kind == StepKind::send && switch_of(static_cast<int>(rank)) != switch_of(step.peer))
        for (std::uint32_t run = 0; run < step.source.count; ++run)
          cells += schedule.runs[step.source.first + run].count;
  }
  return cells;
}

TEST(Bine, FewerBytesCrossBetweenSwitchesThatArePlacedAnyhow) {
  const std::pair<LoweredPlan, LoweredPlan> pairs[] = {
      {one_level(Collective::bcast, "BC.1(bine)", 256), one_level(Collective::bcast, "BC.1(binomial)", 256)},
      {one_level(Collective::allgather, "AG.1(bine)", 256), one_level(Collective::allgather, "AG.1(rd)", 256)}};
  for (const auto& [bine, binomial] : pairs)
    for (const int size : {24, 32}) {
      std::size_t with = 0, without = 0;
      for (int left = 1; left <= size; ++left) {
        with += cells_across(bine, size, left);
        without += cells_across(binomial, size, left);
      }
      EXPECT_LT(static_cast<double>(with), 0.83 * static_cast<double>(without)) << size;
    }
}

// Where it is weighed: over levels that are no powers of two.
TEST(Bine, CostsWhatItsMessagesTake) {
  const Machine machine = default_machine();
  for (const auto& shape : std::vector<std::vector<int>>{{3, 5}, {5, 3}, {4, 6}, {7, 2}})
    for (const auto& [collective, program] :
         {std::pair{Collective::bcast, "BC.12(bine)"}, std::pair{Collective::reduce, "RD.12(bine)"},
          std::pair{Collective::allreduce, "AR.12(bine)"}, std::pair{Collective::allgather, "AG.12(bine)"}})
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{64} << 10, std::size_t{1} << 20}) {
        const Hierarchy hierarchy = Hierarchy::uniform_of(shape);
        const Call call{.collective = collective, .count = bytes};
        const auto candidate =
            named_candidate(program + std::string(" x1"), call, {.hierarchy = hierarchy, .machine = machine});
        ASSERT_TRUE(candidate.ok()) << candidate.status().message();
        const auto plan = lower(*candidate, collective, 0, true, hierarchy);
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        const double ratio =
            candidate->seconds / predict_seconds({plan->schedules, &plan->semantics, &hierarchy}, call, machine);
        EXPECT_GT(ratio, 0.5) << program << " of " << bytes << " B on " << hierarchy.describe();
        EXPECT_LT(ratio, 2.0) << program << " of " << bytes << " B on " << hierarchy.describe();
      }
}

// Why there is none: sums that overlap are put together in other orders.
TEST(Bine, AnAllReduceOfWholeVectorsWouldGiveOtherBits) {
  constexpr int ranks = 8;
  Builder builder(Semantics(Collective::allreduce, ranks, 0, 1, 1), Routes(ChannelKind::mpi));
  for (int stage = 0; 1 << stage < ranks; ++stage)
    for (int rank = 0; rank < ranks; rank += 2)
      builder.exchange(rank, papers_partner(rank, stage, ranks), std::vector<BlockId>{0});
  const auto plan = builder.finish();
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const std::string verdict = prove(plan->semantics, plan->schedules, true).message();
  EXPECT_NE(verdict.find("other bits"), std::string::npos) << verdict;
}

TEST(Bine, IsNotTakenForAnOrderedOperator) {
  const Machine machine = default_machine();
  const Hierarchy hierarchy = Hierarchy::uniform_of(std::vector<int>{8});
  const Call call{.collective = Collective::reduce, .count = 1000, .commutative = false};
  EXPECT_FALSE(named_candidate("RD.1(bine)", call, {.hierarchy = hierarchy, .machine = machine}).ok());
  const LoweredPlan plan = one_level(Collective::reduce, "RD.1(bine)", 8);
  EXPECT_FALSE(prove(plan.semantics, plan.schedules, false).ok());
}

}  // namespace
}  // namespace plait::plan
