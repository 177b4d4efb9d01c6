// The algebra of motifs: what each rule makes, that it achieves the same, and that the proof sees what does not.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "plan/algorithm/registry.h"
#include "plan/lower/proof.h"
#include "plan/motif/lowering.h"
#include "plan/motif/meaning.h"
#include "plan/motif/motif.h"
#include "plan/motif/rewrite.h"

namespace plait::plan::motif {
namespace {

constexpr Collective motif_kinds[] = {Collective::allreduce,
                                      Collective::reduce,
                                      Collective::bcast,
                                      Collective::allgather,
                                      Collective::reduce_scatter_block,
                                      Collective::gather,
                                      Collective::scatter,
                                      Collective::alltoall};

Rewriting whole_of(Collective collective, int ranks, int root = 0) {
  Result<Rewriting> whole = whole_collective(collective, ranks, root);
  EXPECT_TRUE(whole.ok()) << whole.status().message();
  return *whole;
}

Rewriting rewritten_as(Collective collective, int ranks, const std::string& rules, int root = 0) {
  const Result<std::vector<Rule>> parsed = parse_rules(rules);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  Result<Rewriting> result = rewrite(whole_of(collective, ranks, root), *parsed);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return *result;
}

std::string form_of(Collective collective, int ranks, const std::string& rules, int root = 0) {
  return text(rewritten_as(collective, ranks, rules, root).term);
}

TEST(Motif, SegmentsCutThePayloadAndRunTogether) {
  EXPECT_EQ(form_of(Collective::allreduce, 4, "segment:2"), "AR(0:1, 0-3) ∥ AR(1:2, 0-3)");
  EXPECT_EQ(form_of(Collective::alltoall, 4, "segment:2"), "AA(0:1, 0-3) ∥ AA(1:2, 0-3)");
}

TEST(Motif, ARingIsAReduceScatterAndAnAllGather) {
  EXPECT_EQ(form_of(Collective::allreduce, 4, "ring"), "RS(0:4, 0-3) → AG(0:4, 0-3)");
  EXPECT_EQ(form_of(Collective::bcast, 4, "ring", 2), "SC(0:4, 0-3)^2 → AG(0:4, 0-3)");
  EXPECT_EQ(form_of(Collective::reduce, 4, "ring", 1), "RS(0:4, 0-3) → GA(0:4, 0-3)^1");
}

// Appendix A.1: convergent groups, a smaller all-reduce of their roots, divergent groups; and the same again within.
TEST(Motif, ATreeIsReducedToItsLeadersAndBack) {
  EXPECT_EQ(form_of(Collective::allreduce, 4, "tree:2"),
            "(RD(0:1, 0,1)^0 ∥ RD(0:1, 2,3)^2) → AR(0:1, 0,2) → (BC(0:1, 0,1)^0 ∥ BC(0:1, 2,3)^2)");
  const Rewriting twice = rewritten_as(Collective::allreduce, 8, "tree:2,tree:2");
  EXPECT_EQ(depth_of(twice.term), 3);
  EXPECT_EQ(motifs_of(twice.term).size(), 4u + 2 + 1 + 2 + 4);
}

TEST(Motif, ATreeKeepsItsRoot) {
  EXPECT_EQ(form_of(Collective::bcast, 4, "tree:2", 3), "BC(0:1, 0,3)^3 → (BC(0:1, 0,1)^0 ∥ BC(0:1, 2,3)^3)");
}

// Section 4.2.1: step c goes to the destinations (i + c n) mod N to (i + (c+1) n) mod N.
TEST(Motif, SplinesCutThePattern) {
  EXPECT_EQ(form_of(Collective::alltoall, 4, "spline:2"), "AA(0:1, 0-3)+0:2 ∥ AA(0:1, 0-3)+2:4");
  EXPECT_EQ(form_of(Collective::bcast, 4, "spline:2"), "BC(0:1, 0-3)^0+0:2 ∥ BC(0:1, 0-3)^0+2:4");
}

TEST(Motif, SplinesThatCombineAtOneRankComeOneByOne) {
  EXPECT_EQ(form_of(Collective::reduce, 4, "spline:2"), "RD(0:1, 0-3)^0+0:2 → RD(0:1, 0-3)^0+2:4");
  EXPECT_EQ(form_of(Collective::reduce_scatter_block, 2, "spline:2"), "RS(0:1, 0,1)+0:1 → RS(0:1, 0,1)+1:2");
}

TEST(Motif, RulesCompose) {
  EXPECT_EQ(form_of(Collective::allreduce, 2, "segment:2,ring"),
            "(RS(0:2, 0,1) → AG(0:2, 0,1)) ∥ (RS(2:4, 0,1) → AG(2:4, 0,1))");
  EXPECT_EQ(form_of(Collective::allreduce, 2, "ring,segment:2"),
            "(RS(0:4[0:1], 0,1) ∥ RS(0:4[1:2], 0,1)) → (AG(0:4[0:1], 0,1) ∥ AG(0:4[1:2], 0,1))");
}

TEST(Motif, SaysWhatDoesNotFit) {
  for (const char* rules : {"spline:2", "tree:3", "tree:4"}) {
    const Result<Rewriting> result = rewrite(whole_of(Collective::allreduce, 4), *parse_rules(rules));
    ASSERT_FALSE(result.ok()) << rules;
    EXPECT_NE(result.status().message().find("fits none"), std::string::npos) << result.status().message();
  }
  EXPECT_FALSE(whole_collective(Collective::scan, 4, 0).ok());
  EXPECT_FALSE(whole_collective(Collective::bcast, 4, 4).ok());
  EXPECT_FALSE(whole_collective(Collective::allreduce, 1, 0).ok());
  for (const char* rules : {"segment", "ring:2", "segment:1", "segment:-4", "segment:4x", "cut:2", "segment:99999"})
    EXPECT_FALSE(parse_rules(rules).ok()) << rules;
}

TEST(Motif, UnitsDoNotGrowWithoutBound) {
  const Result<Rewriting> result =
      rewrite(whole_of(Collective::allreduce, 4), *parse_rules("segment:4096,segment:4096"));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("units"), std::string::npos);
}

TEST(Motif, TextOfRulesReadsBack) {
  const std::string rules = "segment:4,ring,tree:2,spline:8";
  EXPECT_EQ(text(*parse_rules(rules)), rules);
}

// ---- Proofs ----

TEST(MotifProof, EveryRewritingOfAllKindsUpToDepthTwo) {
  constexpr int segments[] = {2, 3};
  for (const Collective collective : motif_kinds)
    for (const int ranks : {2, 3, 4, 6, 8, 9, 12}) {
      const Rewriting whole = whole_of(collective, ranks, ranks / 2 * (rooted_motif(collective) ? 1 : 0));
      for (const std::vector<Rule>& rules : rewritings(whole, 2, segments)) {
        const Result<Rewriting> result = rewrite(whole, rules);
        ASSERT_TRUE(result.ok()) << text(rules) << ": " << result.status().message();
        const Status proven = prove(*result);
        ASSERT_TRUE(proven.ok()) << proven.message();
      }
    }
}

// A rule at random for one motif at random, four times: motifs of one composition are then cut differently.
TEST(MotifProof, RandomCompositionsUpToDepthFour) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::size_t end) { return random() % end; };
  int compositions = 0;
  while (compositions < 400) {
    const Collective collective = motif_kinds[below(std::size(motif_kinds))];
    const int ranks = 2 + static_cast<int>(below(11));
    const int root = rooted_motif(collective) ? static_cast<int>(below(static_cast<std::size_t>(ranks))) : 0;
    Result<Rewriting> made = whole_of(collective, ranks, root);
    for (int step = 0; step < 4; ++step) {
      const auto kind = static_cast<Rule::Kind>(below(4));
      const Rule rule{kind, kind == Rule::Kind::ring ? 0 : 2 + static_cast<int>(below(3))};
      const std::size_t chosen = below(motifs_of(made->term).size());
      const Result<Rewriting> further = rewrite_one(*made, chosen, rule);
      if (further.ok() && motifs_of(further->term).size() < 200) made = further;
    }
    const Status proven = prove(*made);
    ASSERT_TRUE(proven.ok()) << text(made->term) << ": " << proven.message();
    ++compositions;
  }
}

std::vector<Motif*> motifs_in(Term& term) {
  if (term.kind == Term::Kind::motif) return {&term.motif};
  std::vector<Motif*> all;
  for (Term& part : term.parts)
    for (Motif* motif : motifs_in(part)) all.push_back(motif);
  return all;
}

void refuted(const Rewriting& rewriting, const std::string& reason) {
  const Status status = prove(rewriting);
  ASSERT_FALSE(status.ok()) << text(rewriting.term);
  EXPECT_NE(status.message().find(reason), std::string::npos) << status.message();
}

TEST(MotifProof, SeesASegmentThatIsMissing) {
  Rewriting damaged = rewritten_as(Collective::allreduce, 4, "segment:4");
  damaged.term.parts.pop_back();
  refuted(damaged, "lacks contributions");
}

TEST(MotifProof, SeesWhatIsCombinedTwice) {
  Rewriting damaged = rewritten_as(Collective::allreduce, 4, "ring");
  damaged.term.parts.insert(damaged.term.parts.begin(), damaged.term.parts.front());
  refuted(damaged, "nothing to give");
  damaged = rewritten_as(Collective::allreduce, 4, "segment:2");
  damaged.term.kind = Term::Kind::sequence;
  motifs_in(damaged.term)[1]->payload = {0, 2};
  refuted(damaged, "twice");
}

TEST(MotifProof, SeesMotifsThatMeet) {
  Rewriting damaged = rewritten_as(Collective::allreduce, 4, "ring");
  damaged.term.kind = Term::Kind::parallel;
  refuted(damaged, "meet");
  damaged = rewritten_as(Collective::reduce, 4, "spline:2");
  damaged.term.kind = Term::Kind::parallel;
  refuted(damaged, "meet");
}

TEST(MotifProof, SeesAWrongOrder) {
  Rewriting damaged = rewritten_as(Collective::bcast, 8, "tree:2");
  std::swap(damaged.term.parts.front(), damaged.term.parts.back());
  refuted(damaged, "nothing to give");
}

// Each damage changes one number of one motif, some of them to what is not there at all.
TEST(MotifProof, RefusesDamagedRewritings) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 1000; ++i) {
    const Collective collective = motif_kinds[random() % std::size(motif_kinds)];
    Rewriting damaged = rewritten_as(collective, 6, "segment:2");
    std::vector<Motif*> motifs = motifs_in(damaged.term);
    Motif& motif = *motifs[random() % motifs.size()];
    switch (random() % 8) {
      case 0:
        motif.payload.count -= 1;
        break;
      case 1:
        motif.distances.count -= 1;
        if (collective == Collective::allreduce) motif.group.pop_back();
        break;
      case 2:
        motif.payload.first = motif.payload.first == 0 ? 1 : 0;
        break;
      case 3:
        motif.payload.first -= 2;
        break;
      case 4:
        motif.payload.count += 5;
        break;
      case 5:
        motif.group[random() % 6] = random() % 2 == 0 ? 6 : -1;
        break;
      case 6:
        motif.group[0] = motif.group[1];
        break;
      default:
        motif.distances.count += 1;
    }
    EXPECT_FALSE(prove(damaged).ok()) << text(damaged.term);
  }
}

// Unit -1 of rank 1 would be rank 0's value.
TEST(MotifProof, RefusesUnitsThatAreNotThere) {
  Rewriting damaged = whole_of(Collective::bcast, 3);
  Motif first = damaged.whole;
  first.group = {1, 2};
  first.distances = {0, 2};
  first.payload = {-1, 1};
  Motif second = first;
  second.payload = {0, 1};
  damaged.term = {.kind = Term::Kind::sequence, .parts = {{.motif = first}, {.motif = second}}};
  refuted(damaged, "not there");
}

TEST(MotifProof, RefusesWhatIsTooLargeToLookAt) {
  const Result<Rewriting> whole = whole_collective(Collective::allreduce, 1000, 0);
  const Status status = prove(*whole);
  EXPECT_EQ(status.code(), Code::unsupported);
}

// ---- Plans ----

// Steps of all ranks, as the proof of plans sees them.
void expect_proven(const Rewriting& rewriting, std::span<const Way> ways, const Hierarchy& hierarchy) {
  const Result<LoweredPlan> plan = lower(rewriting, ways, rewriting.whole.what, hierarchy, usual_routes(hierarchy));
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const Status proven = plan::prove(plan->semantics, plan->schedules, true);
  ASSERT_TRUE(proven.ok()) << text(rewriting.term) << ": " << proven.message();
}

TEST(MotifPlan, EveryRewritingUpToDepthTwoIsAPlanThatIsProven) {
  constexpr int segments[] = {2};
  constexpr Way ways[] = {{nullptr, 0}, {nullptr, 1}, {nullptr, any_rail}};
  for (const std::vector<int>& ranks : {std::vector{2}, {1, 1}, {3}, {2, 2}, {1, 1, 1, 1, 1, 1}, {4, 4}, {3, 2, 1}}) {
    const Hierarchy hierarchy = Hierarchy::nodes_of(ranks);
    for (const Collective collective : motif_kinds) {
      const Rewriting whole = whole_of(collective, hierarchy.ranks(), rooted_motif(collective) ? 1 : 0);
      for (const std::vector<Rule>& rules : rewritings(whole, 2, segments))
        expect_proven(*rewrite(whole, rules), ways, hierarchy);
    }
  }
}

TEST(MotifPlan, EachMotifGoesOverItsRail) {
  const Hierarchy hierarchy = Hierarchy::nodes_of(std::vector{1, 1});
  constexpr Way ways[] = {{nullptr, 0}, {nullptr, 0}, {nullptr, 0}, {nullptr, 1}};
  Routes routes = routes_by_node(hierarchy, ChannelKind::shm, ChannelKind::ucx);
  const Result<LoweredPlan> plan =
      lower(rewritten_as(Collective::allreduce, 2, "segment:4"), ways, Collective::allreduce, hierarchy, routes);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  int over[2] = {0, 0};
  for (const Schedule& schedule : plan->schedules)
    for (const Step& step : schedule.steps)
      if (step.kind == StepKind::send) ++over[step.rail];
  EXPECT_EQ(over[0], 3 * over[1]);
  EXPECT_GT(over[1], 0);
}

// Who sends to the destinations of the second part is through with the first one's.
TEST(MotifPlan, PartsOfAPatternTakeTurns) {
  const Hierarchy hierarchy = Hierarchy::nodes_of(std::vector{1, 1, 1, 1, 1, 1, 1, 1});
  const Result<LoweredPlan> plan = lower(rewritten_as(Collective::alltoall, 8, "spline:2"), {}, Collective::alltoall,
                                         hierarchy, usual_routes(hierarchy));
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_TRUE(plan::prove(plan->semantics, plan->schedules, true).ok());
  for (const Schedule& schedule : plan->schedules) {
    int sends = 0;
    for (const Step& step : schedule.steps) {
      if (step.kind != StepKind::send) continue;
      EXPECT_EQ(step.after.count, sends++ < 3 ? 0u : 6u);
    }
    EXPECT_EQ(sends, 7);
  }
}

TEST(MotifPlan, GoesByTheAlgorithmThatItIsGiven) {
  const Hierarchy hierarchy = Hierarchy::nodes_of(std::vector{1, 1, 1, 1});
  const Rewriting whole = whole_of(Collective::allreduce, 4);
  const Way ring{algorithm_named("ring")}, doubling{algorithm_named("rd")};
  ASSERT_NE(doubling.algorithm, nullptr);
  const auto sends = [&](const Way& way) {
    std::size_t count = 0;
    const Result<LoweredPlan> plan =
        lower(whole, std::span(&way, 1), Collective::allreduce, hierarchy, usual_routes(hierarchy));
    for (const Step& step : plan->schedules[0].steps) count += step.kind == StepKind::send ? 1 : 0;
    return count;
  };
  EXPECT_EQ(sends(ring), 6u);
  EXPECT_EQ(sends(doubling), 2u);
}

TEST(MotifPlan, IsForAsManyRanksAsTheCommunicatorHas) {
  const Hierarchy hierarchy = Hierarchy::nodes_of(std::vector{2, 2});
  EXPECT_EQ(lower(whole_of(Collective::allreduce, 8), {}, Collective::allreduce, hierarchy, usual_routes(hierarchy))
                .status()
                .code(),
            Code::invalid);
}

}  // namespace
}  // namespace plait::plan::motif
