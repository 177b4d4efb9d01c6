#include <gtest/gtest.h>

#include "plan/choose/candidate.h"
#include "plan/lower/proof.h"

namespace plait::plan {
namespace {

TEST(Program, TextIsReadBackAsWritten) {
  for (const char* written : {"RS.2(ring) AR.1(rd) AG.2(direct)", "RD.12(chain) BC.12(flat)", "AG.1(diss)"}) {
    const auto program = parse_program(written);
    ASSERT_TRUE(program.ok()) << program.status().message();
    EXPECT_EQ(text(*program), written);
  }
}

TEST(Program, AlgorithmsHaveDefaults) {
  EXPECT_EQ(text(*parse_program("RS.2 AR.1  AG.2 RD.1 BC.1")),
            "RS.2(ring) AR.1(ring) AG.2(ring) RD.1(binomial) BC.1(binomial)");
}

TEST(Program, NonsenseIsRefusedWithTheWord) {
  for (const char* nonsense : {"", "XX.1", "AR", "AR.", "AR.0", "AR.13", "AR.21", "AR.1(", "AR.1(chain)", "AR.1(fast)",
                               "BC.1(ring)", "AR1", "AR.1)x"}) {
    const auto program = parse_program(nonsense);
    EXPECT_FALSE(program.ok()) << nonsense;
    EXPECT_NE(program.status().message().find("expected"), std::string::npos) << program.status().message();
  }
}

// P2.md: validity. The same program must be accepted or refused as the rules say.
struct Case {
  const char* program;
  bool valid;
};

TEST(Program, ValidityFollowsTheRules) {
  const std::vector<int> shape = {2, 4};
  const Hierarchy hierarchy = Hierarchy::uniform_of(shape);
  for (const Case& c : std::vector<Case>{{"AR.12", true},
                                         {"AR.12(tree)", true},
                                         {"AR.12(rh)", true},
                                         {"AR.2 AR.1", true},
                                         {"RS.2 AR.1 AG.2", true},
                                         {"RD.2 AR.1 BC.2", true},
                                         {"RS.12 AG.12", true},
                                         {"RS.2 RS.1 AG.1 AG.2", true},
                                         {"RD.2 RD.1 BC.1 BC.2", true},
                                         {"RS.2 RD.1 BC.1 AG.2", true},
                                         {"AR.2", false},
                                         {"RS.2 AG.2", false},
                                         {"RD.2 BC.2", false},
                                         {"RS.2 AR.12", false},
                                         {"AR.3", false},
                                         {"BC.1 AR.12", false}}) {
    const Candidate candidate{.name = "test", .program = *parse_program(c.program), .chunks = 2};
    const auto plan = lower(candidate, Collective::allreduce, 0, true, hierarchy);
    const bool valid = plan.ok() && prove(plan->semantics, plan->schedules, true).ok();
    EXPECT_EQ(valid, c.valid) << c.program << ": " << plan.status().message();
  }
}

}  // namespace
}  // namespace plait::plan
