// Where channels stand in a step's schedule: the order of their pieces over iterations, and what is left out of it.
#include "plan/step/channel_lines.h"

#include <gtest/gtest.h>

#include <vector>

#include "plan/step/piece_classes.h"

namespace plait::plan::step {
namespace {

StepSchedule schedule_of(std::vector<int> pieces, std::vector<std::vector<ScheduledPiece>> orders) {
  StepSchedule schedule{.step = "s", .ranks = 2};
  for (const int count : pieces)
    schedule.operations.push_back(
        {.name = "o" + std::to_string(schedule.operations.size()), .bytes = 8, .pieces = count});
  for (auto& order : orders)
    schedule.channels.push_back({.name = "c" + std::to_string(schedule.channels.size()), .order = std::move(order)});
  return schedule;
}

std::vector<std::uint64_t> next_calls(ChannelLines& lines, int channel, int count) {
  std::vector<std::uint64_t> calls;
  for (int i = 0; i < count; ++i) {
    const auto head = lines.head(channel);
    if (!head.has_value()) break;
    calls.push_back(head->call);
    lines.pass(channel);
  }
  return calls;
}

using Calls = std::vector<std::uint64_t>;

TEST(ChannelLines, RunTheirOrderOverAndOver) {
  ChannelLines lines(schedule_of({1, 2}, {{{1, 0}, {0, 0}, {1, 1}}}));
  lines.begin(3);
  EXPECT_EQ(next_calls(lines, 0, 6), (Calls{7, 6, 7, 9, 8, 9}));
}

// What is ahead runs in an earlier round than the rest of its iteration, and nothing of iterations before the first.
TEST(ChannelLines, RunSomePiecesAhead) {
  ChannelLines lines(schedule_of({1, 1}, {{{0, 0, 1}, {1, 0, 0}}}));
  EXPECT_EQ(next_calls(lines, 0, 6), (Calls{0, 2, 1, 4, 3, 6}));
}

TEST(ChannelLines, EndBeforeACallThatIsLeft) {
  ChannelLines lines(schedule_of({1, 1}, {{{0, 0, 1}, {1, 0, 0}}}));
  EXPECT_EQ(next_calls(lines, 0, 2), (Calls{0, 2}));
  lines.end_before(4);
  EXPECT_EQ(next_calls(lines, 0, 9), (Calls{1, 3}));
  lines.begin(7);
  EXPECT_EQ(next_calls(lines, 0, 2), (Calls{14, 16}));
  lines.end_before(14 + 1);
  EXPECT_EQ(next_calls(lines, 0, 2), Calls{});
}

using Classes = std::vector<std::vector<int>>;

TEST(PieceClasses, AreOneWhereTheScheduleKeepsTheProgramsOrder) {
  EXPECT_EQ(piece_classes(schedule_of({2, 1}, {{{0, 0}, {0, 1}, {1, 0}}})), (Classes{{0, 0}, {0}}));
}

TEST(PieceClasses, PartWhatOvertakesFromWhatItOvertakes) {
  EXPECT_EQ(piece_classes(schedule_of({2, 1}, {{{0, 0}, {1, 0}, {0, 1}}})), (Classes{{0, 0}, {1}}));
  // Each before the one that is called before it.
  EXPECT_EQ(piece_classes(schedule_of({1, 1, 1}, {{{2, 0}, {1, 0}, {0, 0}}})), (Classes{{0}, {1}, {2}}));
  // Of the next iteration before this one's.
  EXPECT_EQ(piece_classes(schedule_of({1, 1}, {{{0, 0, 1}, {1, 0, 0}}})), (Classes{{0}, {1}}));
  // Only one piece of an operation is ahead.
  EXPECT_EQ(piece_classes(schedule_of({2}, {{{0, 0, 1}, {0, 1, 0}}})), (Classes{{0, 1}}));
  // On another channel nothing is overtaken.
  EXPECT_EQ(piece_classes(schedule_of({1, 1}, {{{0, 0}}, {{1, 0}}})), (Classes{{0}, {0}}));
}

TEST(ChannelLines, KnowWhatIsBehindTheirHead) {
  ChannelLines lines(schedule_of({1, 2}, {{{1, 0}, {0, 0}, {1, 1}}}));
  EXPECT_TRUE(lines.behind_head(0, {0, 0}));
  EXPECT_FALSE(lines.behind_head(0, {1, 0}));
  lines.pass(0);
  EXPECT_FALSE(lines.behind_head(0, {0, 0}));
  EXPECT_TRUE(lines.behind_head(0, {1, 1}));
}

TEST(ChannelLines, ListAPieceOnEachOfItsChannels) {
  const ChannelLines lines(schedule_of({2}, {{{0, 0}, {0, 1}}, {{0, 1}}}));
  EXPECT_EQ(lines.channels_of(0, 0), 1u);
  EXPECT_EQ(lines.channels_of(0, 1), 3u);
}

TEST(ChannelOrder, RefusesPiecesThatWaitForEachOther) {
  // Two pieces on both channels, the other way round on each.
  EXPECT_FALSE(check_order(schedule_of({1, 1}, {{{0, 0}, {1, 0}}, {{1, 0}, {0, 0}}}), {{{}}, {{}}}).ok());
  EXPECT_TRUE(check_order(schedule_of({1, 1}, {{{1, 0}, {0, 0}}, {{1, 0}, {0, 0}}}), {{{}}, {{}}}).ok());
  // One that stands before what must be before it.
  const StepSchedule parts = schedule_of({2}, {{{0, 1}, {0, 0}}});
  EXPECT_TRUE(check_order(parts, {{{}, {}}}).ok());
  EXPECT_FALSE(check_order(parts, {{{}, {0}}}).ok());
  // Ahead by rounds: of the next iteration before this one's, which it waits for on the other channel.
  EXPECT_TRUE(check_order(schedule_of({1, 1}, {{{0, 0, 1}, {1, 0}}}), {{{}}, {{}}}).ok());
}

TEST(ScheduleOf, OneCommunicatorAlone) {
  StepSchedule all = schedule_of({1, 2, 1}, {{{1, 0}, {0, 0}, {2, 0}, {1, 1}}});
  all.operations[0].communicator = 1;
  EXPECT_TRUE(has_part(all, 1, CallOrder::posted));
  EXPECT_FALSE(has_part(all, 1, CallOrder::started));
  const StepSchedule own = part_of(all, 0, CallOrder::posted);
  ASSERT_EQ(own.operations.size(), 2u);
  EXPECT_EQ(own.operations[0].name, "o1");
  EXPECT_EQ(own.channels[0].order, (std::vector<ScheduledPiece>{{0, 0}, {1, 0}, {0, 1}}));
}

TEST(ScheduleOf, StartsApartFromPosts) {
  StepSchedule all = schedule_of({1, 2, 1}, {{{1, 0}, {0, 0}, {2, 0}, {1, 1}}});
  all.operations[1].persistent = true;
  const StepSchedule started = part_of(all, 0, CallOrder::started), posted = part_of(all, 0, CallOrder::posted);
  ASSERT_EQ(started.operations.size(), 1u);
  EXPECT_EQ(started.operations[0].name, "o1");
  EXPECT_EQ(started.channels[0].order, (std::vector<ScheduledPiece>{{0, 0}, {0, 1}}));
  ASSERT_EQ(posted.operations.size(), 2u);
  EXPECT_EQ(posted.channels[0].order, (std::vector<ScheduledPiece>{{0, 0}, {1, 0}}));
}

}  // namespace
}  // namespace plait::plan::step
