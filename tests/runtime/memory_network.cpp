#include "tests/runtime/memory_network.h"

#include <sched.h>

#include <algorithm>
#include <string>

#include "tl/memory.h"

namespace plait::runtime {

// Sends are complete at once; receives wait in the order in which they were started.
class MemoryChannel final : public Channel {
 public:
  MemoryChannel(MemoryNetwork& network, int rank, std::uint64_t context, ChannelKind kind)
      : network_(network), rank_(rank), context_(context), kind_(kind) {}
  ChannelKind kind() const override { return kind_; }
  int active() const override { return active_; }

  Result<bool> start(Transfer& transfer) override {
    if (Status status = reachable(transfer.peer); !status.ok()) return status;
    if (transfer.kind == StepKind::send) {
      send(transfer);
      return true;
    }
    receives_[transfer.peer].push_back(&transfer);
    ++active_;
    return false;
  }

  Result<bool> progress(std::vector<Transfer*>& completed) override {
    const std::size_t before = completed.size();
    for (auto& [peer, started] : receives_)
      while (!started.empty()) {
        const Result<bool> came = receive(peer, *started.front());
        if (!came.ok()) return came.status();
        if (!*came) break;
        completed.push_back(started.front());
        started.pop_front();
        --active_;
      }
    return completed.size() > before;
  }

  void abandon(const Status&) override {
    receives_.clear();
    active_ = 0;
  }

 private:
  Status reachable(int peer) const {
    if (!network_.gone_[static_cast<std::size_t>(peer)].load()) return {};
    return {Code::peer_left, "memory: rank " + std::to_string(peer) + " has left"};
  }
  void send(const Transfer& transfer) {
    MemoryNetwork::Message message{std::vector<std::byte>(transfer.bytes), 0};
    copy_out(transfer.memory, 0, message.bytes.data(), message.bytes.size());
    MemoryNetwork::Box& box = *network_.boxes_[static_cast<std::size_t>(transfer.peer)];
    ++network_.messages_;
    const std::scoped_lock lock(box.guard);
    message.looks_left = std::uniform_int_distribution<int>(0, network_.most_delay_)(box.random);
    box.from[{context_, rank_}].push_back(std::move(message));
  }
  Result<bool> receive(int peer, Transfer& transfer) {
    MemoryNetwork::Box& box = *network_.boxes_[static_cast<std::size_t>(rank_)];
    std::unique_lock lock(box.guard);
    auto& queue = box.from[{context_, peer}];
    if (queue.empty()) {
      lock.unlock();
      if (Status status = reachable(peer); !status.ok()) return status;
      return false;
    }
    if (queue.front().looks_left-- > 0) return false;
    const MemoryNetwork::Message message = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    if (message.bytes.size() != transfer.bytes)
      return Status(Code::internal, "memory: a message of " + std::to_string(message.bytes.size()) +
                                        " bytes, expected " + std::to_string(transfer.bytes));
    if (transfer.kind == StepKind::recv_reduce)
      reduce_in(transfer, 0, message.bytes.data(), message.bytes.size());
    else
      copy_in(transfer.memory, 0, message.bytes.data(), message.bytes.size());
    return true;
  }

  MemoryNetwork& network_;
  const int rank_;
  const std::uint64_t context_;
  const ChannelKind kind_;
  std::map<int, std::deque<Transfer*>> receives_;  // by sender
  int active_ = 0;
};

MemoryNetwork::MemoryNetwork(int ranks, std::uint64_t seed, int most_delay)
    : most_delay_(most_delay), gone_(static_cast<std::size_t>(ranks)), contexts_(static_cast<std::size_t>(ranks)) {
  std::seed_seq seeds{seed};
  std::vector<std::uint32_t> own(static_cast<std::size_t>(ranks));
  seeds.generate(own.begin(), own.end());
  for (const std::uint32_t one : own) {
    boxes_.push_back(std::make_unique<Box>());
    boxes_.back()->random.seed(one);
  }
}

std::unique_ptr<Channel> MemoryNetwork::channel(int rank, std::uint64_t context, ChannelKind kind) {
  return std::make_unique<MemoryChannel>(*this, rank, context, kind);
}

void MemoryNetwork::cut_off(int rank) { gone_[static_cast<std::size_t>(rank)].store(true); }

RateMeter MemoryMessages::meter() {
  return {.make_room = [](int) {}, .measure = [](const RateTrial&) { return MeasuredRate{64e-9, 1e-6}; }};
}

void MemoryNetwork::put(int from, int to, std::uint64_t context, std::span<const std::byte> bytes) {
  Box& box = *boxes_[static_cast<std::size_t>(to)];
  const std::scoped_lock lock(box.guard);
  const int late = std::uniform_int_distribution<int>(0, most_delay_)(box.random);
  box.from[{context, from}].push_back({{bytes.begin(), bytes.end()}, late});
  box.came.notify_all();
}

std::vector<std::byte> MemoryNetwork::take(int rank, int from, std::uint64_t context) {
  Box& box = *boxes_[static_cast<std::size_t>(rank)];
  std::unique_lock lock(box.guard);
  auto& queue = box.from[{context, from}];
  box.came.wait(lock, [&queue] { return !queue.empty(); });
  while (queue.front().looks_left-- > 0) {
    lock.unlock();
    sched_yield();
    lock.lock();
  }
  std::vector<std::byte> bytes = std::move(queue.front().bytes);
  queue.pop_front();
  return bytes;
}

bool MemoryMessages::swap(const Swap& swap) {
  MemoryNetwork::FailingSwap& failing = network_.failing_swap_;
  const bool fails = failing.rank == rank_ && failing.left-- == 0;
  if (fails && !failing.sent) return false;
  network_.put(rank_, swap.to, context_ | swaps, {static_cast<const std::byte*>(swap.out), swap.out_bytes});
  if (fails) return false;
  const std::vector<std::byte> bytes = network_.take(rank_, swap.from, context_ | swaps);
  if (bytes.size() > swap.in_bytes) return false;
  std::ranges::copy(bytes, static_cast<std::byte*>(swap.in));
  return true;
}

}  // namespace plait::runtime
