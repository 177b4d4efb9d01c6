// The proof must refuse every kind of wrong schedule, and say why.
#include <gtest/gtest.h>

#include <random>

#include "plan/choose/candidate.h"
#include "plan/lower/proof.h"

namespace plait::plan {
namespace {

LoweredPlan plan_for(Collective collective, const char* program_text, int ranks, int chunks = 1) {
  const std::vector<int> shape = {ranks};
  const Candidate candidate{.name = "test", .program = *parse_program(program_text), .chunks = chunks};
  auto plan = lower(candidate, collective, 0, true, Hierarchy::uniform_of(shape));
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

// ---- Shared-memory collectives ----

void expect_refused(const LoweredPlan& plan, const char* message, bool commutative = true) {
  const std::string said = verdict(plan, commutative);
  EXPECT_NE(said.find(message), std::string::npos) << said;
}

// All ranks on one node.
LoweredPlan node_plan(Collective collective, const char* program_text, int ranks, int chunks = 1, int root = 0) {
  const Candidate candidate{.name = "test", .program = *parse_program(program_text), .chunks = chunks};
  auto plan = lower(candidate, collective, root, true, Hierarchy::nodes_of(std::vector<int>{ranks}));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(verdict(*plan), "");
  return std::move(plan).value();
}

TEST(ProofOfGroups, AcceptsEveryKind) {
  const std::pair<Collective, const char*> programs[] = {{Collective::allreduce, "AR.1(shared)"},
                                                         {Collective::allreduce, "RS.1(shared) AG.1(shared)"},
                                                         {Collective::allreduce, "RD.1(shared) BC.1(shared)"},
                                                         {Collective::reduce, "RD.1(shared)"},
                                                         {Collective::bcast, "BC.1(shared)"},
                                                         {Collective::allgather, "AG.1(shared)"},
                                                         {Collective::gather, "GA.1(shared)"},
                                                         {Collective::scatter, "SC.1(shared)"},
                                                         {Collective::reduce_scatter, "RS.1(shared)"}};
  for (const auto& [collective, program] : programs)
    for (const int ranks : {2, 3, 5}) node_plan(collective, program, ranks, 2, rooted(collective) ? ranks - 1 : 0);
}

TEST(ProofOfGroups, RefusesWrongMembers) {
  for (const std::int32_t wrong : {-1, 3, 0}) {  // no rank, no rank, one twice
    LoweredPlan plan = node_plan(Collective::bcast, "BC.1(shared)", 3);
    plan.schedules[0].collective_members = {0, 1, wrong};
    expect_refused(plan, "rank 0 step 0: its collective has no proper members");
  }
  LoweredPlan absent = node_plan(Collective::bcast, "BC.1(shared)", 3);
  absent.schedules[0].collective_members = {1, 2};
  absent.schedules[0].collectives[0].members.count = 2;
  expect_refused(absent, "rank 0 step 0: its collective has no proper members");
}

TEST(ProofOfGroups, RefusesMembersInAnotherOrder) {
  LoweredPlan plan = node_plan(Collective::allreduce, "AR.1(shared)", 3);
  std::swap(plan.schedules[1].collective_members[0], plan.schedules[1].collective_members[1]);
  expect_refused(plan, "is not the shared-memory collective of rank");
}

TEST(ProofOfGroups, RefusesAnotherRoot) {
  LoweredPlan plan = node_plan(Collective::reduce, "RD.1(shared)", 3);
  plan.schedules[1].collectives[0].root = 2;
  expect_refused(plan, "is not the shared-memory collective of rank");
  plan.schedules[1].collectives[0].root = 3;
  expect_refused(plan, "rank 1 step 0: its collective has no proper members");
}

TEST(ProofOfGroups, RefusesAnotherKind) {
  LoweredPlan plan = node_plan(Collective::allreduce, "AR.1(shared)", 3);
  plan.schedules[1].collectives[0].kind = ShmCollectiveKind::reduce;
  plan.schedules[1].collectives[0].root = 1;  // who gives and gets the same
  expect_refused(plan, "is not the shared-memory collective of rank");
}

TEST(ProofOfGroups, RefusesWrongPieces) {
  LoweredPlan plan = node_plan(Collective::allgather, "AG.1(shared)", 3);
  plan.schedules[2].collective_pieces[0] = 2;
  expect_refused(plan, "rank 2 step 0: its collective's pieces are not its blocks");
  plan = node_plan(Collective::allgather, "AG.1(shared)", 3);
  plan.schedules[2].collective_pieces = {2, 0, 1};
  EXPECT_FALSE(verdict(plan).empty());
}

TEST(ProofOfGroups, RefusesWrongBlocks) {
  LoweredPlan plan = node_plan(Collective::allgather, "AG.1(shared)", 3);
  std::swap(plan.schedules[1].collective_blocks[0], plan.schedules[1].collective_blocks[2]);
  expect_refused(plan, "rank 1 step 0: does not get its collective's blocks");
  plan = node_plan(Collective::allreduce, "AR.1(shared)", 3, 2);
  std::swap(plan.schedules[1].collective_blocks[0], plan.schedules[1].collective_blocks[1]);
  expect_refused(plan, "does not give its collective's blocks");
}

TEST(ProofOfGroups, RefusesListsOutsideTheSchedule) {
  LoweredPlan plan = node_plan(Collective::bcast, "BC.1(shared)", 3);
  plan.schedules[1].steps[0].collective = 1;
  expect_refused(plan, "rank 1 step 0: names no collective");
  plan = node_plan(Collective::bcast, "BC.1(shared)", 3);
  plan.schedules[1].collectives[0].blocks.count = 2;
  expect_refused(plan, "rank 1 step 0: its collective lies outside the schedule");
}

TEST(ProofOfGroups, RefusesAMissingMember) {
  LoweredPlan plan = node_plan(Collective::allreduce, "AR.1(shared)", 3);
  plan.schedules[1].steps.clear();
  expect_refused(plan, "rank 0 step 0: waits for ever for its collective");
}

TEST(ProofOfGroups, RefusesTwoStepsInAnotherOrderOnOneRank) {
  LoweredPlan plan = node_plan(Collective::allreduce, "AR.1(shared)", 3, 2);
  Schedule& schedule = plan.schedules[1];
  ASSERT_EQ(schedule.steps.size(), 2u);
  std::swap(schedule.steps[0], schedule.steps[1]);
  expect_refused(plan, "is not the shared-memory collective of rank");
}

// Both have the block after the broadcast, and give it.
TEST(ProofOfGroups, RefusesABlockFromTwoMembers) {
  LoweredPlan plan = node_plan(Collective::bcast, "BC.1(shared)", 2);
  for (Schedule& schedule : plan.schedules) {
    const auto end = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
    const bool root = &schedule == &plan.schedules[0];
    Step step{.kind = StepKind::shm_collective, .channel = ChannelKind::shm};
    step.collective = static_cast<std::int32_t>(schedule.collectives.size());
    schedule.collectives.push_back({.kind = ShmCollectiveKind::all_gather,
                                    .root = 0,
                                    .takes_own = false,
                                    .members = schedule.collectives[0].members,
                                    .blocks = {end(schedule.collective_blocks), 2},
                                    .pieces = {end(schedule.collective_pieces), 2}});
    schedule.collective_blocks.insert(schedule.collective_blocks.end(), {0, 0});
    schedule.collective_pieces.insert(schedule.collective_pieces.end(), {1, 1});
    step.source = {end(schedule.runs), 1};
    step.destination = {end(schedule.runs) + 1, 1};
    schedule.runs.push_back({root ? Space::input : Space::output, 0, 1});
    schedule.runs.push_back({Space::scratch, end(schedule.scratch), 1});
    schedule.scratch.push_back(0);
    step.after = {end(schedule.after), 1};
    schedule.after.push_back(0);
    schedule.steps.push_back(step);
  }
  expect_refused(plan, "step 1: gets block 0 from two members");
}

TEST(ProofOfGroups, RefusesTheWrongOrderOfOperands) {
  LoweredPlan plan = node_plan(Collective::allreduce, "AR.1(shared)", 3);
  EXPECT_EQ(verdict(plan, false), "");
  for (Schedule& schedule : plan.schedules) std::swap(schedule.collective_members[0], schedule.collective_members[1]);
  EXPECT_EQ(verdict(plan), "");
  expect_refused(plan, "combines a contribution twice, or out of order", false);
}

TEST(ProofOfGroups, RefusesAContributionTwice) {
  LoweredPlan plan = node_plan(Collective::allreduce, "RD.1(shared) BC.1(shared)", 2);
  for (Schedule& schedule : plan.schedules)
    for (ShmCollective& collective : schedule.collectives) collective.kind = ShmCollectiveKind::all_reduce;
  EXPECT_FALSE(verdict(plan).empty());
}

TEST(ProofOfGroups, RefusesACellThatWasNeverWritten) {
  LoweredPlan plan = node_plan(Collective::allreduce, "RD.1(shared) BC.1(shared)", 3);
  Schedule& root = plan.schedules[0];
  ASSERT_EQ(root.steps.size(), 2u);
  root.scratch.push_back(0);
  root.steps[1].source = {static_cast<std::uint32_t>(root.runs.size()), 1};
  root.runs.push_back({Space::scratch, static_cast<std::uint32_t>(root.scratch.size() - 1), 1});
  expect_refused(plan, "rank 0 step 1: reads a cell that was never written");
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

TEST(ProofOfGroups, SurvivesRandomDamage) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t size) { return random() % size; };
  const auto small = [&] { return static_cast<std::uint32_t>(random() % 7); };
  for (int round = 0; round < 500; ++round) {
    LoweredPlan plan = node_plan(Collective::allreduce, "RS.1(shared) AG.1(shared)", 3, 2);
    Schedule& schedule = plan.schedules[pick(3)];
    ShmCollective& collective = schedule.collectives[pick(schedule.collectives.size())];
    switch (round % 6) {
      case 0:
        collective.kind = static_cast<ShmCollectiveKind>(random() % 8);
        break;
      case 1:
        collective.root = static_cast<std::int32_t>(random() % 6) - 1;
        break;
      case 2:
        collective.takes_own = !collective.takes_own;
        break;
      case 3:
        (random() % 2 ? collective.members : random() % 2 ? collective.blocks : collective.pieces) = {small(), small()};
        break;
      case 4:
        schedule.collective_pieces[pick(schedule.collective_pieces.size())] = small();
        schedule.collective_blocks[pick(schedule.collective_blocks.size())] = small();
        break;
      case 5:
        schedule.steps[pick(schedule.steps.size())].collective = static_cast<std::int32_t>(small()) - 1;
        break;
    }
    (void)prove(plan.semantics, plan.schedules, true).ok();
  }
}

}  // namespace
}  // namespace plait::plan
