#include "tl/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "tests/tl/allocations.h"
#include "tests/tl/schedule_builder.h"
#include "tl/memory.h"

namespace plait::tl {
namespace {

constexpr ChannelKind shm = ChannelKind::shm;

// Completes each transfer after a drawn number of glances, in no order; what arrives is the peer's number in each byte.
class FakeChannel final : public Channel {
 public:
  FakeChannel(std::uint32_t seed, int longest_delay) : random_(seed), longest_delay_(longest_delay) {
    waiting_.reserve(1000);
    started.reserve(1000);
  }

  ChannelKind kind() const override { return shm; }
  int active() const override { return static_cast<int>(waiting_.size()); }

  Result<bool> start(Transfer& transfer) override {
    if (fail_start_at-- == 0) return {Code::peer_failed, "start failed"};
    started.push_back(transfer.step);
    const int delay = longest_delay_ == 0 ? 0 : static_cast<int>(random_() % static_cast<unsigned>(longest_delay_));
    if (delay == 0) {
      deliver(transfer);
      return true;
    }
    waiting_.push_back({&transfer, delay});
    return false;
  }

  Result<bool> progress(std::vector<Transfer*>& completed) override {
    if (fail_progress_at-- == 0) return {Code::peer_failed, "progress failed"};
    for (std::size_t i = waiting_.size(); i-- > 0;) {
      if (--waiting_[i].glances > 0) continue;
      deliver(*waiting_[i].transfer);
      completed.push_back(waiting_[i].transfer);
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return !completed.empty();
  }

  void abandon(const Status&) override {
    waiting_.clear();
    ++abandoned;
  }

  std::vector<std::uint32_t> started;
  int fail_start_at = -1, fail_progress_at = -1;
  int abandoned = 0;

 private:
  struct Waiting {
    Transfer* transfer;
    int glances;
  };

  static void deliver(Transfer& transfer) {
    if (transfer.kind == StepKind::send) return;
    const std::vector<std::byte> data(transfer.bytes, static_cast<std::byte>(transfer.peer));
    if (transfer.kind == StepKind::recv)
      copy_in(transfer.memory, 0, data.data(), data.size());
    else
      reduce_in(transfer, 0, data.data(), data.size());
  }

  std::mt19937 random_;
  int longest_delay_;
  std::vector<Waiting> waiting_;
};

void add_bytes(const Reducer&, void* result, const void* left, const void* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    static_cast<unsigned char*>(result)[i] = static_cast<unsigned char>(static_cast<const unsigned char*>(left)[i] +
                                                                        static_cast<const unsigned char*>(right)[i]);
}

Reducer byte_sum() {
  Reducer reducer;
  reducer.apply = add_bytes;
  return reducer;
}

BoundSpan byte_at(Space space, std::uint64_t offset) { return {offset, 1, space}; }

// Steps of all kinds, each waiting for up to three earlier ones; each writes a byte of its own.
BoundSchedule random_schedule(std::mt19937& random, std::uint32_t steps) {
  ScheduleBuilder builder(1);
  for (std::uint32_t k = 0; k < steps; ++k) {
    std::set<std::uint32_t> after;
    for (std::uint32_t i = random() % 4; k > 0 && i > 0; --i) after.insert(random() % k);
    const ScheduleBuilder::Steps earlier(after.begin(), after.end());
    const int peer = 1 + static_cast<int>(random() % 3);
    switch (random() % 5) {
      case 0:
        builder.send(shm, peer, {byte_at(Space::input, 0)}, earlier);
        break;
      case 1:
        builder.recv(shm, peer, {byte_at(Space::output, k)}, earlier);
        break;
      case 2:
        builder.recv_reduce(shm, peer, {byte_at(Space::output, k)}, {byte_at(Space::input, 0)}, false, earlier);
        break;
      case 3:
        builder.copy({byte_at(Space::output, k)}, {byte_at(Space::input, 0)}, earlier);
        break;
      default:
        builder.reduce({byte_at(Space::output, k)}, {byte_at(Space::input, 0)}, {byte_at(Space::input, 0)}, earlier);
    }
  }
  return builder.build();
}

struct CallMemory {
  explicit CallMemory(std::size_t bytes) : input(bytes, std::byte{10}), output(bytes) {
    buffers.base = {input.data(), output.data(), nullptr};
  }
  std::vector<std::byte> input, output;
  Buffers buffers;
};

void expect_order(const BoundSchedule& schedule, const StepTrace& trace, const std::vector<std::uint32_t>& started) {
  std::vector<const StepRecord*> record(schedule.steps.size(), nullptr);
  for (const StepRecord& each : trace.records()) {
    ASSERT_EQ(record[each.step], nullptr) << "step " << each.step << " ran twice";
    record[each.step] = &each;
  }
  for (std::size_t k = 0; k < schedule.steps.size(); ++k) {
    ASSERT_NE(record[k], nullptr) << "step " << k << " did not run";
    const SpanList successors = schedule.steps[k].successors;
    for (std::uint32_t i = 0; i < successors.count; ++i)
      EXPECT_LE(record[k]->end_ns, record[schedule.successors[successors.first + i]]->begin_ns);
  }
  for (const Lane& lane : schedule.lanes) {
    std::vector<std::uint32_t> found;
    const auto begin = schedule.lane_steps.begin() + lane.steps.first, end = begin + lane.steps.count;
    std::copy_if(started.begin(), started.end(), std::back_inserter(found),
                 [&](std::uint32_t step) { return std::find(begin, end, step) != end; });
    EXPECT_TRUE(std::equal(found.begin(), found.end(), begin, end));
  }
}

TEST(Engine, KeepsTheOrderUnderAnyTiming) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::uint32_t steps = 1 + random() % 60;
    const BoundSchedule schedule = random_schedule(random, steps);
    FakeChannel channel(seed, seed % 4 == 0 ? 0 : 20);
    Engine engine(by_kind({&channel}), {});
    CallMemory memory(steps);
    const Reducer reducer = byte_sum();
    StepTrace trace(steps);
    ASSERT_TRUE(engine.run(schedule, memory.buffers, &reducer, &trace).ok());
    expect_order(schedule, trace, channel.started);
    for (std::uint32_t k = 0; k < steps; ++k) {
      const BoundStep& step = schedule.steps[k];
      const int expected = step.kind == StepKind::send          ? 0
                           : step.kind == StepKind::recv        ? step.peer
                           : step.kind == StepKind::recv_reduce ? 10 + step.peer
                           : step.kind == StepKind::copy        ? 10
                                                                : 20;
      EXPECT_EQ(static_cast<int>(memory.output[k]), expected) << "step " << k;
    }
  }
}

TEST(Engine, RepeatedRunsDoNotAllocate) {
  std::mt19937 random(7);
  ScheduleBuilder builder(1);
  for (std::uint32_t k = 0; k < 20; ++k) {
    builder.send(shm, 1, {byte_at(Space::input, 0)});
    builder.copy({byte_at(Space::output, k)}, {byte_at(Space::input, 0)}, {2 * k});
  }
  const BoundSchedule schedule = builder.build();
  FakeChannel channel(7, 5);
  Engine engine(by_kind({&channel}), {});
  CallMemory memory(20);
  ASSERT_TRUE(engine.run(schedule, memory.buffers, nullptr, nullptr).ok());
  const std::size_t before = allocations();
  ASSERT_TRUE(engine.run(schedule, memory.buffers, nullptr, nullptr).ok());
  EXPECT_EQ(allocations(), before);
}

TEST(Engine, LongLocalStepsAreWhole) {
  const std::size_t bytes = 1'000'003;
  CallMemory memory(bytes);
  ScheduleBuilder builder(1);
  const std::uint32_t copied = builder.copy({{0, bytes, Space::output}}, {{0, bytes, Space::input}});
  builder.reduce({{0, bytes, Space::output}}, {{0, bytes, Space::output}}, {{0, bytes, Space::input}}, {copied});
  const BoundSchedule schedule = builder.build();
  Engine engine(Channels(), {});
  const Reducer reducer = byte_sum();
  ASSERT_TRUE(engine.run(schedule, memory.buffers, &reducer, nullptr).ok());
  EXPECT_TRUE(std::all_of(memory.output.begin(), memory.output.end(), [](std::byte b) { return b == std::byte{20}; }));
}

BoundSchedule six_sends() {
  ScheduleBuilder builder(1);
  for (int k = 0; k < 6; ++k) builder.send(shm, 1, {byte_at(Space::input, 0)});
  return builder.build();
}

TEST(Engine, ReturnsTheFirstErrorAndAbandons) {
  const BoundSchedule schedule = six_sends();
  CallMemory memory(1);
  for (const bool at_start : {true, false}) {
    FakeChannel channel(3, 50);
    (at_start ? channel.fail_start_at : channel.fail_progress_at) = 2;
    Engine engine(by_kind({&channel}), {});
    const Status status = engine.run(schedule, memory.buffers, nullptr, nullptr);
    EXPECT_EQ(status.code(), Code::peer_failed);
    EXPECT_EQ(status.message(), at_start ? "start failed" : "progress failed");
    EXPECT_EQ(channel.abandoned, 1);
    EXPECT_TRUE(engine.run(schedule, memory.buffers, nullptr, nullptr).ok()) << "the engine itself is usable";
  }
}

// What a peer that finds its connection closed asks for is on its way by then.
TEST(Engine, TellsTheReasonWhileItsChannelsAreOpen) {
  const BoundSchedule schedule = six_sends();
  CallMemory memory(1);
  for (const bool at_start : {true, false}) {
    FakeChannel channel(3, 50);
    (at_start ? channel.fail_start_at : channel.fail_progress_at) = 2;
    WaitPolicy policy;
    policy.context = &channel;
    policy.agree_on_reason = [](void* context, const Status& cause) noexcept {
      const bool open = static_cast<FakeChannel*>(context)->abandoned == 0;
      return Status(Code::peer_failed, (open ? "open, " : "closed, ") + cause.message());
    };
    Engine engine(by_kind({&channel}), policy);
    const Status status = engine.run(schedule, memory.buffers, nullptr, nullptr);
    EXPECT_EQ(status.message(), at_start ? "open, start failed" : "open, progress failed");
    EXPECT_EQ(channel.abandoned, 1);
  }
}

TEST(Engine, RefusesWhatCannotRun) {
  CallMemory memory(4);
  Engine engine(Channels(), {});
  ScheduleBuilder builder(1);
  builder.send(shm, 1, {byte_at(Space::input, 0)});
  EXPECT_EQ(engine.run(builder.build(), memory.buffers, nullptr, nullptr).code(), Code::internal);

  ScheduleBuilder circular(1);
  circular.copy({byte_at(Space::output, 0)}, {byte_at(Space::input, 0)});
  BoundSchedule schedule = circular.build();
  schedule.steps[0].predecessors = 1;
  EXPECT_EQ(engine.run(schedule, memory.buffers, nullptr, nullptr).code(), Code::internal);
  EXPECT_TRUE(engine.run(BoundSchedule{}, memory.buffers, nullptr, nullptr).ok());
}

TEST(Engine, DrivesTheHostOnlyInLongerWaits) {
  ScheduleBuilder builder(1);
  builder.recv(shm, 1, {byte_at(Space::output, 0)});
  const BoundSchedule schedule = builder.build();
  CallMemory memory(1);
  int calls = 0;
  WaitPolicy policy;
  policy.host_progress = [](void* context) { ++*static_cast<int*>(context); };
  policy.context = &calls;
  for (const bool yield : {false, true}) {
    policy.yield = yield;
    calls = 0;
    FakeChannel quick(1, 20), slow(5, 20'000);
    Engine impatient({&quick, nullptr}, policy);
    ASSERT_TRUE(impatient.run(schedule, memory.buffers, nullptr, nullptr).ok());
    EXPECT_EQ(calls, 0);
    if (yield) continue;
    Engine patient({&slow, nullptr}, policy);
    ASSERT_TRUE(patient.run(schedule, memory.buffers, nullptr, nullptr).ok());
    EXPECT_GT(calls, 0);
  }
}

TEST(WaitStrategy, NapsOnlyAfterMilliseconds) {
  std::optional<WaitStrategy> wait_strategy;
  int glances = 0;
  for (int tries = 0; tries < 5 && glances <= 1000; ++tries) {  // others may have the core for as long
    wait_strategy.emplace(WaitPolicy{});
    const std::uint64_t begin = monotonic_ns();
    for (glances = 0; monotonic_ns() - begin < 30'000'000; ++glances) wait_strategy->wait({}, false);
  }
  EXPECT_GT(glances, 1000);
  std::uint64_t longest = 0;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t before = monotonic_ns();
    wait_strategy->wait({}, false);
    longest = std::max(longest, monotonic_ns() - before);
  }
  EXPECT_GE(longest, 50'000u) << "no nap in a long wait";
}

}  // namespace
}  // namespace plait::tl
