// The channel over plain sockets, between ranks of this process over the loopback interface.
#include "tl/tcp/tcp_channel.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <thread>

#include "tests/tl/tcp_ranks.h"
#include "tl/tcp/link_watch.h"

namespace plait::tl {
namespace {

TEST(TcpChannel, MessagesOfAllPairsArriveInOrder) {
  constexpr int ranks = 5;
  constexpr std::size_t sizes[] = {1, 0, 300'000, 7, 65'536};
  Ranks all(ranks);
  std::vector<std::unique_ptr<Message>> sent, received;
  for (std::size_t k = 0; k < std::size(sizes); ++k)
    for (int from = 0; from < ranks; ++from)
      for (int to = 0; to < ranks; ++to) {
        if (from == to) continue;
        sent.push_back(
            std::make_unique<Message>(StepKind::send, to, sizes[k], from * 40 + to * 8 + static_cast<int>(k)));
        received.push_back(std::make_unique<Message>(StepKind::recv, from, sizes[k]));
        ASSERT_TRUE(all.channel(from).start(sent.back()->transfer).ok());
        ASSERT_TRUE(all.channel(to).start(received.back()->transfer).ok());
      }
  const Status status = all.finish();
  ASSERT_TRUE(status.ok()) << status.message();
  for (std::size_t k = 0; k < sent.size(); ++k) EXPECT_EQ(received[k]->storage, sent[k]->storage) << k;
}

// Columns of a byte on one side, of three on the other.
TEST(TcpChannel, MessagesInShortRunsArrive) {
  Ranks ranks(2);
  constexpr std::size_t bytes = 99'999;
  Message sent(StepKind::send, 1, bytes * 4), received(StepKind::recv, 0, bytes * 4);
  for (std::size_t i = 0; i < sent.storage.size(); ++i) sent.storage[i] = static_cast<std::byte>(i * 2654435761u >> 24);
  RunGrid thin{.origin = 1, .run = 1, .levels = 1, .level = {{{bytes, 4}}}};
  RunGrid wider{.origin = 0, .run = 3, .levels = 2, .level = {{{3, 11}, {(bytes + 8) / 9, 34}}}};
  for (Message* message : {&sent, &received}) {
    message->span = {0, bytes, Space::input, 0};
    message->transfer.bytes = bytes;
    message->transfer.memory.grids = message == &sent ? &thin : &wider;
  }
  ASSERT_LE(wider.offset_of(bytes - 1), received.storage.size());
  ASSERT_TRUE(ranks.channel(0).start(sent.transfer).ok());
  ASSERT_TRUE(ranks.channel(1).start(received.transfer).ok());
  const Status status = ranks.finish();
  ASSERT_TRUE(status.ok()) << status.message();
  for (std::uint64_t at = 0; at < bytes; ++at)
    ASSERT_EQ(received.storage[wider.offset_of(at)], sent.storage[thin.offset_of(at)]) << at;
}

// A rank may compute for as long as it likes while others have sent it more than the sockets hold.
TEST(TcpChannel, WaitsForAPeerThatDoesNotReadForLong) {
  Ranks ranks(2);
  constexpr std::size_t bytes = 32 << 20;
  Message sent(StepKind::send, 1, bytes, 5), hello(StepKind::send, 1, 1, 1), greeted(StepKind::recv, 0, 1);
  ASSERT_TRUE(ranks.channel(0).start(hello.transfer).ok());
  ASSERT_TRUE(ranks.channel(1).start(greeted.transfer).ok());
  ASSERT_TRUE(ranks.finish().ok());
  ASSERT_TRUE(ranks.channel(0).start(sent.transfer).ok());
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(14)) {
    const Status status = ranks.glance();
    ASSERT_TRUE(status.ok()) << status.message();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  Message received(StepKind::recv, 0, bytes);
  ASSERT_TRUE(ranks.channel(1).start(received.transfer).ok());
  const Status status = ranks.finish();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(received.storage, sent.storage);
}

TEST(TcpChannel, APeerThatGivesUpIsNamed) {
  Ranks ranks(2);
  Message hello(StepKind::send, 1, 1, 1), greeted(StepKind::recv, 0, 1);
  ASSERT_TRUE(ranks.channel(0).start(hello.transfer).ok());
  ASSERT_TRUE(ranks.channel(1).start(greeted.transfer).ok());
  ASSERT_TRUE(ranks.finish().ok());
  Message waits(StepKind::recv, 0, 1), never(StepKind::recv, 1, 1);
  ASSERT_TRUE(ranks.channel(1).start(waits.transfer).ok());
  ASSERT_TRUE(ranks.channel(0).start(never.transfer).ok());
  ranks.channel(0).abandon({Code::peer_failed, "given up"});
  const Status status = ranks.finish();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::peer_left);
  EXPECT_NE(status.message().find("rank 0 on here, rail lo"), std::string::npos) << status.message();
}

TEST(TcpChannel, AnotherLengthIsAnError) {
  Ranks ranks(2);
  Message sent(StepKind::send, 1, 8, 3), received(StepKind::recv, 0, 9);
  ASSERT_TRUE(ranks.channel(0).start(sent.transfer).ok());
  ASSERT_TRUE(ranks.channel(1).start(received.transfer).ok());
  EXPECT_FALSE(ranks.finish().ok());
}

bool asks_for_life(int descriptor) {
  int asks = 0;
  socklen_t size = sizeof asks;
  return getsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &asks, &size) == 0 && asks != 0;
}

int sockets_that_ask_for_life() {
  int count = 0;
  for (int descriptor = 0; descriptor < 256; ++descriptor) count += asks_for_life(descriptor) ? 1 : 0;
  return count;
}

// What the kernel is told to find out about ends an idle connection in an outage of seconds.
TEST(TcpChannel, OnlyAnAwaitedConnectionIsAskedForLife) {
  Ranks ranks(2);
  Message hello(StepKind::send, 1, 1, 1), greeted(StepKind::recv, 0, 1);
  ASSERT_TRUE(ranks.channel(0).start(hello.transfer).ok());
  ASSERT_TRUE(ranks.channel(1).start(greeted.transfer).ok());
  ASSERT_TRUE(ranks.finish().ok());
  EXPECT_EQ(sockets_that_ask_for_life(), 0) << "both ends are idle";
  Message sent(StepKind::send, 1, 1, 2), received(StepKind::recv, 0, 1);
  ASSERT_TRUE(ranks.channel(1).start(received.transfer).ok());
  const auto begin = std::chrono::steady_clock::now();
  while (sockets_that_ask_for_life() == 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(30))
    for (int glances = 0; glances < 1000; ++glances) {
      const Status status = ranks.glance();
      ASSERT_TRUE(status.ok()) << status.message();
    }
  EXPECT_EQ(sockets_that_ask_for_life(), 1) << "rank 1 waits";
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(900));
  ASSERT_TRUE(ranks.channel(0).start(sent.transfer).ok());
  ASSERT_TRUE(ranks.finish().ok());
  EXPECT_EQ(sockets_that_ask_for_life(), 0) << "idle again";
}

TEST(TcpSocket, AFreshConnectionIsNotCut) {
  const Result<Socket> listener = listen_at(loopback);
  ASSERT_TRUE(listener.ok());
  const Result<Opened> made = connect_to(loopback, *endpoint_of(*listener));
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made.value().outcome, Opening::made);
  detail::LinkWatch watch;
  EXPECT_FALSE(watch.cut(made.value().socket));
  EXPECT_TRUE(asks_for_life(made.value().socket.descriptor()));
  watch.end(made.value().socket);
  EXPECT_FALSE(asks_for_life(made.value().socket.descriptor()));
}

}  // namespace
}  // namespace plait::tl
