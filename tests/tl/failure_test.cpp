// A rank of a node that fails: the others' waits end with an error that names it, whatever they wait for, and nobody
// touches its memory afterwards.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <thread>

#include "tests/tl/own_time.h"
#include "tests/tl/ranks.h"
#include "tests/tl/schedule_builder.h"
#include "tl/engine.h"
#include "tl/shm/failure_marks.h"
#include "tl/shm/segment_shape.h"

namespace plait::tl {
namespace {

constexpr std::size_t bytes = 20'000;  // more than an area of the smallest control blocks
const std::string broken = "a buffer of rank";

bool contains(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

// One rank, with memory and steps to run.
class Member {
 public:
  Member(SharedSegment segment, const std::vector<ShmPeer>& peers, int rank, ShmChannelOptions options)
      : rank_(rank), ranks_(static_cast<int>(peers.size())) {
    auto made = make_shm_channel(std::move(segment), peers, rank, options);
    if (made.ok()) channel_ = std::move(*made);
  }

  Channel& channel() { return *channel_; }
  const std::byte* output() const { return output_.data(); }

  BoundSchedule collective(ShmCollectiveKind kind) const {
    BoundShmCollective collective{.kind = kind, .self = rank_, .members = {}, .bytes = bytes, .piece_offsets = {}};
    for (int member = 0; member < ranks_; ++member) collective.members.push_back(member);
    ScheduleBuilder builder(4);
    builder.collective(collective, {{0, bytes, Space::input}}, {{0, bytes, Space::output}});
    return builder.build();
  }
  BoundSchedule message(StepKind kind, int peer) const {
    ScheduleBuilder builder(1);
    if (kind == StepKind::send)
      builder.send(ChannelKind::shm, peer, {{0, bytes, Space::input}});
    else
      builder.recv(ChannelKind::shm, peer, {{0, bytes, Space::output}});
    return builder.build();
  }

  Status run(const BoundSchedule& schedule) { return run(schedule, make_reducer(Op::sum, Element::u32)); }
  Status run(const BoundSchedule& schedule, const Reducer& reducer) {
    return engine().run(schedule, {{input_.data(), output_.data(), nullptr}}, &reducer, nullptr);
  }
  Engine& engine() {
    if (engine_ == nullptr) engine_ = std::make_unique<Engine>(by_kind({channel_.get()}), WaitPolicy{.yield = true});
    return *engine_;
  }

 private:
  int rank_, ranks_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::byte> input_ = std::vector<std::byte>(bytes), output_ = std::vector<std::byte>(bytes);
};

// What a rank must have got: not the error of its own, but word of rank `failed`.
std::string told_of(int failed, const std::string& why, const Status& status) {
  if (status.ok()) return "the step succeeded";
  if (status.code() == Code::peer_failed && contains(status, "shm: rank " + std::to_string(failed) + " has failed: ") &&
      contains(status, why))
    return {};
  return status.message();
}

// All memory can be reached, or none that was said to be.
class BreakingBuffers final : public PeerBuffers {
 public:
  explicit BreakingBuffers(bool breaks) : breaks_(breaks) {}
  std::optional<std::uint64_t> name(const std::byte* address, std::size_t) const override {
    return reinterpret_cast<std::uintptr_t>(address);
  }
  std::byte* find(std::size_t, std::uint64_t name, std::size_t) const override {
    return breaks_ ? nullptr : reinterpret_cast<std::byte*>(name);
  }

 private:
  bool breaks_;
};

TEST(NodeFailures, AFailedCopyByTheKernelReachesAll) {
  const int gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  constexpr int ranks = 4, failing = 2;
  for (const ShmCollectiveKind kind :
       {ShmCollectiveKind::all_reduce, ShmCollectiveKind::broadcast, ShmCollectiveKind::reduce}) {
    const auto body = [&](int rank, SharedSegment segment, std::vector<ShmPeer> peers) {
      if (rank == failing) peers[0].process = peers[1].process = gone;
      Member member(std::move(segment), peers, rank, {.single_copy = true, .collective_single_copy_from = 1});
      const BoundSchedule schedule = member.collective(kind);
      const Status first = member.run(schedule), second = member.run(schedule);
      if (second.ok()) return std::string("the step after it succeeded");
      if (rank != failing) return told_of(failing, "process " + std::to_string(gone), first);
      return contains(first, "process " + std::to_string(gone)) ? std::string() : first.message();
    };
    EXPECT_EQ(run_threads(ranks, detail::least_segment_bytes(ranks), body), 0) << plait::plan::name(kind);
  }
}

TEST(NodeFailures, ABufferThatIsNotFoundIsToldToAll) {
  constexpr int ranks = 3, failing = 1;
  const auto body = [&](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) {
    const BreakingBuffers buffers(rank == failing);
    Member member(std::move(segment), peers, rank, {.buffers = &buffers});
    const Status status = member.run(member.collective(ShmCollectiveKind::all_reduce));
    if (rank != failing) return told_of(failing, broken, status);
    return contains(status, broken) ? std::string() : status.message();
  };
  EXPECT_EQ(run_threads(ranks, detail::least_segment_bytes(ranks), body), 0);
}

// Whichever is marked first, and on whichever control block it stands.
TEST(NodeFailures, AReasonCountsForMoreThanHearsay) {
  constexpr int ranks = 3;
  for (const int knowing : {0, 1}) {
    std::atomic<int> marked{0};
    const auto body = [&](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) {
      Member member(std::move(segment), peers, rank, {});
      const int turn = rank == 2 ? 2 : rank == knowing ? 1 : 0;
      while (marked < turn) sched_yield();
      const Status found = member.channel().peer_failure();
      if (turn == 0) member.engine().give_up({Code::peer_left, "tcp: rank 7: it closed the connection"});
      if (turn == 1) member.engine().give_up({Code::peer_failed, "ucx: the link of this rank's own node is lost"});
      ++marked;
      if (turn == 0) return found.ok() ? std::string() : found.message();
      const Code code = turn == 1 ? Code::peer_left : Code::peer_failed;
      const std::string text = turn == 1 ? "shm: rank " + std::to_string(1 - knowing) + " has failed: tcp: rank 7"
                                         : "shm: rank " + std::to_string(knowing) + " has failed: ucx: the link";
      return found.code() == code && contains(found, text) ? std::string() : "found: " + found.message();
    };
    EXPECT_EQ(run_threads(ranks, detail::least_segment_bytes(ranks), body), 0) << knowing;
  }
}

// The rank that failed hears itself from one that passes it on, and is to be the one that says so.
TEST(NodeFailures, TheEchoOfAnOwnFailureIsNobodyElses) {
  constexpr int ranks = 2, failing = 0;
  std::atomic<int> marked{0};
  const auto body = [&](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) {
    Member member(std::move(segment), peers, rank, {});
    while (marked < rank) sched_yield();
    const Status found = member.channel().peer_failure();
    member.engine().give_up(rank == failing ? Status(Code::peer_failed, "ucx: the link of this rank's own node is lost")
                                            : found);
    ++marked;
    if (rank != failing) return found.code() == Code::peer_failed ? std::string() : "not heard: " + found.message();
    while (marked < ranks) sched_yield();
    const Status echo = member.channel().peer_failure();
    return echo.ok() ? std::string() : "its own: " + echo.message();
  };
  EXPECT_EQ(run_threads(ranks, detail::least_segment_bytes(ranks), body), 0);
}

#if !defined(__SANITIZE_THREAD__)  // it does not follow forks of programs with threads
// A rank that gives up although nothing of its own is under way here: the others wait in their rings, at both ends, and
// in a shared-memory collective.
TEST(NodeFailures, WhoeverWaitsForARankThatGaveUpIsTold) {
  constexpr int ranks = 4, failing = 0;
  const auto body = [&](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) {
    Member member(std::move(segment), peers, rank, {});
    if (rank == failing) {
      std::this_thread::sleep_for(std::chrono::milliseconds(rank == failing ? 20 : 0));
      member.engine().give_up({Code::peer_failed, "ucx: rank 9 on node1, rail eth0: it is gone"});
      return std::string();
    }
    const OwnTime time;
    Status status = member.run(rank == 1   ? member.message(StepKind::recv, failing)
                               : rank == 2 ? member.message(StepKind::send, failing)
                                           : member.collective(ShmCollectiveKind::all_reduce));
    for (int more = 0; rank == 2 && status.ok() && more < 1000; ++more)  // until the ring is full
      status = member.run(member.message(StepKind::send, failing));
    if (time.ns() > 2'000'000'000) return std::string("told late");
    return told_of(failing, "rank 9 on node1, rail eth0", status);
  };
  EXPECT_EQ(run_processes(ranks, SharedSegment::default_bytes(ranks), body), 0);
}
#endif

TEST(NodeFailures, TheEndOfAChannelIsNone) {
  constexpr int ranks = 3;
  const auto body = [&](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) {
    std::byte* data = segment.data();
    {
      Member member(std::move(segment), peers, rank, {});
      if (Status status = member.run(member.collective(ShmCollectiveKind::all_reduce)); !status.ok())
        return status.message();
    }
    const detail::ControlShape shape = detail::segment_shape(detail::least_segment_bytes(ranks), ranks).control_block;
    const detail::ControlBlock control_block(data + static_cast<std::size_t>(rank) * shape.bytes(), shape);
    return control_block.control().failure.first_failed == 0 ? std::string() : std::string("a failure is marked");
  };
  EXPECT_EQ(run_threads(ranks, detail::least_segment_bytes(ranks), body), 0);
}

// Two ranks on one segment, for steps of one after the other.
class TwoMembers : public testing::Test {
 protected:
  SharedSegment view() { return SharedSegment::view(segment_.data(), segment_.bytes()); }
  SharedSegment segment_ = std::move(SharedSegment::create(detail::least_segment_bytes(2)).value());
  const std::vector<ShmPeer> peers_ = {{0, getpid()}, {1, getpid()}};
};

struct Reduction {
  std::chrono::milliseconds each{10};
  std::atomic<bool> at_work = false;
  std::atomic<int> calls = 0;
};

// Takes its time.
void reduce_slowly(const Reducer& self, void*, const void*, const void*, std::size_t) {
  auto& reduction = *static_cast<Reduction*>(const_cast<void*>(self.context));
  ++reduction.calls;
  reduction.at_work = true;
  std::this_thread::sleep_for(reduction.each);
  reduction.at_work = false;
}

Reducer slow_reducer(Reduction& reduction) {
  return {.apply = reduce_slowly, .kernel = nullptr, .many = nullptr, .context = &reduction, .element_bytes = 4};
}

// The memory of a rank that has failed may belong to the program again.
TEST_F(TwoMembers, WhoComesLaterLeavesItsMemoryAlone) {
  const BreakingBuffers buffers(false);
  Member first(view(), peers_, 0, {.buffers = &buffers}), second(view(), peers_, 1, {.buffers = &buffers});
  const BoundSchedule schedule = first.collective(ShmCollectiveKind::all_reduce);
  std::vector<std::byte> memory(2 * bytes);
  const Buffers spaces{{memory.data(), memory.data() + bytes, nullptr}};
  Transfer transfer{.kind = StepKind::shm_collective,
                    .bytes = bytes,
                    .element_bytes = 4,
                    .memory = {&schedule.spans[schedule.steps[0].destination.first], 1, &spaces},
                    .operand = {&schedule.spans[schedule.steps[0].source.first], 1, &spaces},
                    .reducer = nullptr,
                    .collective = &schedule.collectives[0],
                    .next = nullptr};
  ASSERT_FALSE(*first.channel().start(transfer));
  first.channel().abandon({Code::unavailable, "out of memory"});
  Reduction reduction;
  const Status status = second.run(second.collective(ShmCollectiveKind::all_reduce), slow_reducer(reduction));
  EXPECT_EQ(told_of(0, "out of memory", status), "");
  EXPECT_EQ(reduction.calls, 0);
}

// Finds nothing, but only once another rank is at work.
class LateBreak final : public PeerBuffers {
 public:
  explicit LateBreak(const std::atomic<bool>& at_work) : at_work_(at_work) {}
  std::optional<std::uint64_t> name(const std::byte* address, std::size_t) const override {
    return reinterpret_cast<std::uintptr_t>(address);
  }
  std::byte* find(std::size_t, std::uint64_t, std::size_t) const override {
    while (!at_work_) sched_yield();
    return nullptr;
  }

 private:
  const std::atomic<bool>& at_work_;
};

// The others that are at work on a rank's memory when it fails end that before it returns, however long it takes.
TEST_F(TwoMembers, WhoIsAtWorkIsWaitedFor) {
  for (const int milliseconds : {10, 400}) {
    segment_ = std::move(SharedSegment::create(detail::least_segment_bytes(2)).value());
    Reduction reduction;
    reduction.each = std::chrono::milliseconds(milliseconds);
    const LateBreak late(reduction.at_work);
    const BreakingBuffers buffers(false);
    Member first(view(), peers_, 0, {.buffers = &late}), second(view(), peers_, 1, {.buffers = &buffers});
    Status told;
    std::thread other(
        [&] { told = second.run(second.collective(ShmCollectiveKind::all_reduce), slow_reducer(reduction)); });
    const Status status = first.run(first.collective(ShmCollectiveKind::all_reduce), slow_reducer(reduction));
    const int calls = reduction.calls;
    EXPECT_FALSE(reduction.at_work);
    EXPECT_TRUE(contains(status, broken)) << status.message();
    other.join();
    EXPECT_EQ(told_of(0, broken, told), "");
    EXPECT_GT(calls, 0);
    EXPECT_EQ(reduction.calls, calls);
  }
}

// Who has not begun its work is not: its program may compute for long before it looks again.
TEST_F(TwoMembers, WhoHasOnlyAnnouncedIsNotWaitedFor) {
  const BreakingBuffers buffers(false), broken_buffers(true);
  Member first(view(), peers_, 0, {.buffers = &broken_buffers}), second(view(), peers_, 1, {.buffers = &buffers});
  const Reducer reducer = make_reducer(Op::sum, Element::u32);
  const BoundSchedule schedule = second.collective(ShmCollectiveKind::all_reduce);
  std::vector<std::byte> memory(2 * bytes);
  const Buffers spaces{{memory.data(), memory.data() + bytes, nullptr}};
  const Result<bool> posted = second.engine().start(schedule, spaces, &reducer, nullptr);
  ASSERT_TRUE(posted.ok() && !*posted);
  const Status status = first.run(first.collective(ShmCollectiveKind::all_reduce), reducer);
  EXPECT_TRUE(contains(status, broken)) << status.message();
  EXPECT_EQ(told_of(0, broken, second.engine().progress().status()), "");
}

// The last piece of a single copy that the sender has begun to write.
TEST_F(TwoMembers, AWriterIsWaitedFor) {
  const ShmChannelOptions options{.single_copy = true, .single_copy_threshold = 1};
  Member first(view(), peers_, 0, options), second(view(), peers_, 1, options);
  std::vector<std::byte> memory(bytes);
  const Buffers spaces{{memory.data(), memory.data(), nullptr}};
  const BoundSchedule out = second.message(StepKind::send, 0), in = first.message(StepKind::recv, 1);
  ASSERT_FALSE(*second.engine().start(out, spaces, nullptr, nullptr));
  ASSERT_FALSE(*first.engine().start(in, spaces, nullptr, nullptr));
  const detail::SegmentShape shape = detail::segment_shape(segment_.bytes(), 2);
  auto& ring = *reinterpret_cast<detail::RingControl*>(segment_.data() + detail::ring_offset(shape, 2, 1, 0));
  ASSERT_NE(ring.claims.load() >> 32, 0u) << "the receiver has not accepted";
  ++ring.claims;
  std::atomic<bool> written = false;
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    written = true;
    ++ring.pushed;
  });
  first.channel().abandon({Code::unavailable, "out of memory"});
  EXPECT_TRUE(written);
  writer.join();
}

#if !defined(__SANITIZE_THREAD__)
// What two processes share: their buffers, and what they know of each other.
class StoppedRank : public testing::Test {
 protected:
  enum class End { goes_on, killed };
  struct Shared {
    std::atomic<bool> at_work, continued;
    std::byte input[2][bytes], output[2][bytes];
  };

  StoppedRank()
      : shared_(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                    Shared()) {}
  ~StoppedRank() override { munmap(shared_, sizeof(Shared)); }

  // Rank 1 is stopped, or killed, in the middle of its work on rank 0's memory, when rank 0 fails. Whether rank 0 has
  // its memory for itself then.
  std::string run(int rank, SharedSegment segment, const std::vector<ShmPeer>& peers, End end) {
    const LateBreak late(shared_->at_work);
    const BreakingBuffers all(false);
    const PeerBuffers* buffers = &all;
    if (rank == 0) buffers = &late;
    Member member(std::move(segment), peers, rank, {.buffers = buffers});
    const Buffers spaces{{shared_->input[rank], shared_->output[rank], nullptr}};
    const Context context{shared_, end};
    const Reducer reducer{
        .apply = stop_and_write, .kernel = nullptr, .many = nullptr, .context = &context, .element_bytes = 4};
    std::thread waker([&] {
      if (rank != 0 || end == End::killed) return;
      while (!shared_->at_work) sched_yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      shared_->continued = true;
      kill(peers[1].process, SIGCONT);
    });
    const Status status =
        member.engine().run(member.collective(ShmCollectiveKind::all_reduce), spaces, &reducer, nullptr);
    const bool continued = shared_->continued;
    std::memset(shared_->output[rank], 0x11, bytes);
    waker.join();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (rank != 0) return told_of(0, broken, status);
    if (!contains(status, broken)) return status.message();
    if (end == End::goes_on && !continued) return "rank 0 returned while rank 1 was stopped in its work";
    if (std::ranges::count(shared_->output[0], std::byte{0x11}) != bytes) return "memory was overwritten afterwards";
    return {};
  }

  Shared* shared_;

 private:
  struct Context {
    Shared* shared;
    End end;
  };
  static void stop_and_write(const Reducer& self, void* result, const void*, const void*, std::size_t count) {
    const auto& context = *static_cast<const Context*>(self.context);
    if (!context.shared->at_work.exchange(true)) raise(context.end == End::killed ? SIGKILL : SIGSTOP);
    std::memset(result, 0x77, 4 * count);
  }
};

TEST_F(StoppedRank, IsWaitedForBeforeMemoryIsGivenBack) {
  const auto body = [&](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) {
    return run(rank, std::move(segment), peers, End::goes_on);
  };
  EXPECT_EQ(run_processes(2, SharedSegment::default_bytes(2), body), 0);
}

TEST_F(StoppedRank, IsNotWaitedForWhenItIsGone) {
  const auto begin = std::chrono::steady_clock::now();
  const auto body = [&](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) {
    return run(rank, std::move(segment), peers, End::killed);
  };
  EXPECT_EQ(run_processes(2, SharedSegment::default_bytes(2), body), 1) << "the one that was killed";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}
#endif

}  // namespace
}  // namespace plait::tl
