// What ranks do out of band where all that they have is an all-gather, as UCC brings them: ranks are threads.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugin/ucc/oob/gather_oob.h"
#include "plugin/ucc/oob/gathering.h"
#include "plugin/ucc/oob/peer_processes.h"
#include "plugin/ucc/oob/set_up_thread.h"

namespace plait::plugin {
namespace {

// Where the ranks' all-gathers meet, by their number.
class Hub {
 public:
  explicit Hub(int ranks) : ranks_(ranks) {}
  int ranks() const { return ranks_; }
  bool bring(std::size_t step, int rank, const void* mine, std::size_t bytes) {
    const std::scoped_lock lock(guard_);
    Step& at = steps_[step];
    if (at.bytes != 0 && at.bytes != bytes) return false;  // the ranks are not in the same step
    at.bytes = bytes;
    at.all.resize(bytes * static_cast<std::size_t>(ranks_));
    std::memcpy(at.all.data() + bytes * static_cast<std::size_t>(rank), mine, bytes);
    ++at.come;
    return true;
  }
  bool take(std::size_t step, void* all) {
    const std::scoped_lock lock(guard_);
    const Step& at = steps_[step];
    if (at.come < ranks_) return false;
    std::memcpy(all, at.all.data(), at.all.size());
    return true;
  }

 private:
  struct Step {
    std::vector<std::byte> all;
    std::size_t bytes = 0;
    int come = 0;
  };
  const int ranks_;
  std::mutex guard_;
  std::map<std::size_t, Step> steps_;
};

class HubGather final : public AllGather {
 public:
  HubGather(Hub& hub, int rank) : hub_(hub), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return hub_.ranks(); }
  bool start(const void* mine, std::size_t bytes, void* all) override {
    all_ = all;
    thread_ = std::this_thread::get_id();
    return !fails && hub_.bring(step_, rank_, mine, bytes);
  }
  Turn test() override {
    EXPECT_EQ(thread_, std::this_thread::get_id());  // one thread carries it
    if (!hub_.take(step_, all_)) return Turn::waiting;
    ++step_;
    return Turn::done;
  }
  bool fails = false;

 private:
  Hub& hub_;
  const int rank_;
  std::size_t step_ = 0;
  void* all_ = nullptr;
  std::thread::id thread_;
};

void for_each_rank(int ranks, const std::function<void(HubGather& carrier)>& be) {
  Hub hub(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&hub, &be, rank] {
      HubGather carrier(hub, rank);
      be(carrier);
    });
  for (std::thread& thread : threads) thread.join();
}

class GatherOobOf : public testing::TestWithParam<int> {};

TEST_P(GatherOobOf, GathersWhatFitsAndWhatDoesNot) {
  for_each_rank(GetParam(), [](HubGather& carrier) {
    OwnGathering gathering(carrier);
    GatherOob oob(gathering);
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{60}, std::size_t{61}, std::size_t{5000}}) {
      const std::vector<char> mine(bytes, static_cast<char>('a' + oob.rank()));
      std::vector<char> all(bytes * static_cast<std::size_t>(oob.ranks()));
      ASSERT_TRUE(oob.gather_all(mine.data(), bytes, all.data(), "gather").ok());
      for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(all[i], static_cast<char>('a' + static_cast<int>(i / bytes)));
    }
  });
}

TEST_P(GatherOobOf, TellsWhatRankZeroHas) {
  for_each_rank(GetParam(), [](HubGather& carrier) {
    OwnGathering gathering(carrier);
    GatherOob oob(gathering);
    std::vector<int> data(100, oob.rank() == 0 ? 42 : -1);
    ASSERT_TRUE(oob.tell_all(data.data(), data.size() * sizeof(int), "tell").ok());
    EXPECT_EQ(data, std::vector<int>(100, 42));
  });
}

TEST_P(GatherOobOf, ReducesIntegersAndReals) {
  for_each_rank(GetParam(), [](HubGather& carrier) {
    OwnGathering gathering(carrier);
    GatherOob oob(gathering);
    const std::array<int, 2> mine = {oob.rank(), -oob.rank()};
    std::array<int, 2> all = {};
    ASSERT_TRUE(reduce_all(oob, mine, all, Op::max, "reduce").ok());
    EXPECT_EQ(all, (std::array<int, 2>{oob.ranks() - 1, 0}));
    const std::array<double, 1> one = {0.5};
    std::array<double, 1> sum = {};
    ASSERT_TRUE(reduce_all(oob, one, sum, Op::sum, "reduce").ok());
    EXPECT_EQ(sum[0], 0.5 * oob.ranks());
  });
}

TEST_P(GatherOobOf, EndsTheOthersStepWhereOneWithdraws) {
  for_each_rank(GetParam(), [](HubGather& carrier) {
    OwnGathering gathering(carrier);
    GatherOob oob(gathering);
    ASSERT_TRUE(oob.meet("meet").ok());
    const int last = oob.ranks() - 1;
    if (oob.rank() == last) return oob.withdraw();
    std::vector<char> all(1000 * static_cast<std::size_t>(oob.ranks()));
    const std::vector<char> mine(1000);
    const Status met = oob.gather_all(mine.data(), mine.size(), all.data(), "exchange their offers");
    ASSERT_EQ(met.code(), Code::peer_failed);
    EXPECT_NE(std::string(met.message()).find("rank " + std::to_string(last)), std::string::npos);
  });
}

TEST_P(GatherOobOf, GoesOnTogetherOrNotAtAll) {
  for_each_rank(GetParam(), [](HubGather& carrier) {
    OwnGathering gathering(carrier);
    GatherOob oob(gathering);
    EXPECT_TRUE(oob.go_on_together({}).ok());
    const bool well = oob.rank() != 0;
    EXPECT_FALSE(oob.go_on_together(well ? Status() : Status(Code::unavailable, "no memory")).ok());
    EXPECT_TRUE(oob.go_on_together({}).ok());
  });
}

TEST_P(GatherOobOf, BringsTextsOfAnyLengthToRankZero) {
  for_each_rank(GetParam(), [](HubGather& carrier) {
    OwnGathering gathering(carrier);
    GatherOob oob(gathering);
    const auto text_of = [](int rank) {
      return std::string(static_cast<std::size_t>(rank) * 700000 + 3, static_cast<char>('a' + rank));
    };
    int next = 0;
    oob.gather_texts(text_of(oob.rank()), [&](int rank, const std::string& text) {
      EXPECT_EQ(rank, next++);
      EXPECT_EQ(text, text_of(rank));
    });
    EXPECT_EQ(next, oob.rank() == 0 ? oob.ranks() : 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, GatherOobOf, testing::Values(1, 2, 3, 5, 8));

TEST(HandedGathering, IsCarriedByAnotherThreadThanTheOneThatAsks) {
  for_each_rank(3, [](HubGather& carrier) {
    HandedGathering gathering(carrier);
    SetUpThread thread;
    int sum = 0;
    ASSERT_TRUE(thread.start(gathering, [&] {
      GatherOob oob(gathering);
      for (int step = 0; step < 50; ++step) {
        const std::array<int, 1> mine = {1};
        std::array<int, 1> all = {};
        if (reduce_all(oob, mine, all, Op::sum, "count").ok()) sum += all[0];
      }
    }));
    while (!thread.turn()) std::this_thread::yield();
    EXPECT_EQ(sum, 150);
  });
}

TEST(HandedGathering, FailsWhereItsCarrierDoes) {
  Hub hub(2);
  HubGather carrier(hub, 0);
  carrier.fails = true;
  HandedGathering gathering(carrier);
  SetUpThread thread;
  bool met = true;
  ASSERT_TRUE(thread.start(gathering, [&] { met = GatherOob(gathering).meet("meet").ok(); }));
  while (!thread.turn()) std::this_thread::yield();
  EXPECT_FALSE(met);
}

TEST(HandedGathering, FailsOnceItIsClosed) {
  Hub hub(2);
  HubGather carrier(hub, 0);
  HandedGathering gathering(carrier);
  gathering.close();
  int mine = 0;
  std::array<int, 2> all = {};
  EXPECT_FALSE(gathering.run(&mine, sizeof mine, all.data()));
}

TEST(MirrorGathering, SaysOfAllWhatOneHas) {
  MirrorGathering gathering(3);
  GatherOob oob(gathering);
  const std::array<int, 1> mine = {7};
  std::array<int, 1> all = {};
  ASSERT_TRUE(reduce_all(oob, mine, all, Op::sum, "count").ok());
  EXPECT_EQ(all[0], 21);
}

// A rank that a process brings, which another one looks after.
class ForkedGather final : public AllGather {
 public:
  ForkedGather(int rank, int from, int to) : rank_(rank), from_(from), to_(to) {}
  int rank() const override { return rank_; }
  int ranks() const override { return 2; }
  bool start(const void* mine, std::size_t bytes, void* all) override {
    auto* both = static_cast<char*>(all);
    std::memcpy(both + static_cast<std::size_t>(rank_) * bytes, mine, bytes);
    if (write(to_, mine, bytes) != static_cast<ssize_t>(bytes)) return false;
    return read(from_, both + static_cast<std::size_t>(1 - rank_) * bytes, bytes) == static_cast<ssize_t>(bytes);
  }
  Turn test() override { return Turn::done; }

 private:
  const int rank_, from_, to_;
};

TEST(PeerProcesses, SeesThatOneHasEnded) {
  int there[2], back[2];
  ASSERT_EQ(pipe(there) + pipe(back), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ForkedGather carrier(1, there[0], back[1]);
    OwnGathering gathering(carrier);
    GatherOob oob(gathering);
    PeerProcesses peers;
    const bool met = peers.meet(oob).ok();
    while (met) pause();
    _exit(1);
  }
  ForkedGather carrier(0, back[0], there[1]);
  OwnGathering gathering(carrier);
  GatherOob oob(gathering);
  PeerProcesses peers;
  ASSERT_TRUE(peers.meet(oob).ok());
  EXPECT_TRUE(peers.look().ok());
  kill(child, SIGKILL);
  siginfo_t ended{};
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);  // nobody has waited for it yet
  const Status seen = peers.look();
  EXPECT_EQ(seen.code(), Code::peer_failed);
  EXPECT_NE(std::string(seen.message()).find("rank 1"), std::string::npos);
  waitpid(child, nullptr, 0);
}

TEST(PeerProcesses, LeavesThreadsOfItsOwnProcessAlone) {
  for_each_rank(2, [](HubGather& carrier) {
    OwnGathering gathering(carrier);
    GatherOob oob(gathering);
    PeerProcesses peers;
    ASSERT_TRUE(peers.meet(oob).ok());
    EXPECT_TRUE(peers.look().ok());
  });
}

}  // namespace
}  // namespace plait::plugin
