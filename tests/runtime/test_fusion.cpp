// Allreduces in the groups of an overlap plan, by ranks in one process that wait when their seeds say so.
#include "runtime/fusion/fusion.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/runtime/posting.h"

namespace plait::runtime {
namespace {

const std::vector<std::size_t> step_counts = {40, 8, 300, 1000, 16, 24};

std::shared_ptr<const OverlapPlan> plan_of_step() {
  auto plan = std::make_shared<OverlapPlan>();
  for (const std::size_t count : step_counts)
    plan->calls.push_back({.bytes = count * sizeof(std::uint64_t), .layer = {}});
  plan->groups = {{.first_call = 0, .calls = 3, .share = {}},
                  {.first_call = 3, .calls = 1, .share = {}},
                  {.first_call = 4, .calls = 2, .share = {}}};
  return plan;
}

class FusionOf : public testing::TestWithParam<Shape> {
 protected:
  void plan() {
    process.overlap(plan_of_step());
    OverlapCounts::instance().add(*job().overlap);
  }
  // All ranks, connected; what went wrong.
  std::string run(const std::function<std::string(PostingRank& rank, int number)>& work) {
    InProcessJob all(shape.ranks);
    all.bring_messages(seed, 2);
    return all.run([&](Oob& oob) -> std::string {
      PostingRank rank(all, oob.rank(), shape, seed);
      if (std::string wrong = rank.connect(rank.communicator); !wrong.empty()) return wrong;
      return work(rank, oob.rank());
    });
  }

  const std::uint64_t seed = test_seed();
  const testing::ScopedTrace trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
  const Shape shape = GetParam();
  Process process{shape.ranks};
};

// One step: posted in its order, with a wait in the midst where this rank draws one. How many of its calls ran in a
// group, or why it is wrong.
std::string run_step(PostingRank& rank, int ranks, bool may_wait, int& fused) {
  Grouping& fusion = *grouping_of(rank.communicator);
  std::vector<std::unique_ptr<PostedOperation>> posted;
  for (std::size_t call = 0; call < step_counts.size(); ++call) {
    posted.push_back(rank.prepare_sum(rank.communicator, step_counts[call], call, dense_layout()));
    PostedOperation& operation = *posted.back();
    fusion.enlist(operation);
    const auto key = reinterpret_cast<RequestKey>(&operation);
    fusion.note_request(key, operation);
    rank.post(operation);
    fusion.note_posted();
    rank.compute();
    if (!may_wait || rank.random() % 4 != 0) continue;
    AwaitedCalls::note_wait_for(key);
    if (rank.wait_for(operation) != 0) return "failed";
  }
  for (std::size_t call = 0; call < posted.size(); ++call) {
    AwaitedCalls::note_wait_for(reinterpret_cast<RequestKey>(posted[call].get()));
    if (rank.wait_for(*posted[call]) != 0) return "failed";
    Fusion::note_found_complete(*posted[call]);
    if (std::string wrong = wrong_sum(*posted[call], ranks, call); !wrong.empty()) return wrong;
    if (posted[call]->membership.plan != nullptr) ++fused;
  }
  return {};
}

TEST_P(FusionOf, GroupsWhatAllRanksHavePosted) {
  plan();
  EXPECT_EQ(run([&](PostingRank& rank, int) -> std::string {
              for (int step = 0; step < 3; ++step) {
                int fused = 0;
                if (std::string wrong = run_step(rank, shape.ranks, false, fused); !wrong.empty()) return wrong;
                if (fused != 5) return std::to_string(fused) + " calls ran in groups, expected 5";
              }
              return {};
            }),
            "");
}

// A turn that took what had arrived before the rest of the group was posted sees a program that waits: for all of it.
TEST_P(FusionOf, GroupsWhatIsPostedBetweenArrivalAndWait) {
  plan();
  EXPECT_EQ(run([&](PostingRank& rank, int) -> std::string {
              Grouping& fusion = *grouping_of(rank.communicator);
              std::vector<std::unique_ptr<PostedOperation>> posted;
              for (std::size_t call = 0; call < 3; ++call) {
                posted.push_back(rank.prepare_sum(rank.communicator, step_counts[call], call, dense_layout()));
                PostedOperation& operation = *posted.back();
                fusion.enlist(operation);
                fusion.note_request(reinterpret_cast<RequestKey>(&operation), operation);
                rank.post(operation);
                fusion.note_posted();
                if (call != 0) continue;
                AwaitedCalls::note_wait_for(reinterpret_cast<RequestKey>(&operation));
                fusion.turn(rank.communicator.operations, false);
              }
              for (std::size_t call = 0; call < posted.size(); ++call) {
                if (rank.wait_for(*posted[call]) != 0) return "failed";
                if (std::string wrong = wrong_sum(*posted[call], shape.ranks, call); !wrong.empty()) return wrong;
                if (posted[call]->membership.plan == nullptr) return "call " + std::to_string(call) + " ran by itself";
              }
              return {};
            }),
            "");
}

// Who waits for a call in the midst of a group gets it, and all ranks run the group's calls alike.
TEST_P(FusionOf, GroupsNothingThatSomebodyWaitsFor) {
  plan();
  std::vector<int> fused(static_cast<std::size_t>(shape.ranks));
  EXPECT_EQ(run([&](PostingRank& rank, int number) -> std::string {
              for (int step = 0; step < 12; ++step) {
                int& own = fused[static_cast<std::size_t>(number)];
                if (std::string wrong = run_step(rank, shape.ranks, true, own); !wrong.empty()) return wrong;
              }
              return {};
            }),
            "");
  for (const int one : fused) EXPECT_EQ(one, fused.front());
  EXPECT_LT(fused.front(), 12 * 5);  // somebody waited
}

// PLAIT_OVERLAP=auto: whatever it learns of such a step, results are right.
TEST_P(FusionOf, LearnsWithoutHarm) {
  process.learn_overlap();
  EXPECT_EQ(run([&](PostingRank& rank, int) -> std::string {
              int fused = 0;
              for (int step = 0; step < 60; ++step)
                if (std::string wrong = run_step(rank, shape.ranks, step % 5 == 0, fused); !wrong.empty()) return wrong;
              return {};
            }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Few, FusionOf, testing::Values(Shape{2, 1}, Shape{2, 2}, Shape{3, 2}, Shape{8, 2}), name_of);
INSTANTIATE_TEST_SUITE_P(Many, FusionOf, testing::Values(Shape{32, 8}), name_of);

}  // namespace
}  // namespace plait::runtime
