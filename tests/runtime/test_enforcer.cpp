// Calls that are kept to a schedule, by ranks in one process that wait when their seeds say so, make other calls now
// and then, and all get what they asked for.
#include "runtime/enforcer/enforcer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/call/blocking.h"
#include "runtime/enforcer/schedule_counts.h"
#include "tests/runtime/posting.h"

namespace plait::runtime {
namespace {

using plan::step::ScheduledOperation;
using plan::step::ScheduledPiece;
using plan::step::StepSchedule;

std::vector<ScheduledOperation> three_operations() {
  std::vector<ScheduledOperation> operations(3);
  operations[0] = {.name = "a", .bytes = 80};
  operations[1] = {.name = "b", .bytes = 80, .blocking = true};
  operations[2] = {.name = "c", .bytes = 16};
  return operations;
}

int number_of(const std::optional<MatchedCall>& call) { return call.has_value() ? static_cast<int>(call->number) : -1; }

TEST(CallMatcher, FollowsTheStepOverAndOver) {
  CallMatcher matcher(three_operations());
  const auto next = [&](std::size_t bytes, bool blocking) {
    return number_of(matcher.next(Collective::allreduce, bytes, blocking));
  };
  EXPECT_EQ(next(24, false), -1);
  for (int iteration = 1; iteration < 4; ++iteration) {
    EXPECT_EQ(next(80, false), 3 * iteration);
    EXPECT_EQ(next(80, true), 3 * iteration + 1);
    EXPECT_EQ(next(16, false), 3 * iteration + 2);
  }
}

TEST(CallMatcher, LooksForTheFirstOperationOnceItIsLeft) {
  CallMatcher matcher(three_operations());
  const auto next = [&](std::size_t bytes, bool blocking) {
    return matcher.next(Collective::allreduce, bytes, blocking);
  };
  EXPECT_EQ(next(80, false)->epoch, 1u);
  EXPECT_FALSE(next(16, false).has_value());  // instead of the second
  EXPECT_FALSE(matcher.following());
  EXPECT_FALSE(next(80, true).has_value());
  EXPECT_EQ(next(80, false)->number, 6u);
  EXPECT_EQ(next(80, false)->number, 9u);  // instead of the second, and the first itself
  EXPECT_EQ(next(80, true)->epoch, 4u - 1u);
  matcher.leave();
  EXPECT_FALSE(next(16, false).has_value());
  EXPECT_FALSE(matcher.next(Collective::bcast, 80, false).has_value());
}

// ---- Whole ----

const char* const rewritings[] = {"[]", "[segment:2]", "[ring]", "[segment:2,ring]", "[segment:3]"};
constexpr int pieces_of[] = {1, 2, 2, 4, 3};

// Operations of some sizes, cut and ordered at random over two channels.
StepSchedule draw_schedule(const Shape& shape, std::mt19937_64& random) {
  StepSchedule schedule{.step = "drawn", .ranks = shape.ranks};
  schedule.channels = {{.name = "0", .order = {}}, {.name = "1", .order = {}}};
  const std::size_t operations = 2 + random() % 5;
  std::vector<std::vector<int>> left;
  for (std::size_t operation = 0; operation < operations; ++operation) {
    const std::size_t rewriting = random() % std::size(rewritings);
    schedule.operations.push_back({.name = std::to_string(operation),
                                   .collective = Collective::allreduce,
                                   .bytes = 8 * (1 + random() % 3000),
                                   .blocking = random() % 5 == 0,
                                   .plan = rewritings[rewriting],
                                   .pieces = pieces_of[rewriting]});
  }
  // Each piece of an operation after those before it, else in any order.
  std::vector<int> next(operations, 0);
  std::vector<ScheduledPiece> order;
  for (;;) {
    std::vector<int> open;
    for (std::size_t operation = 0; operation < operations; ++operation)
      if (next[operation] < schedule.operations[operation].pieces) open.push_back(static_cast<int>(operation));
    if (open.empty()) break;
    const int operation = open[random() % open.size()];
    order.push_back({.operation = operation, .piece = next[static_cast<std::size_t>(operation)]++});
  }
  // All of an operation's pieces are as far ahead.
  std::vector<int> ahead(operations, 0);
  for (int& one : ahead) one = random() % 4 == 0 ? 1 : 0;
  for (ScheduledPiece& place : order) {
    place.ahead = ahead[static_cast<std::size_t>(place.operation)];
    const auto where = random() % 3;
    if (where != 1) schedule.channels[0].order.push_back(place);
    if (where != 0) schedule.channels[1].order.push_back(place);
  }
  return schedule;
}

class EnforcedOn : public testing::TestWithParam<Shape> {
 protected:
  const std::uint64_t seed = test_seed();
  const testing::ScopedTrace trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
};

// One rank of a program with such a step.
class Program {
 public:
  Program(PostingRank& rank, const Shape& shape, const StepSchedule& schedule)
      : rank_(rank), ranks_(shape.ranks), schedule_(schedule) {}

  // `most_waits`: of 16 calls, after which the rank waits for one that it holds.
  std::string iterate(int waits) {
    for (const ScheduledOperation& operation : schedule_.operations)
      if (std::string wrong = call(operation.bytes / 8, operation.blocking, waits); !wrong.empty()) return wrong;
    return {};
  }
  std::string call(std::size_t count, bool blocking, int waits) {
    const std::uint64_t salt = ++salt_;
    auto operation = rank_.prepare_sum(rank_.communicator, count, salt, dense_layout());
    if (blocking) {
      const Outcome outcome = accelerate(rank_.communicator, operation->request, 0);
      if (!outcome.is_done() || outcome.code() != 0) return "a blocking call failed";
      return wrong_sum(*operation, ranks_, salt);
    }
    Grouping& grouping = *rank_.communicator.grouping;
    grouping.enlist(*operation);
    if (operation->membership.enlisted)
      grouping.note_request(reinterpret_cast<RequestKey>(operation.get()), *operation);
    rank_.post(*operation);
    held_.push_back({std::move(operation), salt});
    rank_.compute();
    return static_cast<int>(rank_.random() % 16) < waits ? wait_for(rank_.random() % held_.size()) : "";
  }
  std::string wait_for_all() {
    while (!held_.empty())
      if (std::string wrong = wait_for(rank_.random() % held_.size()); !wrong.empty()) return wrong;
    return {};
  }
  int enforced() const { return enforced_; }

 private:
  struct Held {
    std::unique_ptr<PostedOperation> operation;
    std::uint64_t salt;
  };
  std::string wait_for(std::size_t index) {
    const Held one = std::move(held_[index]);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    AwaitedCalls::note_wait_for(reinterpret_cast<RequestKey>(one.operation.get()));
    if (rank_.wait_for(*one.operation) != 0) return "a call failed";
    if (one.operation->membership.plan != nullptr) ++enforced_;
    return wrong_sum(*one.operation, ranks_, one.salt);
  }

  PostingRank& rank_;
  const int ranks_;
  const StepSchedule& schedule_;
  std::uint64_t salt_ = 0;
  std::vector<Held> held_;
  int enforced_ = 0;
};

// Who waits for nothing before the end of a step.
TEST_P(EnforcedOn, RunsAllCallsByTheSchedule) {
  const Shape shape = GetParam();
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 2);
  StepSchedule schedule{.step = "s", .ranks = shape.ranks};
  for (const char* name : {"a", "b", "c"})
    schedule.operations.push_back({.name = name, .bytes = 8000, .plan = "[segment:2,ring]", .pieces = 4});
  schedule.channels = {{.name = "0", .order = {{2, 0}, {2, 1}, {0, 0}, {1, 0}, {1, 1}, {0, 1}}},
                       {.name = "1", .order = {{2, 2}, {0, 2}, {2, 3}, {0, 3}, {1, 2}, {1, 3}}}};
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    PostingRank rank(job, oob.rank(), shape, seed);
    if (std::string wrong = rank.connect(rank.communicator); !wrong.empty()) return wrong;
    if (Status kept = enforce(rank.communicator, schedule, plan::step::CallOrder::posted); !kept.ok())
      return kept.message();
    Program program(rank, shape, schedule);
    for (int step = 0; step < 10; ++step) {
      if (std::string wrong = program.iterate(0); !wrong.empty()) return wrong;
      if (std::string wrong = program.wait_for_all(); !wrong.empty()) return wrong;
    }
    return program.enforced() == 30 ? "" : std::to_string(program.enforced()) + " calls by the schedule, expected 30";
  }),
            "");
}

// Waits at random on each rank, other calls at random on all.
TEST_P(EnforcedOn, LeavesTheScheduleOnAllRanksAlike) {
  const Shape shape = GetParam();
  const char* more = std::getenv("PLAIT_TEST_STEPS");
  const int steps = more != nullptr ? std::atoi(more) : 20;
  Process process(shape.ranks);
  ScheduleCounts::instance().start("drawn", 0);
  const auto counted = [](const char* what) { return ScheduleCounts::instance().facts()[what].get<int>(); };
  const int enforced_before = counted("enforced"), early_before = counted("early"), others = counted("other_calls");
  int drawn = 0;
  for (std::uint64_t number = 0; drawn < 4; ++number) {
    std::mt19937_64 job_random(seed + 1000 * number);
    const StepSchedule schedule = draw_schedule(shape, job_random);
    InProcessJob job(shape.ranks);
    job.bring_messages(seed, 2);
    std::vector<int> enforced(static_cast<std::size_t>(shape.ranks));
    bool refused = false;
    EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
      PostingRank rank(job, oob.rank(), shape, seed + number);
      std::mt19937_64 all(seed + number);
      if (std::string wrong = rank.connect(rank.communicator); !wrong.empty()) return wrong;
      if (Status kept = enforce(rank.communicator, schedule, plan::step::CallOrder::posted); !kept.ok()) {
        if (oob.rank() == 0) refused = true;
        return kept.code() == Code::invalid ? "" : kept.message();
      }
      Program program(rank, shape, schedule);
      for (int step = 0; step < steps; ++step) {
        const int waits = static_cast<int>(all() % 4);
        if (std::string wrong = program.iterate(waits); !wrong.empty()) return wrong;
        if (all() % 3 == 0)
          if (std::string wrong = program.call(1 + all() % 500, all() % 2 == 0, waits); !wrong.empty()) return wrong;
        if (all() % 2 == 0)
          if (std::string wrong = program.wait_for_all(); !wrong.empty()) return wrong;
      }
      if (std::string wrong = program.wait_for_all(); !wrong.empty()) return wrong;
      enforced[static_cast<std::size_t>(oob.rank())] = program.enforced();
      return {};
    }),
              "")
        << "schedule " << number;
    if (HasFailure()) return;
    drawn += refused ? 0 : 1;
    for (const int one : enforced) EXPECT_EQ(one, enforced.front());
  }
  EXPECT_GT(counted("enforced"), enforced_before);
  EXPECT_GT(counted("early"), early_before);
  EXPECT_GT(counted("other_calls"), others);
}

// ---- Schedules of the job's own ----

// One that is there once it was asked for so often.
class GivenSource final : public ScheduleSource {
 public:
  GivenSource(StepSchedule schedule, int asked) : schedule_(std::move(schedule)), left_(asked) {}
  State state() const override { return left_-- > 0 ? State::working : state_; }
  const StepSchedule& schedule() const override { return schedule_; }
  const std::string& reason() const override { return reason_; }
  void begin_again(double) override {}  // the same once more
  void give_up() { state_ = State::without; }

 private:
  StepSchedule schedule_;
  const std::string reason_ = "nothing to gain";
  mutable int left_;
  State state_ = State::written;
};

StepSchedule two_operations(const Shape& shape) {
  StepSchedule schedule{.step = "own", .ranks = shape.ranks, .seconds = 1};
  schedule.operations = {{.name = "a", .bytes = 800, .plan = "[segment:2]", .pieces = 2},
                         {.name = "b", .bytes = 4000, .plan = "[]"}};
  schedule.channels = {{.name = "network", .order = {{0, 0}, {1, 0}, {0, 1}}}};
  return schedule;
}

// What became of it: so many calls ran by the schedule on each rank, the same on all of them.
struct Became {
  std::string wrong;
  int enforced = 0;
};

using Preparing = std::function<ScheduleControl::Prepare(int rank, ScheduleControl::Prepare usual)>;

// `rounds`: at most, until the schedule is there: the thread that prepares it may have to wait for a processor for
// longer than all calls of a round take.
Became run_with_own(const Shape& shape, std::uint64_t seed, bool gives_up, const Preparing& preparing,
                    const std::function<bool(int rank, int step, PostingRank&)>& ends, int rounds = 1) {
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 2);
  const StepSchedule schedule = two_operations(shape);
  std::vector<int> enforced(static_cast<std::size_t>(shape.ranks));
  Became became;
  became.wrong = job.run([&](Oob& oob) -> std::string {
    PostingRank rank(job, oob.rank(), shape, seed);
    std::mt19937_64 all(seed);
    if (std::string wrong = rank.connect(rank.communicator); !wrong.empty()) return wrong;
    std::unique_ptr<GivenSource> source;
    if (oob.rank() == 0) source = std::make_unique<GivenSource>(schedule, 3);
    if (gives_up && source != nullptr) source->give_up();
    const Status kept =
        enforce_own(rank.communicator, std::move(source), preparing(oob.rank(), usual_prepare(rank.communicator)));
    if (!kept.ok()) return kept.message();
    Program program(rank, shape, schedule);
    constexpr int steps_of_a_round = 200;
    for (int step = 0; step < rounds * steps_of_a_round; ++step) {
      if (step > 0 && step % steps_of_a_round == 0) {
        if (std::string wrong = program.wait_for_all(); !wrong.empty()) return wrong;
        if (program.enforced() > 0) break;  // the same on all ranks
      }
      if (ends(oob.rank(), step, rank)) return {};
      if (std::string wrong = program.iterate(static_cast<int>(all() % 3)); !wrong.empty()) return wrong;
      if (all() % 16 == 0)
        if (std::string wrong = program.call(1 + all() % 500, all() % 2 == 0, 1); !wrong.empty()) return wrong;
      if (all() % 2 == 0)
        if (std::string wrong = program.wait_for_all(); !wrong.empty()) return wrong;
    }
    if (std::string wrong = program.wait_for_all(); !wrong.empty()) return wrong;
    enforced[static_cast<std::size_t>(oob.rank())] = program.enforced();
    return {};
  });
  for (const int one : enforced) EXPECT_EQ(one, enforced.front());
  became.enforced = enforced.front();
  return became;
}

bool never(int, int, PostingRank&) { return false; }
ScheduleControl::Prepare as_usual(int, ScheduleControl::Prepare usual) { return usual; }

TEST_P(EnforcedOn, ComesToAScheduleOfItsOwn) {
  const Became became = run_with_own(GetParam(), seed, false, as_usual, never, 50);
  EXPECT_EQ(became.wrong, "");
  EXPECT_GT(became.enforced, 0);
}

TEST_P(EnforcedOn, WaitsForARankThatIsSlowToPrepare) {
  const int slow = GetParam().ranks - 1;
  const auto preparing = [&](int rank, const ScheduleControl::Prepare& usual) -> ScheduleControl::Prepare {
    return [=](const StepSchedule& schedule) {
      if (rank == slow) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return usual(schedule);
    };
  };
  const Became became = run_with_own(GetParam(), seed, false, preparing, never);
  EXPECT_EQ(became.wrong, "");
}

TEST_P(EnforcedOn, KeepsToNoneThatARankCannotPrepare) {
  const int unable = GetParam().ranks - 1;
  const auto preparing = [&](int rank, const ScheduleControl::Prepare& usual) -> ScheduleControl::Prepare {
    return [=](const StepSchedule& schedule) -> Result<std::unique_ptr<KnownSchedule>> {
      if (rank == unable) return Status(Code::internal, "no memory");
      return usual(schedule);
    };
  };
  const Became became = run_with_own(GetParam(), seed, false, preparing, never);
  EXPECT_EQ(became.wrong, "");
  EXPECT_EQ(became.enforced, 0);
}

TEST_P(EnforcedOn, KeepsToNoneWhereThereIsNothingToGain) {
  const Became became = run_with_own(GetParam(), seed, true, as_usual, never);
  EXPECT_EQ(became.wrong, "");
  EXPECT_EQ(became.enforced, 0);
}

// Whatever the ranks are about then: nobody waits for it for ever.
TEST_P(EnforcedOn, FailsWithARankThatFails) {
  for (const int fatal : {0, 12, 30, 150}) {
    const int failing = GetParam().ranks - 1;
    const auto ends = [&](int rank, int step, PostingRank& own) {
      if (rank != failing || step != fatal) return false;
      own.progress.leave_out(own.communicator, 5);
      return true;
    };
    const Became became = run_with_own(GetParam(), seed + static_cast<std::uint64_t>(fatal), false, as_usual, ends);
    EXPECT_NE(became.wrong, "") << fatal;
  }
}

INSTANTIATE_TEST_SUITE_P(Few, EnforcedOn, testing::Values(Shape{2, 1}, Shape{2, 2}, Shape{3, 2}, Shape{8, 2}), name_of);

}  // namespace
}  // namespace plait::runtime
