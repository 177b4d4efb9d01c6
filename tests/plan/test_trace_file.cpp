// What `plait trace` reads, by its content; where its tasks lie in time; and that no file ends the process.
#include "plan/step/trace_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"
#include "plan/step/chakra_file.h"
#include "plan/step/chrome_file.h"
#include "tests/plan/step_texts.h"

namespace plait::plan::step {
namespace {

constexpr const char* bare_step = R"({"plait_step": 1, "name": "bare", "tasks": [
  {"name": "swap", "collective": "alltoall", "bytes": 64},
  {"name": "forward", "seconds": 2, "after_previous": ["sum"]},
  {"name": "top", "seconds": 1, "after": ["swap", "forward"]},
  {"name": "sum", "collective": "allreduce", "bytes": 8, "after": ["top"]},
  {"name": "rest", "seconds": 4}]})";

TEST(TraceFile, RecordedCallsLieWhereTheyWereMade) {
  const Result<Trace> trace = parse_trace(recording_text(), 0);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->ranks, (std::vector<int>{4, 2}));
  const std::vector<TaskSpan> spans = spans_of(*trace);
  const std::vector<std::pair<double, double>> expected = {
      {0, 0.001}, {0.001, 0.004}, {0.001, 0.002}, {0.008, 0.01}, {0.01, 0.012}};
  ASSERT_EQ(spans.size(), expected.size());
  for (std::size_t task = 0; task < spans.size(); ++task) {
    EXPECT_NEAR(spans[task].begin, expected[task].first, 1e-12) << task;
    EXPECT_NEAR(spans[task].end, expected[task].second, 1e-12) << task;
    EXPECT_FALSE(spans[task].ends_by_wait);
  }
}

TEST(TraceFile, OperationsOfAStepReachToWhatWaitsForThem) {
  const Result<Trace> trace = parse_trace(bare_step, 0);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  const std::vector<TaskSpan> spans = spans_of(*trace);
  const std::vector<std::pair<double, double>> expected = {{0, 2}, {0, 2}, {2, 3}, {3, 7}, {3, 7}};
  for (std::size_t task = 0; task < spans.size(); ++task) {
    EXPECT_EQ(std::pair(spans[task].begin, spans[task].end), expected[task]) << task;
    EXPECT_EQ(spans[task].ends_by_wait, trace->step.tasks[task].collective.has_value());
  }
}

TEST(TraceFile, IsKnownByItsContent) {
  EXPECT_TRUE(parse_trace(foreign_chakra_text(), 4).ok());
  const auto message = [](std::string_view text) { return parse_trace(text, 0).status().message(); };
  EXPECT_NE(message("[{}]{").find("Chakra"), std::string::npos);
  EXPECT_NE(message("").find("expected JSON"), std::string::npos);
  EXPECT_NE(message(R"({"plait_step": 2, "name": "x", "tasks": []})").find("plait_step: expected 1"),
            std::string::npos);
  EXPECT_NE(message(R"({"plait_recording": 1})").find("no step"), std::string::npos);
  std::string text = recording_text();
  text.replace(text.find("0.001"), 5, "\"no\" ");
  EXPECT_NE(message(text).find("calls_of_step[0].submit"), std::string::npos) << message(text);
  text = recording_text();
  text.replace(text.find(R"("ranks": 4)"), 10, R"("ranks": 0)");
  EXPECT_NE(message(text).find("communicators[0].ranks"), std::string::npos) << message(text);
  text = bare_step;
  text.replace(text.find("4}]"), 1, "1e300");
  EXPECT_NE(message(text).find("1e9 seconds"), std::string::npos) << message(text);
}

// ---- Files that are broken ----

std::string number_near(std::mt19937_64& random) {
  const std::vector<std::string> numbers = {
      "0",  "-1", "1e308", "18446744073709551615", "\"18446744073709551616\"", "null", "1", "4", "7", "1e-320",
      "[]", "{}", "\"0\""};
  return numbers[random() % numbers.size()];
}

std::string broken_text(std::string text, std::mt19937_64& random) {
  for (std::uint64_t times = 1 + random() % 3; times > 0 && !text.empty(); --times) {
    const std::size_t place = random() % text.size(), length = 1 + random() % std::min<std::size_t>(40, text.size());
    switch (random() % 5) {
      case 0:
        text[place] = static_cast<char>(random());
        break;
      case 1:
        text.erase(place, length);
        break;
      case 2:
        text.insert(random() % text.size(), text.substr(place, length));
        break;
      case 3:
        text.resize(place);
        break;
      default: {  // a number becomes another one
        const std::size_t begin = text.find_first_of("0123456789", place);
        if (begin == std::string::npos) break;
        text.replace(begin, text.find_first_not_of("0123456789.", begin) - begin, number_near(random));
      }
    }
  }
  return text;
}

// Dependencies come back once each.
Step without_repeats(Step step) {
  for (Task& task : step.tasks) {
    std::vector<std::string> once;
    for (const std::string& name : task.after)
      if (std::find(once.begin(), once.end(), name) == once.end()) once.push_back(name);
    task.after = once;
  }
  return step;
}

// What is read can be written, and comes back.
void expect_whole(const Trace& trace) {
  const Result<Step> step = parse_step(step_json(trace.step));
  ASSERT_TRUE(step.ok()) << step.status().message();
  for (const TaskSpan& span : spans_of(trace)) ASSERT_TRUE(span.begin >= 0 && span.begin <= span.end);
  ASSERT_TRUE(Json::parse(chrome_text(trace, spans_of(trace))).is_object());
  const Result<std::string> text = chakra_text(trace, 4);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const Result<Trace> again = parse_trace(*text, 0);
  ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << *text;
  ASSERT_EQ(step_json(again->step), step_json(without_repeats(trace.step)));
}

TEST(TraceFile, NothingThatIsBrokenEndsTheProcess) {
  const int given = testing::UnitTest::GetInstance()->random_seed();
  const std::uint64_t seed = given != 0 ? static_cast<std::uint64_t>(given) : std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed) + " (--gtest_random_seed)");
  std::mt19937_64 random(seed);
  const std::vector<std::string> texts = {bare_step, recording_text(), foreign_chakra_text(),
                                          *chakra_text(told_trace(), 4)};
  int read = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string text = broken_text(texts[random() % texts.size()], random);
    const Result<Trace> trace = parse_trace(text, 4);
    if (!trace.ok()) {
      ASSERT_EQ(trace.status().code(), Code::invalid) << text;
      ASSERT_FALSE(trace.status().message().empty()) << text;
      continue;
    }
    ++read;
    expect_whole(*trace);
    ASSERT_FALSE(HasFatalFailure()) << text;
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace plait::plan::step
