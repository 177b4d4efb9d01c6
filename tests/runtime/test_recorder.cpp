// The folding of calls into a program's step, and the file of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "plan/step/step_file.h"
#include "runtime/recorder/recorder.h"
#include "runtime/recorder/repeats.h"
#include "runtime/recorder/step_folder.h"

namespace plait::runtime {
namespace {

constexpr std::uint64_t us = 1000;

// A program whose clock goes by what it does.
class Program {
 public:
  explicit Program(StepFolder& folder) : folder_(folder) {}
  std::uint64_t call(std::uint32_t kind, std::uint64_t bytes = 64) {
    const std::uint64_t begin = now_;
    return folder_.add_call(kind, bytes, {begin, now_ += 2 * us});
  }
  void compute(std::uint64_t ns) { now_ += ns; }
  void wait(std::uint64_t call) {
    const std::uint64_t begin = now_;
    now_ += 5 * us;
    folder_.add_wait(call, {begin, now_}, 9 * us);
  }

 private:
  StepFolder& folder_;
  std::uint64_t now_ = 1;
};

TEST(Repeats, FindsTheShortestPeriodAndWhereItBegins) {
  const std::vector<std::uint64_t> sequence = {9, 8, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 2};
  const Repeat repeat = repeat_at_end(sequence, 3, 8);
  EXPECT_EQ(repeat.length, 3u);
  EXPECT_EQ(repeat.first, 2u);
  EXPECT_EQ(repeat_at_end(std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}, 3, 3).length, 0u);
}

TEST(StepFolder, FindsTheStepBehindAPrelude) {
  StepFolder folder;
  Program program(folder);
  for (std::uint32_t i = 0; i < 23; ++i) program.call(100 + i, i);
  for (int step = 0; step < 1000; ++step) {
    const std::uint64_t first = program.call(0), second = program.call(1, 128);
    program.compute(50 * us);
    program.wait(first);
    program.wait(second);
    program.call(2);
  }
  folder.finish();
  const FoldedStep* step = folder.step();
  ASSERT_NE(step, nullptr);
  ASSERT_EQ(step->calls.size(), 3u);
  EXPECT_EQ(folder.calls(), 3023u);
  EXPECT_GE(folder.folded_calls(), 2990u);
  EXPECT_EQ(step->likeness, Likeness::sizes_and_waits);
  const auto last = std::ranges::find(step->calls, 2u, &FoldedCall::kind);
  ASSERT_NE(last, step->calls.end());
  ASSERT_EQ(last->waits.size(), 2u);
  EXPECT_EQ(step->calls[last->waits[0].call].kind, 0u);
  EXPECT_EQ(step->calls[last->waits[1].call].kind, 1u);
  EXPECT_EQ(last->waits[0].computed.mean(), 50.0 * us);
  EXPECT_EQ(last->waits[0].waited.mean(), 5.0 * us);
  EXPECT_EQ(step->calls[last->waits[0].call].took.mean(), 9.0 * us);
}

// The loop within is no step: it covers less than half of what the outer one repeats.
TEST(StepFolder, TakesTheOuterLoop) {
  StepFolder folder;
  Program program(folder);
  for (int step = 0; step < 200; ++step) {
    for (int i = 0; i < 8; ++i) program.call(0);
    program.call(1);
  }
  folder.finish();
  ASSERT_NE(folder.step(), nullptr);
  EXPECT_EQ(folder.step()->calls.size(), 9u);
}

TEST(StepFolder, SizesMayChange) {
  StepFolder folder;
  Program program(folder);
  for (std::uint64_t step = 0; step < 300; ++step) program.call(0, step * step + 1), program.call(1, 8);
  folder.finish();
  const FoldedStep* step = folder.step();
  ASSERT_NE(step, nullptr);
  ASSERT_EQ(step->calls.size(), 2u);
  EXPECT_NE(step->likeness, Likeness::sizes_and_waits);
  const auto changing = std::ranges::find(step->calls, 0u, &FoldedCall::kind);
  EXPECT_LT(changing->bytes.least, changing->bytes.most);
}

TEST(StepFolder, MeetsTheStepAgain) {
  StepFolder folder;
  Program program(folder);
  for (int step = 0; step < 1000; ++step) {
    program.call(0), program.call(1), program.call(2);
    if (step % 100 == 99) program.call(7);
  }
  folder.finish();
  ASSERT_NE(folder.step(), nullptr);
  EXPECT_EQ(folder.step()->calls.size(), 3u);
  EXPECT_GE(folder.step()->times, 950u);
}

// Without marks the period would be one call.
TEST(StepFolder, MarksSayWhatAStepIs) {
  StepFolder folder;
  Program program(folder);
  for (int i = 0; i < 5; ++i) program.call(9);
  folder.add_mark();
  for (int step = 0; step < 100; ++step) {
    for (int i = 0; i < 4; ++i) program.call(0);
    folder.add_mark();
  }
  folder.finish();
  ASSERT_NE(folder.step(), nullptr);
  EXPECT_EQ(folder.step()->calls.size(), 4u);
  EXPECT_EQ(folder.step()->times, 100u);
  EXPECT_TRUE(folder.marked());
}

TEST(StepFolder, AWaitInTheNextStepIsOfThePrevious) {
  StepFolder folder;
  Program program(folder);
  std::uint64_t posted = 0;
  for (int step = 0; step < 100; ++step) {
    if (step > 0) program.wait(posted);
    posted = program.call(0);
    folder.add_mark();
  }
  folder.finish();
  ASSERT_NE(folder.step(), nullptr);
  ASSERT_EQ(folder.step()->calls.size(), 1u);
  ASSERT_EQ(folder.step()->calls[0].waits.size(), 1u);
  EXPECT_TRUE(folder.step()->calls[0].waits[0].of_previous);
}

TEST(StepFolder, MemoryIsBoundedWhereNothingRepeats) {
  StepFolder folder;
  Program program(folder);
  std::uint64_t state = 1;
  std::size_t most = 0;
  for (int i = 0; i < 300'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    program.wait(program.call(static_cast<std::uint32_t>(state >> 40) % 1000, state >> 50));
    if (i % 1000 == 0) most = std::max(most, folder.bytes());
  }
  EXPECT_LT(most, std::size_t{32} << 20);
  EXPECT_EQ(folder.calls(), 300'000u);
}

// ---- The file ----

TEST(Recorder, WritesAStepThatIsReadAgain) {
  Recorder recorder(0);
  const int world = recorder.communicator({0, 1, 2, 3}), half = recorder.communicator({0, 2});
  EXPECT_EQ(recorder.communicator({0, 1, 2, 3}), world);
  std::uint64_t now = 1;
  for (int step = 0; step < 100; ++step) {
    recorder.add_posted({.collective = Collective::alltoall, .form = Form::nonblocking, .communicator = half}, 4096,
                        {now, now + us}, 77);
    now += 1000 * us;
    recorder.note_complete(77, now - 400 * us);
    recorder.add_wait(77, {now, now + us});
    now += 200 * us;
    recorder.add_call({.collective = Collective::allreduce, .communicator = world, .type = "MPI_INT", .op = "sum"}, 64,
                      {now, now + 10 * us});
    now += 20 * us;
  }
  const std::string text = recorder.finish("program");
  const auto step = plan::step::parse_step(text);
  ASSERT_TRUE(step.ok()) << step.status().message();
  const auto task = [&](Collective collective) {
    return *std::ranges::find_if(step->tasks, [&](const auto& one) { return one.collective == collective; });
  };
  const auto exchange = task(Collective::alltoall), sum = task(Collective::allreduce);
  EXPECT_FALSE(exchange.blocking);
  EXPECT_EQ(exchange.communicator, half);
  EXPECT_EQ(exchange.bytes, 4096u);
  EXPECT_TRUE(sum.blocking);
  EXPECT_EQ(sum.op, "sum");
  // What the program computes between the wait and the sum follows the exchange.
  const auto before = std::ranges::find_if(step->tasks, [&](const auto& one) { return one.name == sum.after.front(); });
  ASSERT_NE(before, step->tasks.end());
  const auto follows = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, exchange.name) != names.end();
  };
  EXPECT_TRUE(follows(before->after) || follows(before->after_previous));
  const Json json = Json::parse(text);
  for (const Json& call : json["calls_of_step"])
    if (call["collective"] == "alltoall") {
      EXPECT_NEAR(call["complete"]["mean"].get<double>(), 600e-6, 2e-6);
    }
}

// It runs once what was posted before on its communicator has, in its step and in the one before.
TEST(Recorder, ACallThatBlocksIsAfterWhatWasPostedBefore) {
  Recorder recorder(0);
  const int world = recorder.communicator({0, 1}), other = recorder.communicator({1, 0});
  std::uint64_t now = 1;
  const auto post = [&](Collective collective, int communicator, std::uint64_t key) {
    recorder.add_posted({.collective = collective, .form = Form::nonblocking, .communicator = communicator}, 64,
                        {now, now + us}, key);
    now += 10 * us;
  };
  for (int step = 0; step < 100; ++step) {
    post(Collective::bcast, world, 1);
    post(Collective::reduce, other, 2);
    recorder.add_call({.collective = Collective::allreduce, .communicator = world}, 64, {now, now + us});
    now += 10 * us;
    post(Collective::alltoall, world, 3);
    for (const std::uint64_t key : {1, 2}) recorder.add_wait(key, {now, now + us});
  }
  const auto step = plan::step::parse_step(recorder.finish("program"));
  ASSERT_TRUE(step.ok()) << step.status().message();
  const auto task = [&](Collective collective) {
    return *std::ranges::find_if(step->tasks, [&](const auto& one) { return one.collective == collective; });
  };
  // Where in the program's loop the step begins is the recorder's choice.
  const auto sum = task(Collective::allreduce);
  const auto is_after = [&](Collective collective) {
    const auto named = [&](const auto& names) {
      return std::ranges::find(names, task(collective).name) != names.end();
    };
    return named(sum.after) || named(sum.after_previous);
  };
  EXPECT_TRUE(is_after(Collective::bcast));
  EXPECT_TRUE(is_after(Collective::alltoall));
  EXPECT_FALSE(is_after(Collective::reduce));
}

// Its start, a wait of 5 us after 100 us, and a sum of 1 us.
Json recorded_with_persistent(Collective collective) {
  Recorder recorder(0);
  std::uint64_t now = 1;
  recorder.add_persistent({.collective = collective, .form = Form::persistent}, 512, 9);
  recorder.add_start(8, now);  // which nobody made
  for (int step = 0; step < 50; ++step) {
    recorder.add_start(9, now);
    now += 100 * us;
    recorder.note_complete(9, now - 40 * us);
    recorder.add_wait(9, {now, now + 5 * us});
    now += 10 * us;
    recorder.add_call({.collective = Collective::allreduce}, 64, {now, now + us});
    now += 10 * us;
  }
  return Json::parse(recorder.finish("program"));
}

// A persistent collective is recorded at each of its starts, and not when it is made.
TEST(Recorder, PersistentCollectivesAreRecordedByTheirStarts) {
  const Json json = recorded_with_persistent(Collective::allgather);
  EXPECT_EQ(json["calls"], 100);
  EXPECT_EQ(json["unwaited"], 0);
  ASSERT_EQ(json["calls_of_step"].size(), 2u);
  for (const Json& call : json["calls_of_step"]) {
    if (call["collective"] != "allgather") continue;
    EXPECT_TRUE(call["persistent"]);
    EXPECT_EQ(call["bytes"]["mean"], 512);
    EXPECT_NEAR(call["complete"]["mean"].get<double>(), 60e-6, 1e-6);
  }
  int started = 0;
  for (const Json& task : json["step"]["tasks"]) {
    const bool persistent = task.value("collective", "") == "allgather";
    started += persistent ? 1 : 0;
    EXPECT_EQ(task.value("persistent", false), persistent);
  }
  EXPECT_EQ(started, 1);
}

// In all the step's time but for the sum's.
TEST(Recorder, WhatNoScheduleKeepsIsComputationAsLongAsItWasWaitedFor) {
  const Json json = recorded_with_persistent(Collective::scan);
  double computed = 0;
  for (const Json& task : json["step"]["tasks"]) {
    EXPECT_NE(task.value("collective", ""), "scan");
    computed += task.value("seconds", 0.0);
  }
  EXPECT_NEAR(computed, 119e-6, 2e-6);
}

// A call that blocks follows what was posted before it, but not what was started.
TEST(Recorder, StartsAreNotInTheOrderOfPosts) {
  Recorder recorder(0);
  std::uint64_t now = 1;
  recorder.add_persistent({.collective = Collective::allgather, .form = Form::persistent}, 512, 9);
  for (int step = 0; step < 50; ++step) {
    recorder.add_start(9, now);
    recorder.add_posted({.collective = Collective::alltoall, .form = Form::nonblocking}, 64, {now, now + us}, 7);
    now += 10 * us;
    recorder.add_call({.collective = Collective::allreduce}, 64, {now, now + us});
    now += 10 * us;
    recorder.add_wait(7, {now, now + us});
    recorder.add_wait(9, {now + us, now + 2 * us});
    now += 10 * us;
  }
  const Json json = Json::parse(recorder.finish("program"));
  std::string started, posted;
  for (const Json& task : json["step"]["tasks"]) {
    const std::string collective = task.value("collective", "");
    if (collective == "allgather") started = task["name"];
    if (collective == "alltoall") posted = task["name"];
    if (collective != "allreduce") continue;
    const std::string after = task["after"].dump();
    EXPECT_NE(after.find('"' + posted + '"'), std::string::npos) << after;
    EXPECT_EQ(after.find('"' + started + '"'), std::string::npos) << after;
  }
}

TEST(Recorder, AFreedRequestsKeyMayComeAgain) {
  Recorder recorder(0);
  recorder.add_persistent({.collective = Collective::allgather, .form = Form::persistent}, 512, 9);
  recorder.add_start(9, 10 * us);
  recorder.rename(9, 11);
  recorder.add_wait(11, {20 * us, 21 * us});
  recorder.add_start(11, 30 * us);
  recorder.add_wait(11, {40 * us, 41 * us});
  recorder.forget(11);
  recorder.add_start(11, 50 * us);  // another one's
  const Json json = Json::parse(recorder.finish("program"));
  EXPECT_EQ(json["calls"], 2);
  EXPECT_EQ(json["unwaited"], 0);
}

TEST(Recorder, WithoutAStepTheReaderSaysSo) {
  Recorder recorder(0);
  recorder.add_call({.collective = Collective::barrier}, 0, {1, 2});
  EXPECT_FALSE(plan::step::parse_step(recorder.finish("program")).ok());
}

}  // namespace
}  // namespace plait::runtime
