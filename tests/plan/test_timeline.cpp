// When each part of a plan runs by the cost model.
#include <gtest/gtest.h>

#include "plan/choose/breakdown.h"
#include "plan/choose/timeline.h"
#include "topo/shape.h"

namespace plait::plan {
namespace {

Call call_of(Collective collective, std::size_t bytes) {
  return {.collective = collective, .count = bytes, .element_bytes = bytes > 0 ? 1u : 0u};
}

CommunicatorShape shape_of(const char* text) {
  auto shape = parse_shape(text);
  EXPECT_TRUE(shape.ok()) << text;
  return *shape;
}

Result<PlanTimeline> timeline_on(const char* shape, const std::string& plan) {
  const CommunicatorShape parsed = shape_of(shape);
  const Machine machine = default_machine();
  return plan_timeline(plan, call_of(Collective::allreduce, 64), {.hierarchy = parsed.hierarchy, .machine = machine});
}

// Every candidate of every planned collective: the last chunk leaves the last step at the predicted time, and no step
// of a chunk begins before the one before it ends.
TEST(PlanTimeline, EndsAtThePredictedTime) {
  Machine slow = default_machine(), starting = default_machine();
  slow.levels.front().rails = 2;
  slow.levels.front().port_seconds_per_byte = 1 / 31.25e6;
  slow.ranks_per_core = 4;
  starting.start_seconds_per_byte = 1e-10;
  int pipelines = 0;
  for (const Machine& machine : {default_machine(), slow, starting})
    for (const char* text : {"4x2", "1x8", "3,2,1", "2x2x4", "2/4x2", "4x1*8"}) {
      const CommunicatorShape shape = shape_of(text);
      const CandidateContext context{.hierarchy = shape.hierarchy, .machine = machine, .siblings = shape.siblings};
      for (int index = 0; index < planned_collectives; ++index) {
        const auto collective = static_cast<Collective>(index);
        for (const std::size_t bytes : {std::size_t{8}, std::size_t{5000}, std::size_t{4} << 20}) {
          const Call call = call_of(collective, collective == Collective::barrier ? 0 : bytes);
          for (const Candidate& candidate : candidates(call, context, 3)) {
            const auto breakdown = break_down(candidate.name, call, context);
            const auto timeline = plan_timeline(candidate.name, call, context);
            ASSERT_TRUE(breakdown.ok() && timeline.ok()) << candidate.name;
            ASSERT_FALSE(timeline->steps.empty()) << candidate.name;
            const TimelineStep& last = timeline->steps.back();
            const double end = last.begin + last.seconds + (timeline->chunks - 1) * timeline->period;
            EXPECT_NEAR(end / breakdown->seconds, 1, 1e-9) << text << " " << candidate.name << " " << bytes;
            EXPECT_EQ(timeline->seconds, breakdown->seconds) << candidate.name;
            EXPECT_GE(timeline->period, 0) << candidate.name;
            pipelines += timeline->chunks > 1 ? 1 : 0;
            double before = timeline->start;
            for (const TimelineStep& step : timeline->steps) {
              EXPECT_DOUBLE_EQ(step.begin, before) << candidate.name;
              EXPECT_GE(step.seconds, 0) << candidate.name;
              EXPECT_LE(step.port, step.seconds * (1 + 1e-12)) << candidate.name;
              EXPECT_EQ(step.takes_part.size(), static_cast<std::size_t>(shape.hierarchy.ranks()));
              before += step.seconds;
            }
          }
        }
      }
    }
  EXPECT_GT(pipelines, 100);
}

TEST(PlanTimeline, OnlyLeadersWorkWhereTheOthersHoldNothing) {
  const auto timeline = timeline_on("4x2", "RD.2(shared) AR.1(rd) BC.2(shared) x1");
  ASSERT_TRUE(timeline.ok()) << timeline.status().message();
  ASSERT_EQ(timeline->steps.size(), 3u);
  EXPECT_EQ(timeline->steps[0].name, "RD.2(shared)");
  EXPECT_EQ(timeline->steps[0].takes_part, std::vector<bool>(8, true));
  EXPECT_EQ(timeline->steps[1].takes_part, (std::vector<bool>{true, false, true, false, true, false, true, false}));
  EXPECT_EQ(timeline->steps[2].takes_part, std::vector<bool>(8, true));
  EXPECT_EQ(timeline->levels, (std::vector<std::string>{"node", "rank"}));
  EXPECT_EQ(timeline->steps[1].level, 0);
  EXPECT_GT(timeline->steps[1].port, 0);
  EXPECT_EQ(timeline->steps[0].port, 0);
}

// Node 2 has one rank, which has nobody to reduce with.
TEST(PlanTimeline, ARankAloneOnItsNodeHasNoPartner) {
  const auto timeline = timeline_on("3,2,1", "RD.2(binomial) AR.1(ring) BC.2(binomial) x1");
  ASSERT_TRUE(timeline.ok()) << timeline.status().message();
  EXPECT_EQ(timeline->steps[0].takes_part, (std::vector<bool>{true, true, true, true, true, false}));
  EXPECT_EQ(timeline->steps[1].takes_part, (std::vector<bool>{true, false, false, true, false, true}));
}

TEST(PlanTimeline, ChunksOnRailsOccupyThemLonger) {
  const CommunicatorShape shape = shape_of("4x1");
  Machine machine = default_machine();
  machine.levels.front().rails = 2;
  const CandidateContext context{.hierarchy = shape.hierarchy, .machine = machine, .rails = 2};
  const Call call = call_of(Collective::allreduce, std::size_t{16} << 20);
  const auto together = plan_timeline("AR.1(ring) x4", call, context);
  const auto dealt = plan_timeline("AR.1(ring) x4 @0,1", call, context);
  ASSERT_TRUE(together.ok() && dealt.ok());
  EXPECT_EQ(together->rails, 2);
  EXPECT_TRUE(together->chunk_rails.empty());
  EXPECT_EQ(dealt->chunk_rails, (std::vector<std::int8_t>{0, 1}));
  EXPECT_NEAR(dealt->steps[0].port / together->steps[0].port, 2, 0.1);
  EXPECT_GT(dealt->seconds, together->seconds);
}

TEST(PlanTimeline, RefusesWhatIsNoPlanOfTheCall) {
  EXPECT_FALSE(timeline_on("4x2", "AG.1").ok());
  EXPECT_FALSE(timeline_on("4x2", "host").ok());
}

}  // namespace
}  // namespace plait::plan
