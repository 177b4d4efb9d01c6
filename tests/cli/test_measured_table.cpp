// What plait tune --measure runs, and what it makes of the times.
#include "tuner/text/measured_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "plan/choose/shape_tuner.h"
#include "tuner/measure/measure_agenda.h"
#include "tuner/text/measured_report.h"

namespace plait::tuner {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

MeasuredSize size_of(std::size_t bytes, std::vector<PlanTime> plans, double host) {
  const std::size_t count = plans.size();
  return {Collective::allreduce, bytes, std::move(plans), count, host};
}

TEST(Agenda, SizesReachBothEndsInStepsOfAtMostThreeOctaves) {
  EXPECT_EQ(measured_sizes({1, 1 << 20}).size(), 8u);
  EXPECT_EQ(measured_sizes({5, 5}), (std::vector<std::size_t>{5}));
  EXPECT_EQ(measured_sizes({5, 7}), (std::vector<std::size_t>{5, 7}));
  for (const SizeSpan span : {SizeSpan{1, 4 << 20}, {7, 100000}, {1000, 1001}, {8, 64}, {3, 1 << 30}}) {
    const std::vector<std::size_t> sizes = measured_sizes(span);
    EXPECT_EQ(sizes.front(), span.least);
    EXPECT_EQ(sizes.back(), span.most);
    for (std::size_t i = 1; i < sizes.size(); ++i) {
      EXPECT_GT(sizes[i], sizes[i - 1]);
      EXPECT_LE(sizes[i], 16 * sizes[i - 1]);
    }
  }
}

TEST(Agenda, HasTheTablesPlanFirstAndEachOnce) {
  const Hierarchy hierarchy = Hierarchy::nodes_of(std::array{2, 2, 2, 2});
  const Machine machine = default_machine();
  const CandidateContext context{.hierarchy = hierarchy, .machine = machine};
  const std::array collectives = {Collective::barrier, Collective::allreduce, Collective::alltoall};
  const auto agenda = make_agenda(collectives, {8, 1 << 20}, context);
  ASSERT_TRUE(agenda.ok()) << agenda.status().message();
  EXPECT_EQ(agenda->front().collective, Collective::barrier);
  EXPECT_EQ(agenda->front().bytes, 0u);
  EXPECT_EQ(std::count_if(agenda->begin(), agenda->end(),
                          [](const AgendaItem& item) { return item.collective == Collective::barrier; }),
            1);
  for (const AgendaItem& item : *agenda) {
    const auto tuned = tune_collective(item.collective, context);
    ASSERT_TRUE(tuned.ok());
    const auto range = std::find_if(tuned->ranges.begin(), tuned->ranges.end(),
                                    [&](const TunedRange& one) { return item.bytes < one.to; });
    EXPECT_EQ(range->plan, item.plans.front());
    // Without a number the planner would choose one.
    for (const std::string& plan : item.plans)
      EXPECT_EQ(plan.find(" x") == plan.npos, item.collective == Collective::alltoall) << plan;
    EXPECT_LE(item.plans.size(), most_measured_plans);
    EXPECT_EQ(std::set(item.plans.begin(), item.plans.end()).size(), item.plans.size());
    EXPECT_GE(item.plans.size(), 2u) << name(item.collective);
  }
}

TEST(Agenda, ComesBackFromItsText) {
  const std::vector<AgendaItem> agenda = {{Collective::barrier, 0, {"AR.1(rd)"}},
                                          {Collective::bcast, 4096, {"BC.1(chain) BC.2(shared) x8", "BC.12(flat)"}}};
  const std::vector<AgendaItem> read = parse_agenda(agenda_text(agenda));
  ASSERT_EQ(read.size(), agenda.size());
  for (std::size_t i = 0; i < agenda.size(); ++i) {
    EXPECT_EQ(read[i].collective, agenda[i].collective);
    EXPECT_EQ(read[i].bytes, agenda[i].bytes);
    EXPECT_EQ(read[i].plans, agenda[i].plans);
  }
}

TEST(MeasuredRanges, NeighboursOfOneBestPlanAreOneRange) {
  const std::vector<MeasuredSize> sizes = {size_of(8, {{"a", 1}, {"b", 2}}, 3), size_of(64, {{"a", 1.5}, {"b", 2}}, 3),
                                           size_of(1024, {{"b", 2}, {"a", 9}}, 5), size_of(16384, {{"b", 20}}, 10)};
  const auto ranges = measured_ranges(sizes, {8, 16384});
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].plan, "a");
  EXPECT_EQ(ranges[0].from, 1u) << "the smallest size stands for all smaller ones";
  EXPECT_EQ(ranges[0].to, 257u) << "the geometric mean of 64 and 1024";
  EXPECT_DOUBLE_EQ(ranges[0].seconds_from, 1);
  EXPECT_DOUBLE_EQ(ranges[0].seconds_to, 1.5);
  EXPECT_DOUBLE_EQ(ranges[0].host_seconds_from, 3);
  EXPECT_DOUBLE_EQ(ranges[2].host_seconds_to, 10);
  EXPECT_EQ(ranges[1].plan, "b");
  EXPECT_EQ(ranges[1].from, ranges[0].to);
  EXPECT_EQ(ranges[2].plan, host_plan);
  EXPECT_EQ(ranges[2].to, 16385u);
  const TuningTable table{"m", {}, {{"1x2", {{Collective::allreduce, ranges}}}}};
  EXPECT_TRUE(parse_table(table_json(table)).ok());
}

TEST(MeasuredRanges, AFewPercentAreNoReasonForAnotherRange) {
  const std::vector<MeasuredSize> sizes = {size_of(64, {{"a", 1}, {"b", 1.3}}, 3),
                                           size_of(512, {{"a", 2.02}, {"b", 2}}, 3),
                                           size_of(4096, {{"a", 3}, {"b", 4}}, 5)};
  const auto ranges = measured_ranges(sizes, {64, 4096});
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].plan, "a");
  EXPECT_EQ(ranges[0].from, 64u) << "nothing is known of smaller sizes";
}

TEST(MeasuredRanges, WithoutAPlanThatRunsTheHostHasIt) {
  const std::vector<MeasuredSize> sizes = {size_of(8, {{"a", never}}, 1)};
  const auto ranges = measured_ranges(sizes, {8, 8});
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].plan, host_plan);
  MeasuredSize barrier{Collective::barrier, 0, {{"a", 1}}, 1, 2};
  const auto without_size = measured_ranges(std::span(&barrier, 1), {1, 8});
  ASSERT_EQ(without_size.size(), 1u);
  EXPECT_EQ(without_size[0].from, 0u);
  EXPECT_EQ(without_size[0].to, 1u);
  EXPECT_TRUE(measured_ranges({}, {1, 8}).empty());
}

TEST(ModelScore, CountsTheFirstChoiceAndTheFirstThree) {
  std::vector<MeasuredSize> sizes = {
      size_of(8, {{"a", 1}, {"b", 2}}, 3),                        // first
      size_of(16, {{"a", 1.01}, {"b", 1}}, 3),                    // nearly first
      size_of(32, {{"a", 4}, {"b", 3}, {"c", 2}, {"d", 5}}, 3),   // one of three
      size_of(64, {{"a", 4}, {"b", 3}, {"c", 3}, {"d", 1}}, 0.5)  // neither, and the host is faster
  };
  sizes[0].plans.push_back({"of the size before", 0.5});  // not the model's
  const ModelScore score = score_model(sizes);
  EXPECT_EQ(score.sizes, 4);
  EXPECT_EQ(score.first, 1);
  EXPECT_EQ(score.first_nearly, 2);
  EXPECT_EQ(score.three, 3);
  EXPECT_EQ(score.three_nearly, 3);
  EXPECT_EQ(score.host, 1);
  EXPECT_DOUBLE_EQ(score.worst_loss, 4);
  ASSERT_NE(score.worst, nullptr);
  EXPECT_EQ(score.worst->bytes, 64u);
  EXPECT_NEAR(score.mean_loss, std::pow(1.01 * 2 * 4, 0.25), 1e-12);
  EXPECT_DOUBLE_EQ(score.usual_worst_loss, 4) << "of four sizes the worst";
  EXPECT_EQ(score_model({}).sizes, 0);
  EXPECT_EQ(score_model({}).usual_worst_loss, 1);
  for (int more = 0; more < 16; ++more) sizes.push_back(size_of(128, {{"a", 1}, {"b", 2}}, 3));
  EXPECT_DOUBLE_EQ(score_model(sizes).usual_worst_loss, 2) << "one of twenty is worse";
}

TEST(MeasuredReport, SaysWhatWasLeftOut) {
  MeasuredReport report{"default", 2, {"1x2", {}}, {}, 1.5};
  report.measured.sizes = {size_of(8, {{"a", 1}, {"b", never}}, 3)};
  report.measured.left_out = {{Collective::bcast, 4096, {"a"}}, {Collective::bcast, 32768, {"a"}}};
  report.shape.collectives = {{Collective::allreduce, measured_ranges(report.measured.sizes, {8, 8})}};
  const std::string text = measured_text(report);
  for (const char* words : {"bcast of 4 KiB and more", "shape 1x2", "3.00x", "at 100 % of 1 size"})
    EXPECT_NE(text.find(words), std::string::npos) << words << " in\n" << text;
  EXPECT_EQ(text.find("32 KiB"), std::string::npos);
}

}  // namespace
}  // namespace plait::tuner
