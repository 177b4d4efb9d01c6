// The picture of plait explain: its lanes, its limit, and the document.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "plan/choose/breakdown.h"
#include "topo/shape.h"
#include "tuner/picture/plan_picture.h"
#include "tuner/picture/timeline_svg.h"
#include "tuner/text/plan_limit.h"

namespace plait::tuner {
namespace {

Call call_of(Collective collective, std::size_t bytes) {
  return {.collective = collective, .count = bytes, .element_bytes = bytes > 0 ? 1u : 0u};
}

// Of the boxes of one row, each begins when the one before it has ended.
void expect_no_overlap(const TimelineLane& lane, const std::string& what) {
  std::map<int, std::vector<const TimelineBox*>> rows;
  for (const TimelineBox& box : lane.boxes) rows[box.row].push_back(&box);
  for (auto& [row, boxes] : rows) {
    std::sort(boxes.begin(), boxes.end(), [](const auto* a, const auto* b) { return a->begin < b->begin; });
    for (std::size_t i = 1; i < boxes.size(); ++i)
      EXPECT_GE(boxes[i]->begin, boxes[i - 1]->end * (1 - 2e-9)) << what << " " << lane.name << " row " << row;
  }
}

double end_of(const TimelinePanel& panel) {
  double end = 0;
  for (const TimelineLane& lane : panel.lanes)
    for (const TimelineBox& box : lane.boxes) end = std::max(end, box.end);
  return end;
}

// Where the limit holds for the model as well (plan_limit.h).
bool modelled(Collective collective, const std::string& shape, const Machine& machine) {
  if (shape.find(',') != shape.npos) return false;
  return collective != Collective::alltoall || (shape.find('/') == shape.npos && !machine.levels.front().half_duplex);
}

// Shapes, machines, collectives and sizes: what is drawn ends at the predicted time, no two boxes lie on each other,
// and no plan is faster than the limit.
TEST(TimelinePicture, LanesEndAtThePredictedTimeWithoutOverlaps) {
  Machine rails = default_machine(), one_way = default_machine(), nvlink = *machine_named("a100");
  rails.levels.front().rails = 2;
  one_way.levels.front().half_duplex = true;
  int drawn = 0;
  for (const Machine& machine : {default_machine(), rails, one_way, nvlink})
    for (const char* text : {"4x2", "1x8", "3,2,1", "2x2x4", "2/4x2", "4x1*8", "6x4", "2x1"}) {
      const auto shape = parse_shape(text);
      ASSERT_TRUE(shape.ok()) << text;
      const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine, .siblings = shape->siblings};
      for (int index = 0; index < planned_collectives; ++index) {
        const auto collective = static_cast<Collective>(index);
        for (const std::size_t bytes : {std::size_t{8}, std::size_t{100000}, std::size_t{16} << 20}) {
          const Call call = call_of(collective, collective == Collective::barrier ? 0 : bytes);
          const std::string what = std::string(text) + " " + std::string(name(collective)) + " " +
                                   std::to_string(bytes) + " on " + machine.name;
          const PlanLimit limit = plan_limit(call, context);
          EXPECT_GT(limit.seconds, 0) << what;
          for (const Candidate& candidate : candidates(call, context, 3)) {
            const double seconds = break_down(candidate.name, call, context)->seconds;
            const double least = modelled(collective, text, machine) ? limit.seconds : 0;
            EXPECT_LE(least, seconds * (1 + 1e-9)) << what << " " << candidate.name << ": " << limit.because;
            const auto timeline = plan_timeline(candidate.name, call, context);
            ASSERT_TRUE(timeline.ok());
            const TimelinePanel panel = predicted_panel(*timeline, shape->hierarchy);
            EXPECT_NEAR(end_of(panel) / seconds, 1, 1e-9) << what << " " << candidate.name;
            for (const TimelineLane& lane : panel.lanes) expect_no_overlap(lane, what + " " + candidate.name);
            ++drawn;
          }
        }
      }
    }
  EXPECT_GT(drawn, 1000);
}

// The bytes that docs/bench.md has for the busiest port.
TEST(PlanLimit, IsThatOfBench) {
  const Machine machine = default_machine();
  const auto shape = parse_shape("4x2"), one_of_two = parse_shape("4x2*2");
  const double port = machine.levels.front().port_seconds_per_byte, bytes = 16 << 20;
  const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine};
  const auto limit = [&](Collective collective) {
    return plan_limit(call_of(collective, std::size_t{16} << 20), context).seconds / port / bytes;
  };
  EXPECT_DOUBLE_EQ(limit(Collective::allreduce), 1.5);
  EXPECT_DOUBLE_EQ(limit(Collective::bcast), 1);
  EXPECT_DOUBLE_EQ(limit(Collective::allgather), 6);
  EXPECT_DOUBLE_EQ(limit(Collective::reduce_scatter_block), 6);
  EXPECT_DOUBLE_EQ(limit(Collective::reduce_scatter), 0.75);
  EXPECT_DOUBLE_EQ(limit(Collective::alltoall), 12);
  const CandidateContext half{.hierarchy = one_of_two->hierarchy, .machine = machine, .siblings = one_of_two->siblings};
  EXPECT_DOUBLE_EQ(plan_limit(call_of(Collective::allreduce, std::size_t{16} << 20), half).seconds / port / bytes, 3);
  EXPECT_EQ(plan_limit(call_of(Collective::allreduce, 8), context).because, "the way of one message");
}

TEST(TimelinePicture, ShowsSomeRanksOfLargeJobs) {
  const auto small = parse_shape("4x2"), wide = parse_shape("16x8"), deep = parse_shape("1x2x32"),
             single = parse_shape("64x1"), long_first = parse_shape("2x40");
  EXPECT_EQ(shown_ranks(small->hierarchy, 12), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(shown_ranks(wide->hierarchy, 12), (std::vector<int>{0, 1, 2, 3, 4, 5, 8, 16, 24, 32, 40, 48}));
  EXPECT_EQ(shown_ranks(deep->hierarchy, 12), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 32}));
  EXPECT_EQ(shown_ranks(single->hierarchy, 12), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(shown_ranks(long_first->hierarchy, 12), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 40}));
}

TEST(TimelinePicture, SaysThatRanksAreLeftOut) {
  const auto shape = parse_shape("16x8");
  const Machine machine = default_machine();
  const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine};
  const auto timeline = plan_timeline("RS.2 AR.1 AG.2", call_of(Collective::allreduce, 1 << 20), context);
  const TimelinePanel panel = predicted_panel(*timeline, shape->hierarchy);
  EXPECT_EQ(panel.note,
            "12 of 128 ranks are shown: some of node 0, and the first of other nodes; the others do the same as their "
            "like.");
}

TEST(TimelinePicture, ShowsStepsThatCannotBeToldApartAsOne) {
  const auto shape = parse_shape("1x2");
  MeasuredCall call{"WORLD", "AR.1(ring)", 1, 3, {{5, 0, 1, {}}, {7, 0, 1, {}}}};
  for (int i = 0; i < 100; ++i) call.ranks[0].steps.push_back({i * 1e-4, i * 1e-4 + 5e-5, "send", "shm", 8, 1});
  call.ranks[0].steps.push_back({0.5, 0.9, "recv", "shm", 8, 1});
  call.ranks[0].steps.push_back({0.6, 1.0, "recv", "ucx", 8, 1});
  const TimelinePanel panel = measured_panel(call, shape->hierarchy, 1);
  ASSERT_EQ(panel.lanes.size(), 2u);
  EXPECT_EQ(panel.lanes[0].name, "rank 5");
  ASSERT_EQ(panel.lanes[0].boxes.size(), 3u);
  EXPECT_EQ(panel.lanes[0].boxes[0].title.substr(0, 11), "100 steps, ");
  EXPECT_NE(panel.lanes[0].boxes[1].row, panel.lanes[0].boxes[2].row);
  EXPECT_NE(panel.lanes[0].boxes[1].ink.hue, panel.lanes[0].boxes[2].ink.hue);
  expect_no_overlap(panel.lanes[0], "measured");
}

TEST(PackRows, TakesAsFewAsThereAreAtOnce) {
  std::vector<TimelineBox> boxes;
  for (int i = 0; i < 9; ++i) boxes.push_back({i * 1.0, i + 2.5, {0, i % 3}, 0, "", ""});
  pack_rows(boxes);
  int rows = 0;
  for (const TimelineBox& box : boxes) rows = std::max(rows, box.row + 1);
  EXPECT_EQ(rows, 3);
  TimelineLane lane{"lane", boxes};
  expect_no_overlap(lane, "three at once");
}

// ---- The document ----

TimelinePicture hostile_picture() {
  TimelinePicture picture{"<&\"title\x01", "RS.2 <plan>", "a & b", {{{0, 0}, "AR<1>"}}, 1e-3, "limit <&>", {}};
  TimelineLane lane{"rank <0>", {{0, 5e-4, {0, 0}, 0, "title </rect>", "<&"}, {5e-4, 2e-3, {-1, 7}, 0, "", "long"}}};
  picture.panels.push_back({"predicted <", "note &", {lane, lane, {"empty", {}}}});
  return picture;
}

// Each tag that opens is closed, in order; what is text has no markup of its own.
void expect_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != svg.npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    ASSERT_NE(end, svg.npos);
    const std::string tag = svg.substr(at + 1, end - at - 1);
    ASSERT_EQ(tag.find('<'), tag.npos) << tag;
    if (tag.front() == '?' || tag.back() == '/') continue;
    const std::string name = tag.substr(tag.front() == '/', tag.find(' ') - (tag.front() == '/'));
    if (tag.front() != '/') {
      open.push_back(name);
    } else {
      ASSERT_FALSE(open.empty()) << name;
      EXPECT_EQ(open.back(), name);
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(TimelineSvg, IsWellFormedWhateverTheTexts) {
  const std::string svg = timeline_svg(hostile_picture());
  expect_well_formed(svg);
  EXPECT_NE(svg.find("&lt;&amp;&quot;title?"), std::string::npos);
  EXPECT_EQ(svg.find("</rect>,"), std::string::npos);
  expect_well_formed(timeline_svg({}));
}

TEST(TimelineSvg, DrawsLanesOfTheSameBoxesOnce) {
  const std::string svg = timeline_svg(hostile_picture());
  EXPECT_NE(svg.find("<g id=\"p0l0\">"), std::string::npos);
  EXPECT_EQ(svg.find("<g id=\"p0l1\">"), std::string::npos);
  EXPECT_NE(svg.find("<use href=\"#p0l0\" y=\"20\"/>"), std::string::npos) << svg;
}

TEST(TimelineSvg, HasAnAxisAndALimit) {
  TimelinePicture picture = hostile_picture();
  const std::string svg = timeline_svg(picture);
  for (const char* words : {"time, ms", ">0.5</text>", ">2</text>", "limit &lt;&amp;&gt;", "class=\"k\""})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  picture.limit = 0;
  EXPECT_EQ(timeline_svg(picture).find("class=\"k\""), std::string::npos);
}

}  // namespace
}  // namespace plait::tuner
