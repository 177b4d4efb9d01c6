// The UCX channel over a fake libucp that reorders and fails, and over the real one between threads of this process.
#include "tl/ucx/ucx_channel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/tl/fake_ucp.h"
#include "tests/tl/own_time.h"
#include "tests/tl/traffic.h"

namespace plait::tl {
namespace {

Rail rail_named(const char* name) {
  Rail rail;
  rail.name = name;
  rail.network = name;
  return rail;
}

// Workers of several ranks on the same rails, and a channel for each; of further communicators as well.
class Ranks {
 public:
  Ranks(const UcpLibrary& ucp, int ranks, const std::vector<Rail>& rails, UcxChannelOptions options,
        bool introduced = false, WorkerThreads threads = WorkerThreads::one) {
    for (int rank = 0; rank < ranks; ++rank) {
      workers_.emplace_back();
      auto peer = std::make_shared<UcxPeer>();
      peer->process = static_cast<std::uint64_t>(rank) + 1;
      peer->host = "node" + std::to_string(rank);
      for (std::size_t i = 0; i < rails.size(); ++i) {
        auto worker = RailWorker::open(
            ucp, rails[i], {.transports = {}, .threads = threads, .process = introduced ? peer->process : 0});
        if (!worker.ok()) {
          problem_ = worker.status().message();
          return;
        }
        peer->rails.push_back({.network = i, .address = 0, .worker = (*worker)->address()});
        workers_.back().push_back(std::move(*worker));
      }
      peers_.push_back(std::move(peer));
    }
    add_communicator(std::move(options));
  }
  // Of the same ranks.
  void add_communicator(UcxChannelOptions options) {
    auto& channels = channels_.emplace_back();
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      std::vector<UcxRail> own;
      for (std::size_t i = 0; i < workers_[rank].size(); ++i) own.push_back({workers_[rank][i].get(), i});
      options.rank = static_cast<int>(rank);
      channels.push_back(make_ucx_channel(std::move(own), peers_, options));
    }
  }
  const std::string& problem() const { return problem_; }
  Channel& channel(int rank, std::size_t communicator = 0) {
    return *channels_[communicator][static_cast<std::size_t>(rank)];
  }
  void destroy_channel(int rank, std::size_t communicator) {
    channels_[communicator][static_cast<std::size_t>(rank)].reset();
  }
  RailWorker& worker(int rank, std::size_t rail) { return *workers_[static_cast<std::size_t>(rank)][rail]; }

 private:
  std::vector<std::vector<std::unique_ptr<RailWorker>>> workers_;
  std::vector<std::shared_ptr<const UcxPeer>> peers_;
  std::vector<std::vector<std::unique_ptr<Channel>>> channels_;  // by communicator and rank
  std::string problem_;
};

struct Message {
  Message(StepKind kind, int peer, std::size_t bytes) : storage(bytes), span{0, bytes, Space::input} {
    buffers.base[0] = storage.data();
    transfer.kind = kind;
    transfer.peer = peer;
    transfer.bytes = bytes;
    transfer.memory = {&span, 1, &buffers};
  }
  std::vector<std::byte> storage;
  BoundSpan span;
  Buffers buffers;
  Transfer transfer;
};

class FakeUcx : public ::testing::Test {
 protected:
  void SetUp() override { fake_ucp::reset(); }
};

// Both channels in turn, until neither has anything left or one fails.
Status run(Ranks& ranks, std::size_t communicator = 0) {
  std::vector<Transfer*> completed;
  for (int glance = 0; glance < 100'000; ++glance) {
    if (ranks.channel(0, communicator).active() + ranks.channel(1, communicator).active() == 0) return {};
    for (const int rank : {0, 1}) {
      const Result<bool> moved = ranks.channel(rank, communicator).progress(completed);
      if (!moved.ok()) return moved.status();
    }
  }
  return {Code::internal, "hangs"};
}

TEST(RailShare, CoversTheMessageWithoutGapsBetweenElements) {
  const std::vector<double> weights = {1, 0.4, 0, 0.25};
  for (const std::uint64_t bytes : {0u, 12u, 60'000u, 1'234'572u}) {
    std::uint64_t at = 0;
    for (int rail = 0; rail < 4; ++rail) {
      const RailShare share = rail_share(bytes, 12, weights, rail);
      EXPECT_EQ(share.begin, at);
      EXPECT_EQ(share.end % 12, 0u);
      at = share.end;
    }
    EXPECT_EQ(at, bytes);
  }
  EXPECT_EQ(rail_share(165'000, 1, weights, 0).end, 100'000u);
}

TEST_F(FakeUcx, MessagesArriveInOrderWhateverOrderTheRailsKeep) {
  for (const bool newest_first : {false, true}) {
    fake_ucp::reset();
    fake_ucp::behaviour.newest_first = newest_first;
    Ranks ranks(fake_ucp::library(), 2, {rail_named("a"), rail_named("b")},
                {.weights = {1, 0.5}, .fragment_bytes = 1000, .window = 3, .stripe_from = 2000});
    std::vector<std::unique_ptr<Message>> sent, received;
    for (std::size_t k = 0; k < 20; ++k) {
      const std::size_t bytes = k % 3 == 0 ? 40 : k % 3 == 1 ? 12'000 : 0;
      sent.push_back(std::make_unique<Message>(StepKind::send, 1, bytes));
      received.push_back(std::make_unique<Message>(StepKind::recv, 0, bytes));
      std::ranges::fill(sent.back()->storage, static_cast<std::byte>(k + 1));
      ASSERT_TRUE(ranks.channel(0).start(sent.back()->transfer).ok());
      ASSERT_TRUE(ranks.channel(1).start(received.back()->transfer).ok());
    }
    const Status status = run(ranks);
    ASSERT_TRUE(status.ok()) << status.message();
    for (std::size_t k = 0; k < 20; ++k) EXPECT_EQ(received[k]->storage, sent[k]->storage) << k;
    EXPECT_EQ(fake_ucp::open_requests(), 0);
    EXPECT_GT(ranks.worker(0, 1).bytes_sent(), 0u);
    EXPECT_GT(fake_ucp::synchronous_sends(), 0);
  }
}

TEST_F(FakeUcx, SendsThatCompleteAtOnceAreReportedOnce) {
  fake_ucp::behaviour.complete_at_once = true;
  Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {.fragment_bytes = 100, .window = 2});
  Message one(StepKind::send, 1, 1000), two(StepKind::send, 1, 10), there(StepKind::recv, 0, 1000),
      here(StepKind::recv, 0, 10);
  EXPECT_TRUE(*ranks.channel(0).start(one.transfer));
  EXPECT_TRUE(*ranks.channel(0).start(two.transfer));
  EXPECT_FALSE(*ranks.channel(1).start(there.transfer));
  EXPECT_FALSE(*ranks.channel(1).start(here.transfer));
  EXPECT_TRUE(run(ranks).ok());
  EXPECT_EQ(ranks.channel(1).active(), 0);
}

TEST_F(FakeUcx, BoundMessagesStayOnTheirRail) {
  Ranks ranks(fake_ucp::library(), 2, {rail_named("a"), rail_named("b")}, {.stripe_from = 100});
  Message out(StepKind::send, 1, 5000), in(StepKind::recv, 0, 5000);
  out.transfer.rail = in.transfer.rail = 1;
  ASSERT_TRUE(ranks.channel(0).start(out.transfer).ok());
  ASSERT_TRUE(ranks.channel(1).start(in.transfer).ok());
  ASSERT_TRUE(run(ranks).ok());
  EXPECT_EQ(ranks.worker(0, 0).bytes_sent(), 0u);
  EXPECT_EQ(ranks.worker(0, 1).bytes_sent(), 5000u);
}

TEST_F(FakeUcx, FailuresNameTheRankItsNodeAndTheRail) {
  struct Case {
    const char* what;
    std::function<void()> happens;
  };
  const Case cases[] = {
      {"completion", [] { fake_ucp::behaviour.send_status = UCS_ERR_CONNECTION_RESET; }},
      {"post", [] { fake_ucp::behaviour.post_status = UCS_ERR_CONNECTION_RESET; }},
      {"endpoint", [] { fake_ucp::fail_endpoints(UCS_ERR_CONNECTION_RESET); }},
  };
  for (const Case& test : cases) {
    fake_ucp::reset();
    Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {.fragment_bytes = 100, .window = 2});
    Message first(StepKind::send, 1, 10), second(StepKind::send, 1, 1000), in(StepKind::recv, 1, 10);
    ASSERT_TRUE(ranks.channel(0).start(in.transfer).ok());
    ASSERT_TRUE(ranks.channel(0).start(first.transfer).ok());
    test.happens();
    Status status = ranks.channel(0).start(second.transfer).status();
    if (status.ok()) status = run(ranks);
    EXPECT_EQ(status.code(), Code::peer_left) << test.what;
    EXPECT_NE(status.message().find("rank 1 on node1, rail a: "), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("Connection reset"), std::string::npos) << status.message();
    ranks.channel(0).abandon({Code::peer_failed, "given up"});
    EXPECT_EQ(ranks.channel(0).active(), 0);
    EXPECT_FALSE(ranks.channel(0).start(first.transfer).ok());
  }
}

TEST_F(FakeUcx, AMessageOfTheWrongLengthIsAnError) {
  fake_ucp::behaviour.cut_bytes = 1;
  Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {});
  Message out(StepKind::send, 1, 10), in(StepKind::recv, 0, 10);
  ASSERT_TRUE(ranks.channel(0).start(out.transfer).ok());
  ASSERT_TRUE(ranks.channel(1).start(in.transfer).ok());
  EXPECT_EQ(run(ranks).code(), Code::internal);
}

TEST_F(FakeUcx, AnAbandonedChannelReleasesEverything) {
  {
    Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {.fragment_bytes = 10, .window = 4});
    Message out(StepKind::send, 1, 1000), in(StepKind::recv, 1, 1000);
    ASSERT_TRUE(ranks.channel(0).start(out.transfer).ok());
    ASSERT_TRUE(ranks.channel(0).start(in.transfer).ok());
    ranks.channel(0).abandon({Code::peer_failed, "given up"});
    EXPECT_EQ(fake_ucp::open_requests(), 0);
  }
  EXPECT_EQ(fake_ucp::open_workers(), 0);
}

// What is armed stays quiet until something arrives, and says so when that was already the case.
TEST_F(FakeUcx, AnArmedChannelIsWokenByWhatArrives) {
  Ranks ranks(fake_ucp::library(), 2, {rail_named("a"), rail_named("b")}, {.stripe_from = 100});
  Message out(StepKind::send, 1, 5000), in(StepKind::recv, 0, 5000);
  ASSERT_TRUE(ranks.channel(1).start(in.transfer).ok());
  WakeUp wake_up;
  ASSERT_TRUE(ranks.channel(1).arm(wake_up));
  ASSERT_EQ(wake_up.descriptors.size(), 2u) << "something is awaited on both rails";
  EXPECT_EQ(poll(wake_up.descriptors.data(), wake_up.descriptors.size(), 0), 0);
  ASSERT_TRUE(ranks.channel(0).start(out.transfer).ok());
  EXPECT_EQ(poll(wake_up.descriptors.data(), wake_up.descriptors.size(), 0), 2);
  EXPECT_FALSE(wake_up.busy);
  ASSERT_TRUE(ranks.channel(1).arm(wake_up));
  EXPECT_TRUE(wake_up.busy) << "it has arrived";
  EXPECT_TRUE(run(ranks).ok());
}

TEST_F(FakeUcx, OnlyRailsOnWhichSomethingIsAwaitedAreArmed) {
  Ranks ranks(fake_ucp::library(), 2, {rail_named("a"), rail_named("b")}, {});
  Message in(StepKind::recv, 0, 10);
  in.transfer.rail = 1;
  ASSERT_TRUE(ranks.channel(1).start(in.transfer).ok());
  WakeUp wake_up;
  EXPECT_TRUE(ranks.channel(1).arm(wake_up));
  EXPECT_EQ(wake_up.descriptors.size(), 1u);
  ranks.channel(1).abandon(Status());
}

TEST_F(FakeUcx, ARailWithoutEventsCannotWake) {
  fake_ucp::behaviour.events_status = UCS_ERR_UNSUPPORTED;
  Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {});
  Message in(StepKind::recv, 0, 10);
  ASSERT_TRUE(ranks.channel(1).start(in.transfer).ok());
  WakeUp wake_up;
  EXPECT_FALSE(ranks.channel(1).arm(wake_up));
  EXPECT_TRUE(wake_up.descriptors.empty());
  ranks.channel(1).abandon(Status());
}

TEST_F(FakeUcx, NothingGoesBeforeBothEndsAreIntroduced) {
  constexpr bool introduced = true;
  Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {.fragment_bytes = 100}, introduced);
  Message out(StepKind::send, 1, 1000), after(StepKind::send, 1, 10), in(StepKind::recv, 0, 1000),
      last(StepKind::recv, 0, 10);
  std::ranges::fill(out.storage, std::byte{7});
  ASSERT_FALSE(*ranks.channel(0).start(out.transfer));
  ASSERT_FALSE(*ranks.channel(0).start(after.transfer));
  std::vector<Transfer*> completed;
  WakeUp wake_up;
  EXPECT_TRUE(ranks.channel(0).arm(wake_up));
  EXPECT_FALSE(wake_up.descriptors.empty() && !wake_up.busy) << "the other's introduction is awaited";
  for (int glance = 0; glance < 5; ++glance) ASSERT_TRUE(ranks.channel(0).progress(completed).ok());
  EXPECT_EQ(ranks.worker(0, 0).bytes_sent(), 0u);
  ASSERT_TRUE(ranks.channel(1).start(in.transfer).ok());
  ASSERT_TRUE(ranks.channel(1).start(last.transfer).ok());
  const Status status = run(ranks);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(in.storage, out.storage);
  EXPECT_EQ(ranks.worker(0, 0).bytes_sent(), 1010u);
  EXPECT_EQ(fake_ucp::open_requests(), 0);
}

TEST_F(FakeUcx, OnlyPeersThatAreIntroducedAreTold) {
  for (const bool met : {false, true}) {
    fake_ucp::reset();
    {
      Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {}, true);
      Message out(StepKind::send, 1, 10), in(StepKind::recv, 0, 10), other(StepKind::send, 1, 10),
          waits(StepKind::recv, 0, 10);
      ASSERT_TRUE(ranks.channel(0).start(out.transfer).ok());
      if (met) {
        ASSERT_TRUE(ranks.channel(1).start(in.transfer).ok());
        ASSERT_TRUE(run(ranks).ok());
      }
      ranks.channel(0).abandon({Code::peer_failed, "given up"});
      EXPECT_EQ(fake_ucp::closed_endpoints(), 0);
      EXPECT_EQ(ranks.channel(0).active(), 0);
      EXPECT_FALSE(ranks.channel(0).start(other.transfer).ok());
      ASSERT_TRUE(ranks.channel(1).start(waits.transfer).ok());
      Status status;
      std::vector<Transfer*> completed;
      for (int glance = 0; glance < 1000 && status.ok(); ++glance)
        status = ranks.channel(1).progress(completed).status();
      EXPECT_EQ(status.message() == "ucx: rank 0 has failed: given up", met) << status.message();
      ranks.channel(1).abandon(status);
    }
    EXPECT_EQ(fake_ucp::open_requests(), 0) << met;
    EXPECT_EQ(fake_ucp::open_workers(), 0);
  }
}

// What two communicators have under way between the same two ranks over one rail, in both directions.
struct UnderWay {
  explicit UnderWay(std::size_t bytes) {
    for (const int rank : {0, 1}) {
      out.push_back(std::make_unique<Message>(StepKind::send, 1 - rank, bytes));
      in.push_back(std::make_unique<Message>(StepKind::recv, 1 - rank, bytes));
      std::ranges::fill(out.back()->storage, static_cast<std::byte>(rank + 1));
    }
  }
  Status start(Ranks& ranks, std::size_t communicator) {
    Status status;
    for (const int rank : {0, 1})
      for (auto* messages : {&in, &out})
        if (status.ok())
          status =
              ranks.channel(rank, communicator).start((*messages)[static_cast<std::size_t>(rank)]->transfer).status();
    return status;
  }
  bool arrived() const { return in[0]->storage == out[1]->storage && in[1]->storage == out[0]->storage; }

  std::vector<std::unique_ptr<Message>> out, in;  // by rank
};

TEST_F(FakeUcx, TheEndOfACommunicatorLeavesOthersAlone) {
  for (const bool destroyed : {false, true}) {
    fake_ucp::reset();
    {
      UnderWay ended(2000), other(2000);
      Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {.communicator = 1, .fragment_bytes = 100, .window = 3},
                  true);
      ranks.add_communicator({.communicator = 2, .fragment_bytes = 100, .window = 3});
      ASSERT_TRUE(ended.start(ranks, 0).ok());
      ASSERT_TRUE(other.start(ranks, 1).ok());
      std::vector<Transfer*> completed;
      for (int glance = 0; glance < 20; ++glance)
        for (const std::size_t communicator : {0, 1})
          for (const int rank : {0, 1}) ASSERT_TRUE(ranks.channel(rank, communicator).progress(completed).ok());
      ASSERT_GT(ranks.worker(0, 0).bytes_sent(), 0u);
      ASSERT_GT(ranks.channel(0, 0).active() * ranks.channel(0, 1).active(), 0) << "both are in the middle";
      if (destroyed)
        ranks.destroy_channel(0, 0);
      else
        ranks.channel(0, 0).abandon({Code::unavailable, "out of memory"});
      const Status status = run(ranks, 1);
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_TRUE(other.arrived());
      EXPECT_EQ(fake_ucp::closed_endpoints(), 0);
      Status told;
      for (int glance = 0; glance < 1000 && told.ok(); ++glance)
        told = ranks.channel(1, 0).progress(completed).status();
      EXPECT_EQ(told.code(), Code::peer_failed);
      EXPECT_NE(told.message().find(destroyed ? "rank 0 has failed: its channel was destroyed"
                                              : "rank 0 has failed: out of memory"),
                std::string::npos)
          << told.message();
      ranks.channel(1, 0).abandon(told);
    }
    EXPECT_EQ(fake_ucp::open_requests(), 0) << destroyed;
  }
}

// A long message's end is confirmed by who takes it, and a peer that has given up takes nothing more: what has left
// this process is over all the same, and the connection stays.
TEST_F(FakeUcx, ASendThatNobodyConfirmsIsOverOnceItHasLeft) {
  {
    Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {.communicator = 1, .patience_ns = 20'000'000'000}, true);
    Message first(StepKind::send, 1, 10), met(StepKind::recv, 0, 10), out(StepKind::send, 1, 6000);
    ASSERT_TRUE(ranks.channel(0).start(first.transfer).ok());
    ASSERT_TRUE(ranks.channel(1).start(met.transfer).ok());
    ASSERT_TRUE(run(ranks).ok());
    ranks.channel(1).abandon({Code::unavailable, "out of memory"});
    ASSERT_TRUE(ranks.channel(0).start(out.transfer).ok());
    ASSERT_EQ(fake_ucp::synchronous_sends(), 3) << "two introductions and the end of the message";
    Status told;
    std::vector<Transfer*> completed;
    for (int glance = 0; glance < 1000 && told.ok(); ++glance) told = ranks.channel(0).progress(completed).status();
    EXPECT_EQ(told.message(), "ucx: rank 1 has failed: out of memory");
    const std::uint64_t begin = monotonic_ns();
    ranks.channel(0).abandon(told);
    EXPECT_LT(monotonic_ns() - begin, 10'000'000'000u);
    EXPECT_EQ(fake_ucp::closed_endpoints(), 0);
  }
  EXPECT_EQ(fake_ucp::open_requests(), 0);
}

// It would fill the peer's memory.
TEST_F(FakeUcx, WhoSendsWithoutAPauseHearsThatThePeerHasGivenUp) {
  constexpr std::size_t bytes = 1'000'000;
  Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {.communicator = 1, .fragment_bytes = 100, .window = 3}, true);
  Message first(StepKind::send, 1, 10), met(StepKind::recv, 0, 10), out(StepKind::send, 1, bytes);
  ASSERT_TRUE(ranks.channel(0).start(first.transfer).ok());
  ASSERT_TRUE(ranks.channel(1).start(met.transfer).ok());
  ASSERT_TRUE(run(ranks).ok());
  ranks.channel(1).abandon({Code::unavailable, "out of memory"});
  ASSERT_TRUE(ranks.channel(0).start(out.transfer).ok());
  Status told;
  std::vector<Transfer*> completed;
  while (told.ok() && ranks.channel(0).active() > 0) told = ranks.channel(0).progress(completed).status();
  EXPECT_EQ(told.message(), "ucx: rank 1 has failed: out of memory");
  EXPECT_LT(ranks.worker(0, 0).bytes_sent(), bytes / 10);
  ranks.channel(0).abandon(told);
}

// Who is told passes on who was the first.
TEST_F(FakeUcx, AFarewellNamesTheFirstThatFailed) {
  Ranks ranks(fake_ucp::library(), 3, {rail_named("a")}, {}, true);
  Message first(StepKind::recv, 0, 10), second(StepKind::recv, 1, 10);  // of ranks 1 and 2
  Message back(StepKind::recv, 1, 10), further(StepKind::recv, 2, 10);  // of ranks 0 and 1
  ASSERT_TRUE(ranks.channel(1).start(first.transfer).ok());
  ASSERT_TRUE(ranks.channel(2).start(second.transfer).ok());
  ASSERT_TRUE(ranks.channel(0).start(back.transfer).ok());
  ASSERT_TRUE(ranks.channel(1).start(further.transfer).ok());
  std::vector<Transfer*> completed;
  const auto told = [&](int rank) {
    Status status;
    for (int glance = 0; glance < 1000 && status.ok(); ++glance)
      status = ranks.channel(rank).progress(completed).status();
    return status;
  };
  for (int glance = 0; glance < 20; ++glance)
    for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(ranks.channel(rank).progress(completed).ok());
  ranks.channel(0).abandon({Code::unavailable, "out of memory"});
  for (const int rank : {1, 2}) {
    const Status status = told(rank);
    EXPECT_EQ(status.message(), "ucx: rank 0 has failed: out of memory") << rank;
    ranks.channel(rank).abandon(status);
  }
}

// A peer that takes nothing for long: the connection goes, so that the memory of what is under way is free.
TEST_F(FakeUcx, WhatAPeerDoesNotTakeIsCutInTheEnd) {
  Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {.patience_ns = 200'000'000});
  Message out(StepKind::send, 1, 1000), in(StepKind::recv, 1, 1000);
  ASSERT_TRUE(ranks.channel(0).start(out.transfer).ok());
  ASSERT_TRUE(ranks.channel(0).start(in.transfer).ok());
  fake_ucp::behaviour.deliveries_a_progress = 0;
  const std::uint64_t begin = monotonic_ns();
  ranks.channel(0).abandon({Code::peer_failed, "given up"});
  EXPECT_GE(monotonic_ns() - begin, 200'000'000u);
  EXPECT_EQ(fake_ucp::closed_endpoints(), 1);
  EXPECT_EQ(fake_ucp::open_requests(), 0);
}

TEST_F(FakeUcx, AnIntroductionThatFailsNamesTheRank) {
  Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {}, true);
  Message in(StepKind::recv, 1, 10);
  ASSERT_TRUE(ranks.channel(0).start(in.transfer).ok());
  fake_ucp::behaviour.send_status = UCS_ERR_CONNECTION_RESET;
  const Status status = run(ranks);
  EXPECT_EQ(status.code(), Code::peer_left);
  EXPECT_NE(status.message().find("rank 1 on node1, rail a: "), std::string::npos) << status.message();
}

// While it lives so many more files can be opened.
class FewFiles {
 public:
  explicit FewFiles(rlim_t more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = eventfd(0, EFD_CLOEXEC);
    close(next);
    const rlimit few{.rlim_cur = static_cast<rlim_t>(next) + more, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(FakeUcx, AConnectionThatCannotBeMadeNamesTheRankAndWhy) {
  const auto begun = [] {
    Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {}, true);
    Message in(StepKind::recv, 1, 10);
    const Status status = ranks.channel(0).start(in.transfer).status();
    ranks.channel(0).abandon({Code::peer_failed, "given up"});
    return status.message();
  };
  EXPECT_EQ(begun(), "");
  fake_ucp::behaviour.connect_status = UCS_ERR_UNREACHABLE;
  EXPECT_EQ(begun(), "ucx: rank 1 on node1, rail a: cannot connect: another status");
  fake_ucp::behaviour.connect_status = UCS_OK;
  const FewFiles few(2 + 2);  // two are those of the workers
  EXPECT_EQ(begun(), "ucx: rank 1 on node1, rail a: cannot connect: this process can open no more files");
}

// A cut of a second or two goes by. There is no interface of that name, so that its link is down.
TEST_F(FakeUcx, ALinkIsLostOnceItHasBeenDownForSeconds) {
  constexpr std::uint64_t second_ns = 1'000'000'000;
  Ranks ranks(fake_ucp::library(), 2, {rail_named("plait-none")}, {});
  Message in(StepKind::recv, 1, 10);
  ASSERT_TRUE(ranks.channel(0).start(in.transfer).ok());
  std::vector<Transfer*> completed;
  const std::uint64_t begin = monotonic_ns();
  Status status;
  while (status.ok() && monotonic_ns() - begin < 20 * second_ns) {
    status = ranks.channel(0).progress(completed).status();
    sched_yield();
  }
  EXPECT_EQ(status.message(), "ucx: rank 1 on node1, rail plait-none: the link of this rank's own node is lost");
  EXPECT_GT(monotonic_ns() - begin, 5 * second_ns);
  ranks.channel(0).abandon(status);
}

// A helper thread of one communicator beside the program's thread, which uses another.
TEST_F(FakeUcx, ThreadsOfTwoCommunicatorsTakeTurnsInAWorker) {
  Ranks ranks(fake_ucp::library(), 2, {rail_named("a"), rail_named("b")},
              {.communicator = 1, .fragment_bytes = 100, .stripe_from = 1000}, true, WorkerThreads::at_once);
  ranks.add_communicator({.communicator = 2, .fragment_bytes = 100, .stripe_from = 1000});
  fake_ucp::behaviour.yield_every = 7;
  std::array<std::string, 2> problems;
  const auto body = [&](std::size_t communicator) {
    for (std::size_t round = 0; round < 20 && problems[communicator].empty(); ++round) {
      Message out(StepKind::send, 1, 1 + 97 * round), in(StepKind::recv, 0, 1 + 97 * round);
      std::ranges::fill(out.storage, static_cast<std::byte>(round + 100 * communicator));
      Status status = ranks.channel(1, communicator).start(in.transfer).status();
      if (status.ok()) status = ranks.channel(0, communicator).start(out.transfer).status();
      if (status.ok()) status = run(ranks, communicator);
      problems[communicator] = !status.ok() ? status.message() : in.storage != out.storage ? "wrong data" : "";
    }
  };
  std::thread helper(body, 0), program(body, 1);
  helper.join();
  program.join();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
  EXPECT_EQ(fake_ucp::meetings(), 0);
}

TEST_F(FakeUcx, WorkersAreMadeForTheThreadsThatUseThem) {
  const auto mode = [](WorkerThreads threads) {
    Ranks ranks(fake_ucp::library(), 1, {rail_named("a")}, {}, false, threads);
    return fake_ucp::thread_mode();
  };
  EXPECT_EQ(mode(WorkerThreads::one), UCS_THREAD_MODE_SINGLE);
  EXPECT_EQ(mode(WorkerThreads::in_turn), UCS_THREAD_MODE_SERIALIZED);
  EXPECT_EQ(mode(WorkerThreads::at_once), UCS_THREAD_MODE_SERIALIZED);
}

// Of a worker that was not made for it: the call fails, and the process goes on.
TEST_F(FakeUcx, ASecondThreadInAWorkerIsAnErrorOfTheCall) {
  Message sent(StepKind::send, 1, 100), received(StepKind::recv, 0, 100);
  Ranks ranks(fake_ucp::library(), 2, {rail_named("eth0")}, {.fragment_bytes = 10, .window = 4});
  ASSERT_EQ(ranks.problem(), "");
  ASSERT_TRUE(ranks.channel(0).start(sent.transfer).ok());
  ASSERT_TRUE(ranks.channel(1).start(received.transfer).ok());
  std::atomic<bool> inside{false};
  std::thread other([&] {
    const auto turn = ranks.worker(0, 0).lock();
    inside = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  while (!inside) sched_yield();
  const Status failed = run(ranks);
  other.join();
  EXPECT_FALSE(failed.ok());
  EXPECT_NE(failed.message().find("rail eth0: two threads"), std::string::npos) << failed.message();
}

TEST_F(FakeUcx, ARailThatCannotBeOpenedSaysWhy) {
  fake_ucp::behaviour.worker_status = UCS_ERR_NO_DEVICE;
  Ranks ranks(fake_ucp::library(), 2, {rail_named("a")}, {});
  EXPECT_NE(ranks.problem().find("ucx: rail a: making a worker"), std::string::npos) << ranks.problem();
}

// The real library, where it is installed and this host has an interface.
class RealUcx : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!ucp.ok()) GTEST_SKIP() << ucp.status().message();
    rails = rails_of({}, network_interfaces());
    ASSERT_TRUE(choose_rails(rails, "1").ok());
    std::erase_if(rails, [](const Rail& rail) { return !rail.used; });
    if (rails.empty()) GTEST_SKIP() << "no interface between nodes";
  }

  const Result<const UcpLibrary*> ucp = system_ucp();
  std::vector<Rail> rails;
};

TEST_F(RealUcx, RandomTrafficBetweenThreads) {
  constexpr int ranks = 3;
  for (const std::size_t fragment : {1000u, 61'440u}) {
    Ranks job(**ucp, ranks, rails, {.communicator = 5, .fragment_bytes = fragment, .window = 3});
    ASSERT_EQ(job.problem(), "");
    std::vector<std::thread> threads;
    std::vector<std::string> problems(ranks);
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        Engine engine(by_kind({&job.channel(rank)}), {.yield = true});
        for (std::uint64_t seed = 1; seed <= 6 && problems[static_cast<std::size_t>(rank)].empty(); ++seed) {
          Traffic traffic({.seed = seed,
                           .ranks = ranks,
                           .messages = 60,
                           .element_bytes = 4,
                           .sizes = {4, 996, 1000, 60'000, 300'000},
                           .most_spans = seed % 2 == 0 ? 1 : 6,
                           .channel = ChannelKind::ucx},
                          rank);
          problems[static_cast<std::size_t>(rank)] = traffic.run(engine);
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& problem : problems) EXPECT_EQ(problem, "");
  }
}

// Over connections that are all new, again and again: data right behind the introductions, both ways.
TEST_F(RealUcx, TheFirstMessagesMayBeLongOnesBothWays) {
  constexpr std::size_t bytes = 700'000;
  for (int round = 0; round < 20; ++round) {
    Ranks job(**ucp, 2, rails, {.communicator = 7}, round % 2 == 0);
    ASSERT_EQ(job.problem(), "");
    std::array<Status, 2> status;
    const auto body = [&](int rank) {
      std::vector<Message> messages;
      messages.reserve(2);
      messages.emplace_back(StepKind::send, 1 - rank, bytes).transfer.last_of_lane = true;
      messages.emplace_back(StepKind::recv, 1 - rank, bytes).transfer.last_of_lane = true;
      Channel& channel = job.channel(rank);
      Status& mine = status[static_cast<std::size_t>(rank)];
      for (Message& message : messages)
        if (mine.ok()) mine = channel.start(message.transfer).status();
      std::vector<Transfer*> completed;
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (mine.ok() && channel.active() > 0) {
        mine = channel.progress(completed).status();
        if (std::chrono::steady_clock::now() > until) mine = {Code::internal, "waits for ever"};
        sched_yield();
      }
    };
    std::thread first(body, 0), second(body, 1);
    first.join();
    second.join();
    for (const Status& each : status) ASSERT_TRUE(each.ok()) << each.message();
  }
}

// Of two communicators of the same ranks one is given up in the middle, again and again, with memory that its ranks use
// otherwise as soon as they have it back; the other goes on.
TEST_F(RealUcx, TheEndOfACommunicatorLeavesOthersAlone) {
  constexpr std::size_t bytes = 4'000'000;
  constexpr std::uint64_t second_ns = 1'000'000'000;
  const std::byte sent{1}, other{2};
  for (int round = 0; round < 10; ++round) {
    Ranks job(**ucp, 2, rails, {.communicator = 20}, true);
    ASSERT_EQ(job.problem(), "");
    job.add_communicator({.communicator = 21});
    std::array<std::string, 2> problems;
    const auto body = [&](int rank) {
      std::string& problem = problems[static_cast<std::size_t>(rank)];
      Message out(StepKind::send, 1 - rank, bytes), in(StepKind::recv, 1 - rank, bytes);
      std::ranges::fill(out.storage, sent);
      Channel &ended = job.channel(rank, 0), &going_on = job.channel(rank, 1);
      std::vector<Transfer*> completed;
      Message first_out(StepKind::send, 1 - rank, 8), first_in(StepKind::recv, 1 - rank, 8);
      Status status = ended.start(first_out.transfer).status();
      if (status.ok()) status = ended.start(first_in.transfer).status();
      while (status.ok() && ended.active() > 0) {  // they meet: who is not introduced is not told
        status = ended.progress(completed).status();
        sched_yield();
      }
      if (status.ok()) status = ended.start(out.transfer).status();
      if (status.ok()) status = ended.start(in.transfer).status();
      for (int glance = 0; status.ok() && rank == 0 && glance < 100 * round; ++glance)
        status = ended.progress(completed).status();
      const OwnTime time;
      while (rank == 1 && status.ok() && time.ns() < 5 * second_ns) {
        status = ended.progress(completed).status();
        sched_yield();
      }
      if (rank == 0 && status.ok()) status = {Code::unavailable, "out of memory"};
      if (status.message().find("out of memory") == std::string::npos) problem = status.message() + " instead";
      ended.abandon(status);
      const std::vector<std::byte> received = in.storage;
      std::ranges::fill(in.storage, other);
      std::ranges::fill(out.storage, other);
      if (std::ranges::count(received, other) > 0) problem = "memory that its owner had back was sent";
      if (time.ns() > 4 * second_ns) problem += " told late";
      Engine engine(by_kind({&going_on}), {.yield = true});
      for (std::uint64_t seed = 1; seed <= 3; ++seed)
        problem += Traffic({.seed = seed + 10 * static_cast<std::uint64_t>(round),
                            .ranks = 2,
                            .messages = 20,
                            .element_bytes = 4,
                            .sizes = {4, 1000, 60'000, 300'000},
                            .most_spans = 1,
                            .channel = ChannelKind::ucx},
                           rank)
                       .run(engine);
      if (std::ranges::count(in.storage, other) != static_cast<std::ptrdiff_t>(bytes))
        problem = "a late message arrived";
    };
    std::thread first(body, 0), second(body, 1);
    first.join();
    second.join();
    for (const std::string& problem : problems) ASSERT_EQ(problem, "") << "round " << round;
  }
}

// One thread keeps the other waiting for so long that it sleeps.
TEST_F(RealUcx, ASleeperIsWokenAtOnce) {
  Ranks job(**ucp, 2, rails, {.communicator = 6});
  ASSERT_EQ(job.problem(), "");
  constexpr int rounds = 40;
  std::vector<std::uint64_t> lateness;
  std::array<Status, 2> status;
  const auto body = [&](int rank) {
    WaitPolicy policy{.yield = true};
    policy.sleep_after_ns = 100'000;
    policy.shortest_sleep_ns = policy.longest_sleep_ns = 2'000'000'000;
    Engine engine(by_kind({&job.channel(rank)}), policy);
    std::uint64_t sent = 0, got = 0;
    Buffers buffers{{reinterpret_cast<std::byte*>(&sent), reinterpret_cast<std::byte*>(&got), nullptr}};
    ScheduleBuilder sends(8), receives(8);
    sends.send(ChannelKind::ucx, 1 - rank, {{0, 8, Space::input}});
    receives.recv(ChannelKind::ucx, 1 - rank, {{0, 8, Space::output}});
    const BoundSchedule out = sends.build(), in = receives.build();
    Status& mine = status[static_cast<std::size_t>(rank)];
    for (int round = 0; round < rounds && mine.ok(); ++round) {
      if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(4));
      const OwnTime time;
      sent = monotonic_ns();
      mine = engine.run(rank == 0 ? out : in, buffers, nullptr, nullptr);
      if (rank == 1) lateness.push_back(time.ns_since(got));
      if (mine.ok()) mine = engine.run(rank == 0 ? in : out, buffers, nullptr, nullptr);
    }
  };
  std::thread late(body, 0), waiting(body, 1);
  late.join();
  waiting.join();
  for (const Status& each : status) ASSERT_TRUE(each.ok()) << each.message();
  std::ranges::sort(lateness);
  EXPECT_LT(lateness[rounds / 10], 1'000'000u);
}

}  // namespace
}  // namespace plait::tl
