// The file of a step's joint plan: what it says, and what is said of one that is wrong.
#include "plan/step/schedule_file.h"

#include <gtest/gtest.h>

#include <string>

namespace plait::plan::step {
namespace {

const std::string operations =
    R"("operations": [{"name": "a", "collective": "alltoall", "bytes": 4096, "plan": "[spline:2]", "pieces": 2},
      {"name": "b", "collective": "allreduce", "bytes": 64, "plan": "[]", "pieces": 1, "blocking": true}])";

std::string file(const std::string& order) {
  return R"({"plait_schedule": 1, "step": "s", "ranks": 8, "predicted_seconds": {"joint": 0.5, "as_issued": 1},)" +
         operations + R"(, "channels": [{"name": "rail 0", "order": [)" + order + "]}]}";
}

std::string place(const std::string& operation, int piece) {
  return R"({"operation": ")" + operation + R"(", "piece": )" + std::to_string(piece) + R"(, "steps_ahead": 0})";
}

TEST(ScheduleFile, SaysWhatRunsInWhichOrder) {
  const Result<StepSchedule> schedule = parse_schedule(file(place("a", 1) + "," + place("b", 0) + "," + place("a", 0)));
  ASSERT_TRUE(schedule.ok()) << schedule.status().message();
  EXPECT_EQ(schedule->ranks, 8);
  EXPECT_EQ(schedule->seconds, 0.5);
  ASSERT_EQ(schedule->operations.size(), 2u);
  EXPECT_EQ(schedule->operations[0].collective, Collective::alltoall);
  EXPECT_TRUE(schedule->operations[1].blocking);
  ASSERT_EQ(schedule->channels.size(), 1u);
  EXPECT_EQ(schedule->channels[0].order.front(), (ScheduledPiece{.operation = 0, .piece = 1, .ahead = 0}));
}

TEST(ScheduleFile, NamesWhatIsWrong) {
  const auto message = [](const std::string& order) { return parse_schedule(file(order)).status().message(); };
  EXPECT_NE(message(place("a", 0) + "," + place("a", 1)).find("piece 0 of \"b\" stands on no channel"),
            std::string::npos);
  EXPECT_NE(message(place("a", 0)).find("piece 1 of \"a\" stands on no channel"), std::string::npos);
  EXPECT_NE(message(place("a", 0) + "," + place("a", 0)).find("twice"), std::string::npos);
  EXPECT_NE(message(place("c", 0)).find("channels[0].order[0].operation"), std::string::npos);
  EXPECT_NE(message(place("a", 2)).find("channels[0].order[0].piece"), std::string::npos);
  EXPECT_FALSE(parse_schedule("{}").ok());
  EXPECT_FALSE(parse_schedule("[").ok());
}

}  // namespace
}  // namespace plait::plan::step
