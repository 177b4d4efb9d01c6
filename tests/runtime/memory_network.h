// Messages between ranks of one process: what a host's messages are to a job. They come in order, each after a delay
// that is drawn from a seed, and a rank may be cut off.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "runtime/oob/host_messages.h"
#include "tl/channel.h"

namespace plait::runtime {

class MemoryNetwork {
 public:
  // A message is found after up to `most_delay` looks in vain.
  MemoryNetwork(int ranks, std::uint64_t seed, int most_delay);

  // Messages meet within a context: what is sent in one is never received in another.
  std::unique_ptr<Channel> channel(int rank, std::uint64_t context, ChannelKind kind = ChannelKind::mpi);
  // A new one of that rank's: the same on all ranks that take them in the same order.
  std::uint64_t take_context(int rank) { return contexts_[static_cast<std::size_t>(rank)]++; }
  // A message by itself, and the next one from a rank, which is waited for.
  void put(int from, int to, std::uint64_t context, std::span<const std::byte> bytes);
  std::vector<std::byte> take(int rank, int from, std::uint64_t context);
  // That rank is gone: who waits for it hears so.
  void cut_off(int rank);
  // That rank's swap after so many more fails: before its message is sent, or behind it. Before the ranks run.
  void fail_swap(int rank, int after, bool sent) { failing_swap_ = {rank, after, sent}; }
  // So far.
  std::uint64_t messages() const { return messages_.load(); }

 private:
  friend class MemoryChannel;
  friend class MemoryMessages;
  struct Message {
    std::vector<std::byte> bytes;
    int looks_left;
  };
  struct Box {  // of one receiver
    std::mutex guard;
    std::condition_variable came;                                       // by put()
    std::map<std::pair<std::uint64_t, int>, std::deque<Message>> from;  // by context and sender
    std::mt19937_64 random;
  };

  struct FailingSwap {
    int rank = -1, left = 0;  // changed by its rank alone
    bool sent = false;
  };

  int most_delay_;
  FailingSwap failing_swap_;
  std::atomic<std::uint64_t> messages_{0};
  std::vector<std::unique_ptr<Box>> boxes_;
  std::vector<std::atomic<bool>> gone_;
  std::vector<std::uint64_t> contexts_;  // by rank, taken so far: each of its rank's thread
};

class MemoryMessages final : public HostMessages {
 public:
  MemoryMessages(MemoryNetwork& network, int rank)
      : network_(network), rank_(rank), context_(network.take_context(rank)) {}
  std::unique_ptr<Channel> make_channel() override { return network_.channel(rank_, context_); }
  // As of a network at which a byte takes a nanosecond.
  RateMeter meter() override;
  double way(const RateTrial&, int) override { return 1e-6; }
  bool swap(const Swap& swap) override;
  void leave(int to, std::int64_t number) noexcept override {
    network_.put(rank_, to, context_ | swaps, {reinterpret_cast<const std::byte*>(&number), sizeof number});
  }

 private:
  static constexpr std::uint64_t swaps = std::uint64_t{1} << 63;  // in contexts of their own

  MemoryNetwork& network_;
  int rank_;
  std::uint64_t context_;
};

}  // namespace plait::runtime
