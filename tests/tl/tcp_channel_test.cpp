// The channel over plain sockets, between ranks of this process over the loopback interface.
#include "tl/tcp/tcp_channel.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

namespace plait::tl {
namespace {

constexpr std::uint32_t loopback = 0x7f000001;
constexpr std::uint64_t token = 4711;

struct Message {
  Message(StepKind kind, int peer, std::size_t bytes, int value = 0)
      : storage(bytes, static_cast<std::byte>(value)), span{0, bytes, Space::input} {
    buffers.base[0] = storage.data();
    transfer.kind = kind;
    transfer.peer = peer;
    transfer.bytes = bytes;
    transfer.memory = {&span, bytes > 0 ? 1u : 0u, &buffers};
  }
  std::vector<std::byte> storage;
  BoundSpan span;
  Buffers buffers;
  Transfer transfer;
};

class Ranks {
 public:
  explicit Ranks(int ranks) {
    std::vector<Socket> listeners;
    for (int rank = 0; rank < ranks; ++rank) {
      auto listener = listen_at(loopback, ranks);
      EXPECT_TRUE(listener.ok());
      peers_.push_back({*endpoint_of(*listener), "here"});
      listeners.push_back(std::move(*listener));
    }
    for (int rank = 0; rank < ranks; ++rank)
      channels_.push_back(make_tcp_channel(std::move(listeners[static_cast<std::size_t>(rank)]), peers_,
                                           {.rank = rank, .token = token, .rail = "lo"}));
  }
  Channel& channel(int rank) { return *channels_[static_cast<std::size_t>(rank)]; }
  Endpoint endpoint(int rank) const { return peers_[static_cast<std::size_t>(rank)].endpoint; }
  Status glance() {
    for (auto& channel : channels_) {
      if (channel->active() == 0) continue;
      const Result<bool> moved = channel->progress(completed_);
      if (!moved.ok()) return moved.status();
    }
    return {};
  }
  Status finish() {
    for (int glances = 0; glances < 1'000'000; ++glances) {
      int active = 0;
      for (auto& channel : channels_) active += channel->active();
      if (active == 0) return {};
      if (Status status = glance(); !status.ok()) return status;
      sched_yield();
    }
    return {Code::internal, "hangs"};
  }

 private:
  std::vector<TcpPeer> peers_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Transfer*> completed_;
};

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

TEST(TcpChannel, SendsAwayStrangers) {
  Ranks ranks(2);
  const sockaddr_in address{
      .sin_family = AF_INET, .sin_port = htons(ranks.endpoint(1).port), .sin_addr = {htonl(loopback)}, .sin_zero = {}};
  struct {
    std::uint64_t token;
    std::int32_t rank, unused;
  } const greetings[] = {{token + 1, 0, 0}, {token, 1, 0}, {token, -1, 0}, {token, 7, 0}};
  Message sent(StepKind::send, 1, 8, 3), received(StepKind::recv, 0, 8);
  ASSERT_TRUE(ranks.channel(1).start(received.transfer).ok());
  std::vector<int> strangers;
  for (const auto& greeting : greetings) {
    strangers.push_back(socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(connect(strangers.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(send(strangers.back(), &greeting, sizeof greeting, 0), static_cast<ssize_t>(sizeof greeting));
    ASSERT_TRUE(ranks.glance().ok());
  }
  strangers.push_back(socket(AF_INET, SOCK_STREAM, 0));  // says nothing
  ASSERT_EQ(connect(strangers.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_TRUE(ranks.channel(0).start(sent.transfer).ok());
  ASSERT_TRUE(ranks.finish().ok());
  EXPECT_EQ(received.storage, sent.storage);
  for (const int stranger : strangers) close(stranger);
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
  EXPECT_NE(status.message().find("rank 0 on here, rail lo"), std::string::npos) << status.message();
}

TEST(TcpChannel, AnotherLengthIsAnError) {
  Ranks ranks(2);
  Message sent(StepKind::send, 1, 8, 3), received(StepKind::recv, 0, 9);
  ASSERT_TRUE(ranks.channel(0).start(sent.transfer).ok());
  ASSERT_TRUE(ranks.channel(1).start(received.transfer).ok());
  EXPECT_FALSE(ranks.finish().ok());
}

TEST(TcpSocket, AFreshConnectionIsNotCut) {
  const Result<Socket> listener = listen_at(loopback, 1);
  ASSERT_TRUE(listener.ok());
  const Result<Socket> made = connect_to(loopback, *endpoint_of(*listener));
  ASSERT_TRUE(made.ok());
  EXPECT_FALSE(is_cut(*made));
}

}  // namespace
}  // namespace plait::tl
