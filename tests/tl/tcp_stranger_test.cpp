// Another user of the machine or the network connects to a rank that waits for others: it gets nowhere, and the ranks
// come through.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "tests/tl/tcp_ranks.h"
#include "tl/tcp/attempt.h"
#include "tl/tcp/handshake.h"

namespace {
// What accept4() says next instead of looking; 0: it looks.
std::atomic<int> accept_fails{0};
}  // namespace

extern "C" int accept4(int listener, sockaddr* address, socklen_t* size, int flags) {
  if (const int error = accept_fails.exchange(0); error != 0) {
    errno = error;
    return -1;
  }
  static const auto real = reinterpret_cast<int (*)(int, sockaddr*, socklen_t*, int)>(dlsym(RTLD_NEXT, "accept4"));
  return real(listener, address, size, flags);
}

namespace plait::tl {
namespace {

using detail::Acceptance;
using detail::Answer;
using detail::Challenge;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Blocks; what does not come within two seconds does not come.
class Stranger {
 public:
  explicit Stranger(Endpoint to) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address{
        .sin_family = AF_INET, .sin_port = htons(to.port), .sin_addr = {htonl(to.address)}, .sin_zero = {}};
    const timeval limit{.tv_sec = 2, .tv_usec = 0};
    setsockopt(descriptor(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    connected_ = connect(descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  explicit Stranger(Socket accepted) : socket_(std::move(accepted)), connected_(true) {}
  bool connected() const { return connected_; }
  int descriptor() const { return socket_.descriptor(); }
  void say(const void* what, std::size_t bytes) const { send(descriptor(), what, bytes, MSG_NOSIGNAL); }
  template <class Message>
  bool hear(Message& message) const {
    return recv(descriptor(), &message, sizeof message, MSG_WAITALL) == static_cast<ssize_t>(sizeof message);
  }
  // While `glance` looks.
  template <class Glance>
  bool sent_away(Glance&& glance, milliseconds limit = seconds(2)) const {
    const auto begin = steady_clock::now();
    while (steady_clock::now() - begin < limit) {
      glance();
      char challenge[64];
      const ssize_t heard = recv(descriptor(), challenge, sizeof challenge, MSG_DONTWAIT);
      if (heard == 0 || (heard < 0 && errno != EAGAIN)) return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
  }

 private:
  Socket socket_;
  bool connected_ = false;
};

std::mt19937_64 seeded() {
  return std::mt19937_64(static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed()));
}

template <class Message>
Message guess(std::mt19937_64& random) {
  Message message;
  auto* bytes = reinterpret_cast<unsigned char*>(&message);
  for (std::size_t i = 0; i < sizeof message; ++i) bytes[i] = static_cast<unsigned char>(random());
  return message;
}

// Rank 2 of three waits for rank 0 all the time.
class TcpStranger : public testing::Test {
 protected:
  void begin(const ReceptionLimits& limits = {}) {
    ranks_ = std::make_unique<Ranks>(3, limits);
    ASSERT_TRUE(ranks_->channel(2).start(received_.transfer).ok());
    look();
  }
  void look() {
    const Status status = ranks_->glance();
    ASSERT_TRUE(status.ok()) << status.message();
  }
  // The challenge, as soon as there is one.
  Challenge challenge(const Stranger& stranger) {
    for (int looks = 0; looks < 100; ++looks) {
      look();
      pollfd ready{.fd = stranger.descriptor(), .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, 1) > 0) break;
    }
    Challenge heard;
    EXPECT_TRUE(stranger.hear(heard));
    return heard;
  }
  bool sent_away(const Stranger& stranger, milliseconds limit = seconds(2)) {
    return stranger.sent_away([&] { look(); }, limit);
  }
  void the_rank_comes_through() {
    ASSERT_EQ(ranks_->channel(2).active(), 1) << "nothing of a stranger's is taken for a message";
    ASSERT_TRUE(ranks_->channel(0).start(sent_.transfer).ok());
    const Status status = ranks_->finish();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(received_.storage, sent_.storage);
  }

  Message sent_{StepKind::send, 2, 8, 3}, received_{StepKind::recv, 0, 8};
  std::unique_ptr<Ranks> ranks_;
};

TEST_F(TcpStranger, GuessesGetNowhere) {
  begin();
  std::mt19937_64 random = seeded();
  for (int round = 0; round < 200; ++round) {
    const Stranger stranger(ranks_->endpoint(2));
    challenge(stranger);
    auto answer = guess<Answer>(random);
    if (round % 4 != 0) answer.rank = round % 4 - 1;  // 0, 1 and itself
    stranger.say(&answer, sizeof answer);
    const char message[12] = {8};
    stranger.say(message, sizeof message);
    ASSERT_TRUE(sent_away(stranger)) << round;
  }
  the_rank_comes_through();
}

TEST_F(TcpStranger, TheKeyOfAnotherCommunicatorIsOfNoUse) {
  begin();
  const Stranger stranger(ranks_->endpoint(2));
  detail::Meeting meeting{.connector = 0, .acceptor = 2, .connectors = {}, .acceptors = challenge(stranger).nonce};
  SharedKey other = key;
  other.back() ^= std::byte{1};
  const Answer answer{.rank = 0, .proof = detail::proof_of(detail::Role::connector, meeting, other)};
  stranger.say(&answer, sizeof answer);
  EXPECT_TRUE(sent_away(stranger));
  the_rank_comes_through();
}

// Not with the other role, nor what another rank would say.
TEST_F(TcpStranger, AProofIsOfARoleAndOfBothRanks) {
  begin();
  for (const auto& [role, connector, acceptor] :
       {std::tuple{detail::Role::acceptor, 0, 2}, std::tuple{detail::Role::connector, 1, 2},
        std::tuple{detail::Role::connector, 0, 1}}) {
    const Stranger stranger(ranks_->endpoint(2));
    const detail::Meeting meeting{
        .connector = connector, .acceptor = acceptor, .connectors = {}, .acceptors = challenge(stranger).nonce};
    const Answer answer{.rank = 0, .proof = detail::proof_of(role, meeting, key)};
    stranger.say(&answer, sizeof answer);
    EXPECT_TRUE(sent_away(stranger));
  }
  the_rank_comes_through();
}

// All that a rank said on a connection of its own, heard on the way, and said again.
TEST_F(TcpStranger, ARecordedHandshakeIsOfNoUse) {
  begin();
  Result<Socket> ear = listen_at(loopback);
  ASSERT_TRUE(ear.ok());
  detail::Attempt rank(0, 2, {.from = loopback, .to = *endpoint_of(*ear)}, key);
  ASSERT_TRUE(rank.advance().ok());
  Result<Opened> heard = accept_one(*ear);
  ASSERT_EQ(heard.value().outcome, Opening::made);
  const Stranger before(std::move(heard->socket));
  Answer recorded;
  {
    Ranks earlier(3);
    Message waits(StepKind::recv, 0, 1);
    ASSERT_TRUE(earlier.channel(2).start(waits.transfer).ok());
    const Stranger onward(earlier.endpoint(2));
    for (int looks = 0; looks < 3; ++looks) ASSERT_TRUE(earlier.glance().ok());
    Challenge asked;
    ASSERT_TRUE(onward.hear(asked));
    before.say(&asked, sizeof asked);
    ASSERT_FALSE(*rank.advance());
    ASSERT_TRUE(before.hear(recorded));
    onward.say(&recorded, sizeof recorded);
    for (int looks = 0; looks < 3; ++looks) ASSERT_TRUE(earlier.glance().ok());
    Acceptance accepted;
    ASSERT_TRUE(onward.hear(accepted)) << "as a mere listener on the way it did come through";
  }
  const Stranger again(ranks_->endpoint(2));
  challenge(again);
  again.say(&recorded, sizeof recorded);
  EXPECT_TRUE(sent_away(again));
  the_rank_comes_through();
}

// Who listens in a rank's place proves nothing by what it hears from the rank that connects.
TEST_F(TcpStranger, AReflectionIsOfNoUse) {
  Result<Socket> listener = listen_at(loopback);
  ASSERT_TRUE(listener.ok());
  detail::Attempt rank(0, 2, {.from = loopback, .to = *endpoint_of(*listener)}, key);
  ASSERT_TRUE(rank.advance().ok());
  Result<Opened> came = accept_one(*listener);
  ASSERT_EQ(came.value().outcome, Opening::made);
  const Stranger stranger(std::move(came->socket));
  const Challenge chosen{};
  stranger.say(&chosen, sizeof chosen);
  ASSERT_FALSE(*rank.advance());
  Answer answer;
  ASSERT_TRUE(stranger.hear(answer));
  stranger.say(&answer.proof, sizeof answer.proof);
  const Result<bool> accepted = rank.advance();
  ASSERT_FALSE(accepted.ok());
  EXPECT_NE(accepted.status().message().find("in its place"), std::string::npos) << accepted.status().message();
}

TEST_F(TcpStranger, SilenceEnds) {
  begin({.silence_ns = 200'000'000});
  const auto connected = steady_clock::now();
  const Stranger silent(ranks_->endpoint(2)), half(ranks_->endpoint(2));
  challenge(half);
  half.say("\0\0\0\0half of it", 14);
  const bool early = sent_away(silent, milliseconds(50));
  EXPECT_TRUE(!early || steady_clock::now() - connected >= milliseconds(200));
  EXPECT_TRUE(early || sent_away(silent));
  EXPECT_TRUE(sent_away(half));
  the_rank_comes_through();
}

TEST_F(TcpStranger, AWrongLengthEnds) {
  begin();
  std::mt19937_64 random = seeded();
  for (const std::size_t bytes : {sizeof(Answer) + 1, sizeof(Answer) * 2, std::size_t{100'000}}) {
    const Stranger stranger(ranks_->endpoint(2));
    std::vector<unsigned char> noise(bytes);
    for (unsigned char& byte : noise) byte = static_cast<unsigned char>(random());
    stranger.say(noise.data(), noise.size());
    EXPECT_TRUE(sent_away(stranger)) << bytes;
  }
  the_rank_comes_through();
}

TEST_F(TcpStranger, WhoClosesAtOnceLeavesNothing) {
  begin();
  for (int round = 0; round < 300; ++round) {
    const Stranger stranger(ranks_->endpoint(2));
    if (round % 3 == 0) {
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      setsockopt(stranger.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    if (round % 2 == 0) look();
  }
  the_rank_comes_through();
}

TEST_F(TcpStranger, SoManyWaitAndNoMore) {
  constexpr std::size_t places = 5;  // of which rank 2 keeps two for the ranks below it
  begin({.strangers = places - 2, .patience_ns = 0});
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int count = 0; count < 40; ++count) {
    strangers.push_back(std::make_unique<Stranger>(ranks_->endpoint(2)));
    look();
  }
  for (int looks = 0; looks < 100; ++looks) look();
  const auto gone = [&](const auto& stranger) { return sent_away(*stranger, milliseconds(50)); };
  EXPECT_EQ(std::count_if(strangers.begin(), strangers.end() - places, gone), 40 - static_cast<int>(places));
  EXPECT_EQ(std::count_if(strangers.end() - places, strangers.end(), gone), 0) << "the oldest go first";
  the_rank_comes_through();
}

// The rank was taken for one of the strangers and sent away before it could answer.
TEST_F(TcpStranger, ARankThatWasSentAwayTriesAgain) {
  begin({.strangers = 1, .patience_ns = 0});
  ASSERT_TRUE(ranks_->channel(0).start(sent_.transfer).ok());
  std::vector<Transfer*> completed;
  const auto only_rank_2_looks = [&] { ASSERT_TRUE(ranks_->channel(2).progress(completed).ok()); };
  only_rank_2_looks();
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int count = 0; count < 5; ++count) {
    strangers.push_back(std::make_unique<Stranger>(ranks_->endpoint(2)));
    only_rank_2_looks();
  }
  ASSERT_EQ(ranks_->channel(2).active(), 1) << "rank 0 has not answered yet";
  const Status status = ranks_->finish();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(received_.storage, sent_.storage);
}

// Two threads connect as fast as they can, hold what they have for a while, and say nothing, half of it or noise.
TEST_F(TcpStranger, ARankComesThroughAmongThousands) {
  begin();
  std::atomic<bool> stop{false};
  std::atomic<int> count{0};
  const auto hammer = [&](unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<std::unique_ptr<Stranger>> held;
    while (!stop) {
      held.push_back(std::make_unique<Stranger>(ranks_->endpoint(2)));
      ++count;
      const std::array<Answer, 2> answers{guess<Answer>(random), guess<Answer>(random)};  // less than one, and more
      if (random() % 3 != 0) held.back()->say(&answers, random() % (sizeof(Answer) + 8));
      if (held.size() > 100) held.erase(held.begin(), held.begin() + 50);
    }
  };
  std::vector<std::thread> threads;
  for (const unsigned seed : {1u, 2u}) threads.emplace_back(hammer, seed);
  while (count < 2000) look();
  ASSERT_TRUE(ranks_->channel(0).start(sent_.transfer).ok());
  Status status;
  const auto begin = steady_clock::now();
  while (status.ok() && ranks_->channel(2).active() + ranks_->channel(0).active() > 0 &&
         steady_clock::now() - begin < seconds(60))
    status = ranks_->glance();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(received_.storage, sent_.storage);
  RecordProperty("strangers", count.load());
}

// Rank 2 computes while strangers take all places in its kernel's queue: nobody answers rank 0's attempts to connect,
// which is no reason to give up while the host answers elsewhere.
TEST_F(TcpStranger, AFullQueueIsNoCutLink) {
  Result<Socket> listener = listen_at(loopback);
  ASSERT_TRUE(listener.ok());
  ASSERT_EQ(listen(listener->descriptor(), 1), 0);
  const Endpoint there = *endpoint_of(*listener);
  const ProbePort probe_port;
  std::vector<Socket> strangers;
  for (int count = 0; count < 4; ++count) {
    Result<Opened> one = connect_to(loopback, there);
    ASSERT_EQ(one.value().outcome, Opening::made);
    strangers.push_back(std::move(one->socket));
  }
  detail::Attempt rank(0, 2, {.from = loopback, .to = there, .probe_port = probe_port.number()}, key);
  const auto begin = steady_clock::now();
  while (steady_clock::now() - begin < milliseconds(8500)) {
    ASSERT_TRUE(rank.advance().ok());
    const Status status = rank.look_at_link();
    ASSERT_TRUE(status.ok()) << status.message();
    std::this_thread::sleep_for(milliseconds(100));
  }
  detail::Reception reception(std::move(*listener), 2, key, {});
  std::vector<detail::Guest> guests;
  bool accepted = false;
  while (!accepted && steady_clock::now() - begin < seconds(30)) {
    ASSERT_TRUE(reception.look(guests).ok());
    const Result<bool> advanced = rank.advance();
    ASSERT_TRUE(advanced.ok()) << advanced.status().message();
    accepted = *advanced;
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(accepted);
  // Of an attempt that was never renewed the kernel would have made the next try only after 15 s.
  EXPECT_LT(steady_clock::now() - begin, seconds(13));
}

TEST_F(TcpStranger, WhoListensNoMoreIsNotWaitedFor) {
  begin();
  ranks_->channel(2).abandon({Code::peer_failed, "given up"});
  Status status = ranks_->channel(0).start(sent_.transfer).status();
  if (status.ok()) status = ranks_->finish();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("rank 2 on here, rail lo"), std::string::npos) << status.message();
}

// Those of accept(2), as they come on Linux.
TEST_F(TcpStranger, WhatTheNetworkSaysAtAcceptIsNotTheEnd) {
  for (const int error : {ECONNABORTED, EINTR, ENETDOWN, EPROTO, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH,
                          EOPNOTSUPP, ENETUNREACH, EPERM, EMFILE, ENFILE, ENOBUFS, ENOMEM, ETIMEDOUT}) {
    begin();
    accept_fails = error;
    look();
    EXPECT_EQ(accept_fails, 0) << "not looked";
    SCOPED_TRACE(std::strerror(error));
    the_rank_comes_through();
    received_.storage.assign(8, std::byte{0});
    for (Message* message : {&sent_, &received_}) message->transfer.progressed = 0;
  }
}

// No files for anybody, until the process closes some.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(0);
    close(next);
    const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(TcpStranger, WithoutAFreeFileARankWaits) {
  begin();
  const Stranger stranger(ranks_->endpoint(2));
  {
    const NoMoreFiles none;
    ASSERT_TRUE(ranks_->channel(0).start(sent_.transfer).ok());
    WakeUp wake_up;
    look();
    EXPECT_FALSE(ranks_->channel(2).arm(wake_up)) << "who waits would wake at once, again and again";
    for (int looks = 0; looks < 100; ++looks) {
      look();
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  const Status status = ranks_->finish();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(received_.storage, sent_.storage);
}

TEST_F(TcpStranger, WithoutAFreeFileForLongARankIsNamed) {
  begin({.shortage_ns = 100'000'000});
  const Stranger stranger(ranks_->endpoint(2));
  const NoMoreFiles none;
  Status status;
  for (int looks = 0; looks < 1000 && status.ok(); ++looks) {
    status = ranks_->glance();
    std::this_thread::sleep_for(milliseconds(1));
  }
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("rank 0 on here, rail lo"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("Too many open files"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace plait::tl
