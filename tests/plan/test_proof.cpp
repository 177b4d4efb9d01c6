// The proof must refuse every kind of wrong schedule, and say why.
#include <gtest/gtest.h>

#include <random>

#include "plan/candidate.h"
#include "plan/proof.h"

namespace plait {
namespace {

LoweredPlan plan_for(Collective collective, const char* program_text, int ranks, int chunks = 1) {
  const std::vector<int> shape = {ranks};
  const Candidate candidate{.name = "test", .program = *parse_program(program_text), .chunks = chunks};
  auto plan = lower(candidate, collective, 0, true, Hierarchy::uniform_of(shape), true);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

std::string verdict(const LoweredPlan& plan, bool commutative = true) {
  return prove(plan.semantics, plan.schedules, commutative).message();
}

TEST(Proof, AcceptsARing) { EXPECT_EQ(verdict(plan_for(Collective::allreduce, "AR.1(ring)", 4, 2)), ""); }

TEST(Proof, RefusesAMissingReceive) {
  LoweredPlan plan = plan_for(Collective::reduce, "RD.1(flat)", 2);
  plan.schedules[0].steps.pop_back();
  EXPECT_NE(verdict(plan).find("waits for ever"), std::string::npos) << verdict(plan);
}

TEST(Proof, RefusesADeadlock) {
  LoweredPlan plan = plan_for(Collective::allgather, "AG.1(ring)", 2);
  for (Schedule& schedule : plan.schedules) {  // each receives before it sends
    if (schedule.steps[0].kind == StepKind::send) std::swap(schedule.steps[0], schedule.steps[1]);
    schedule.after = {0, 1};
    schedule.steps[0].after = {};
    schedule.steps[1].after = {0, 1};
    schedule.steps[2].after = {1, 1};
  }
  EXPECT_NE(verdict(plan).find("waits for ever"), std::string::npos) << verdict(plan);
}

TEST(Proof, RefusesAContributionTwice) {
  LoweredPlan plan = plan_for(Collective::reduce, "RD.1(flat)", 2);
  for (Schedule& schedule : plan.schedules) {
    Step again = schedule.steps[0];
    if (again.kind == StepKind::recv_reduce) {
      again.operand = again.destination;
      again.after = {static_cast<std::uint32_t>(schedule.after.size()), 1};
      schedule.after.push_back(0);
    }
    schedule.steps.push_back(again);
  }
  EXPECT_NE(verdict(plan).find("contribution twice"), std::string::npos) << verdict(plan);
}

TEST(Proof, RefusesAMissingContribution) {
  LoweredPlan plan = plan_for(Collective::reduce, "RD.1(flat)", 3);
  plan.schedules[0].steps.pop_back();
  plan.schedules[2].steps.clear();
  EXPECT_NE(verdict(plan).find("wrong contributions"), std::string::npos) << verdict(plan);
}

TEST(Proof, RefusesAnAccessOutOfBounds) {
  LoweredPlan plan = plan_for(Collective::bcast, "BC.1(flat)", 2);
  plan.schedules[1].runs[0].count = 2;
  EXPECT_NE(verdict(plan).find("beyond its buffer"), std::string::npos) << verdict(plan);
}

TEST(Proof, RefusesUnorderedAccesses) {
  LoweredPlan plan = plan_for(Collective::reduce, "RD.1(flat)", 3);
  for (Step& step : plan.schedules[0].steps) step.after = {};
  EXPECT_NE(verdict(plan).find("not ordered"), std::string::npos) << verdict(plan);
}

TEST(Proof, RefusesWritingTheInput) {
  LoweredPlan plan = plan_for(Collective::bcast, "BC.1(flat)", 2);
  Schedule& root = plan.schedules[0];
  root.steps.push_back({.kind = StepKind::copy, .source = {0, 1}, .destination = {0, 1}});
  EXPECT_NE(verdict(plan).find("writes into the input"), std::string::npos) << verdict(plan);
}

TEST(Proof, RefusesABlockInTheWrongPlace) {
  LoweredPlan plan = plan_for(Collective::allgather, "AG.1(direct)", 3);
  for (CellRun& run : plan.schedules[0].runs)
    if (run.space == Space::output && run.first == 1) run.first = 2;
  EXPECT_FALSE(prove(plan.semantics, plan.schedules, true).ok());
}

TEST(Proof, RefusesTheWrongOrderOfOperands) {
  LoweredPlan plan = plan_for(Collective::allreduce, "AR.1(rd)", 4);
  EXPECT_EQ(verdict(plan, false), "");
  for (Schedule& schedule : plan.schedules)
    for (Step& step : schedule.steps) step.incoming_left = !step.incoming_left;
  EXPECT_NE(verdict(plan, false).find("out of order"), std::string::npos) << verdict(plan, false);
}

// With floating point, two ranks that combine in different orders get different sums.
TEST(Proof, RefusesOtherBitsOnAnotherRank) {
  LoweredPlan plan = plan_for(Collective::allreduce, "AR.1(rd)", 4);
  EXPECT_EQ(verdict(plan), "");
  for (Step& step : plan.schedules[0].steps) step.incoming_left = !step.incoming_left;
  EXPECT_NE(verdict(plan).find("other bits"), std::string::npos) << verdict(plan);
}

TEST(Proof, RefusesARingForAnOrderedOperator) {
  EXPECT_FALSE(verdict(plan_for(Collective::allreduce, "AR.1(ring)", 4), false).empty());
}

TEST(Proof, RefusesAPeerThatIsNoRank) {
  LoweredPlan plan = plan_for(Collective::bcast, "BC.1(flat)", 2);
  plan.schedules[0].steps[0].peer = 2;
  EXPECT_NE(verdict(plan).find("no other rank"), std::string::npos) << verdict(plan);
}

// Any single dropped ordering edge or step of a real plan is either harmless or refused: it must never be accepted with
// a conflict left. The proof itself is the only judge here, so this checks that it does not crash or hang.
TEST(Proof, SurvivesRandomDamage) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t size) { return random() % size; };
  for (int round = 0; round < 500; ++round) {
    LoweredPlan plan = plan_for(Collective::allreduce, "AR.1(ring)", 3, 2);
    Schedule& schedule = plan.schedules[pick(3)];
    Step& step = schedule.steps[pick(schedule.steps.size())];
    switch (round % 5) {
      case 0:
        step.peer = static_cast<int>(random() % 5) - 1;
        break;
      case 1:
        schedule.runs[pick(schedule.runs.size())] = {static_cast<Space>(random() % 3),
                                                     static_cast<std::uint32_t>(random() % 9),
                                                     static_cast<std::uint32_t>(random() % 4)};
        break;
      case 2:
        step.kind = static_cast<StepKind>(random() % 5);
        break;
      case 3:
        step.after = {static_cast<std::uint32_t>(random() % 9), static_cast<std::uint32_t>(random() % 9)};
        break;
      case 4:
        schedule.steps.erase(schedule.steps.begin() + static_cast<std::ptrdiff_t>(pick(schedule.steps.size())));
        break;
    }
    (void)prove(plan.semantics, plan.schedules, true).ok();
  }
}

}  // namespace
}  // namespace plait
