// Long waits: who sleeps is woken at once by what it waits for, misses nothing, and costs next to nothing.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <ostream>
#include <random>
#include <thread>

#include "tests/tl/own_time.h"
#include "tests/tl/ranks.h"
#include "tests/tl/schedule_builder.h"
#include "tl/engine.h"
#include "tl/tcp/tcp_channel.h"
#include "tl/trace.h"

namespace plait::tl {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::size_t segment_bytes = std::size_t{1} << 20;

// Sleeps soon, and so long that who is not woken fails the test.
WaitPolicy deep_sleep() {
  WaitPolicy policy{.yield = true};
  policy.sleep_after_ns = 100'000;
  policy.shortest_sleep_ns = policy.longest_sleep_ns = 20 * second_ns;
  return policy;
}

// One rank's end of a channel to the others: an engine, and calls that name when they ended.
class End {
 public:
  End(Channel* channel, ChannelKind kind, int self, int ranks, const WaitPolicy& policy)
      : kind_(kind), ranks_(ranks), self_(self) {
    channels_[static_cast<std::size_t>(kind)] = channel;
    engine_ = std::make_unique<Engine>(channels_, policy);
  }

  Status message(bool sends, int peer) {
    ScheduleBuilder builder(8);
    if (sends)
      builder.send(kind_, peer, {{0, 8, Space::input}});
    else
      builder.recv(kind_, peer, {{0, 8, Space::output}});
    return run(builder.build());
  }
  // Two messages from different peers at once: not a schedule of one step.
  Status two_receives(int one, int other) {
    ScheduleBuilder builder(8);
    builder.recv(kind_, one, {{0, 8, Space::output}});
    builder.recv(kind_, other, {{8, 8, Space::output}});
    return run(builder.build());
  }
  Status all_gather() {
    const auto ranks = static_cast<std::size_t>(ranks_);
    BoundShmCollective collective;
    collective.kind = ShmCollectiveKind::all_gather;
    collective.self = self_;
    collective.bytes = 8 * ranks;
    for (std::size_t rank = 0; rank <= ranks; ++rank) collective.piece_offsets.push_back(8 * rank);
    for (int rank = 0; rank < ranks_; ++rank) collective.members.push_back(rank);
    collective.takes_own = true;
    ScheduleBuilder builder(8);
    builder.collective(collective, {{0, 8, Space::input}}, {{0, 8 * ranks, Space::output}});
    return run(builder.build());
  }

  std::uint64_t given = 0;
  std::array<std::uint64_t, 8> got{};

 private:
  Status run(const BoundSchedule& schedule) {
    Buffers buffers;
    buffers.base[static_cast<std::size_t>(Space::input)] = reinterpret_cast<std::byte*>(&given);
    buffers.base[static_cast<std::size_t>(Space::output)] = reinterpret_cast<std::byte*>(got.data());
    return engine_->run(schedule, buffers, nullptr, nullptr);
  }

  ChannelKind kind_;
  int ranks_, self_;
  Channels channels_{};
  std::unique_ptr<Engine> engine_;
};

// The tenth part are sooner, whoever else had the cores. Who naps is never so soon.
std::uint64_t undisturbed(std::vector<std::uint64_t> lateness) {
  std::ranges::sort(lateness);
  return lateness[lateness.size() / 10];
}

std::uint64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * second_ns + static_cast<std::uint64_t>(now.tv_nsec);
}

// Rank 0 is late each time; rank 1 says in `lateness` how long after rank 0's call its own ended.
std::string one_waits(End& end, int rank, int rounds, std::vector<std::uint64_t>& lateness, bool collective) {
  for (int round = 0; round < rounds; ++round) {
    if (rank == 0) std::this_thread::sleep_for(milliseconds(6));
    const OwnTime time;
    end.given = monotonic_ns();
    Status status = collective ? end.all_gather() : end.message(rank == 0, 1 - rank);
    if (!status.ok()) return status.message();
    if (rank == 1) lateness.push_back(time.ns_since(end.got[0]));
    if (status = end.message(rank == 1, 1 - rank); !status.ok()) return status.message();
  }
  return {};
}

std::string woken_within_node(int rank, SharedSegment segment, const std::vector<ShmPeer>& peers, bool collective) {
  auto channel = make_shm_channel(std::move(segment), peers, rank, {});
  if (!channel.ok()) return channel.status().message();
  End end(channel->get(), ChannelKind::shm, rank, static_cast<int>(peers.size()), deep_sleep());
  std::vector<std::uint64_t> lateness;
  const std::string problem = one_waits(end, rank, 40, lateness, collective);
  if (!problem.empty() || rank == 0) return problem;
  const std::uint64_t typical = undisturbed(lateness);
  return typical < 1'000'000 ? "" : "woken after " + std::to_string(typical / 1000) + " us";
}

TEST(Wait, ASleeperWithinTheNodeIsWokenAtOnce) {
  for (const bool collective : {false, true}) {
    const auto body = [collective](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) {
      return woken_within_node(rank, std::move(segment), peers, collective);
    };
    EXPECT_EQ(run_processes(2, segment_bytes, body), 0);
    EXPECT_EQ(run_threads(2, segment_bytes, body), 0);
  }
}

// Delays around the moment at which the others fall asleep. A lost wake-up costs a round 20 s.
std::string random_delays(int rank, SharedSegment segment, const std::vector<ShmPeer>& peers, int rounds) {
  const int ranks = static_cast<int>(peers.size());
  auto channel = make_shm_channel(std::move(segment), peers, rank, {});
  if (!channel.ok()) return channel.status().message();
  WaitPolicy policy = deep_sleep();
  policy.sleep_after_ns = 0;
  End end(channel->get(), ChannelKind::shm, rank, ranks, policy);
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t begin = monotonic_ns(), until = begin + random() % 500'000;
    if (random() % 2 == 0) std::this_thread::sleep_for(microseconds(random() % 500));
    while (random() % 4 == 0 && monotonic_ns() < until) sched_yield();
    end.given = static_cast<std::uint64_t>(round * ranks + rank);
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    Status status = round % 3 != 0 ? end.all_gather()
                    : rank == 0    ? end.message(true, next)
                                   : end.message(false, before);
    if (status.ok() && round % 3 == 0) status = rank == 0 ? end.message(false, before) : end.message(true, next);
    if (!status.ok()) return status.message();
    for (int other = 0; other < ranks && round % 3 != 0; ++other)
      if (end.got[static_cast<std::size_t>(other)] != static_cast<std::uint64_t>(round * ranks + other))
        return "wrong data in round " + std::to_string(round);
    if (monotonic_ns() - begin > 15 * second_ns) return "a wake-up was lost in round " + std::to_string(round);
  }
  return {};
}

TEST(Wait, NoWakeUpIsLost) {
  const auto body = [](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) {
    return random_delays(rank, std::move(segment), peers, 1500);
  };
  EXPECT_EQ(run_processes(3, segment_bytes, body), 0);
  EXPECT_EQ(run_threads(3, segment_bytes, body), 0);
}

struct LongWait {
  std::uint64_t whole_ns = 0, burnt_ns = 0;
  std::uint64_t in_line_ns = 0;  // while others had the cores
  int host_calls = 0;

  bool is_cheap() const { return burnt_ns < second_ns / 20; }
  // Who stands in line calls nobody. So many a second of the rest are 5000 in a second that nobody disturbs.
  bool drives_host() const {
    const std::uint64_t awake_ns = burnt_ns + in_line_ns, slept_ns = whole_ns - std::min(awake_ns, whole_ns);
    return host_calls > 5300e-9 * static_cast<double>(slept_ns);
  }
};

std::ostream& operator<<(std::ostream& out, const LongWait& wait) {
  return out << wait.whole_ns / 1000 << " us, of which burnt " << wait.burnt_ns / 1000 << ", in line "
             << wait.in_line_ns / 1000 << "; " << wait.host_calls << " calls of the host";
}

std::string wait_long(int rank, SharedSegment segment, const std::vector<ShmPeer>& peers, LongWait& wait) {
  auto channel = make_shm_channel(std::move(segment), peers, rank, {});
  if (!channel.ok()) return channel.status().message();
  WaitPolicy policy{.yield = true};
  policy.host_progress = [](void* context) { ++*static_cast<int*>(context); };
  policy.context = &wait.host_calls;
  End end(channel->get(), ChannelKind::shm, rank, 2, policy);
  if (rank == 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  const OwnTime time;
  const std::uint64_t begin = monotonic_ns(), burnt = thread_cpu_ns();
  const Status status = end.message(rank == 0, 1 - rank);
  wait.in_line_ns = time.in_line_ns();
  wait.burnt_ns = thread_cpu_ns() - burnt;
  wait.whole_ns = monotonic_ns() - begin;
  return status.message();
}

// Other processes make a wait dearer, never cheaper: one of several tells.
TEST(Wait, ALongWaitCostsLittleAndDrivesTheHost) {
  std::array<LongWait, 2> waits;
  for (int tries = 0; tries < 5; ++tries) {
    waits = {};
    const auto body = [&](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) {
      return wait_long(rank, std::move(segment), peers, waits[static_cast<std::size_t>(rank)]);
    };
    ASSERT_EQ(run_threads(2, segment_bytes, body), 0);
    if (waits[1].is_cheap() && waits[1].drives_host()) break;
  }
  EXPECT_TRUE(waits[1].is_cheap()) << waits[1];
  EXPECT_TRUE(waits[1].drives_host()) << waits[1] << ": its messages take many steps each";
}

// Three ranks over sockets. Rank 2 waits for both others, of which rank 1 has to connect first.
TEST(Wait, SocketsWake) {
  constexpr std::uint32_t loopback = 0x7f000001;
  constexpr int ranks = 3;
  std::vector<TcpPeer> peers;
  std::vector<Socket> listeners;
  for (int rank = 0; rank < ranks; ++rank) {
    auto listener = listen_at(loopback);
    ASSERT_TRUE(listener.ok());
    peers.push_back({*endpoint_of(*listener), "here"});
    listeners.push_back(std::move(*listener));
  }
  std::vector<std::uint64_t> lateness;
  std::array<Status, ranks> status;
  const auto body = [&](int rank) {
    auto channel =
        make_tcp_channel(std::move(listeners[static_cast<std::size_t>(rank)]), peers, {.rank = rank, .rail = "lo"});
    End end(channel.get(), ChannelKind::tcp, rank, ranks, deep_sleep());
    Status& mine = status[static_cast<std::size_t>(rank)];
    for (int round = 0; round < 30 && mine.ok(); ++round) {
      if (rank == 2) {
        const OwnTime time;
        mine = end.two_receives(0, 1);
        lateness.push_back(time.ns_since(std::max(end.got[0], end.got[1])));
        for (const int peer : {0, 1})
          if (mine.ok()) mine = end.message(true, peer);
        continue;
      }
      std::this_thread::sleep_for(milliseconds(rank == 0 ? 3 : 6));
      end.given = monotonic_ns();
      mine = end.message(true, 2);
      if (mine.ok()) mine = end.message(false, 2);
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
  for (const Status& each : status) EXPECT_TRUE(each.ok()) << each.message();
  ASSERT_EQ(lateness.size(), 30u);
  EXPECT_LT(undisturbed(lateness), 1'000'000u);
}

}  // namespace
}  // namespace plait::tl
