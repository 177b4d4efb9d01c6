// Ranks of one process that talk over sockets, and messages for them.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <memory>
#include <vector>

#include "tl/tcp/tcp_channel.h"

namespace plait::tl {

inline constexpr std::uint32_t loopback = 0x7f000001;
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

// The same for all of them, so that what was heard of one set could be tried on another.
inline constexpr SharedKey key = {std::byte{47}, std::byte{11}};

// Ranks of this process, over the loopback interface.
class Ranks {
 public:
  explicit Ranks(int ranks, const ReceptionLimits& limits = {}) {
    std::vector<Socket> listeners;
    for (int rank = 0; rank < ranks; ++rank) {
      auto listener = listen_at(loopback);
      EXPECT_TRUE(listener.ok());
      peers_.push_back({*endpoint_of(*listener), "here"});
      listeners.push_back(std::move(*listener));
    }
    for (int rank = 0; rank < ranks; ++rank)
      channels_.push_back(make_tcp_channel(std::move(listeners[static_cast<std::size_t>(rank)]), peers_,
                                           {.rank = rank, .key = key, .rail = "lo", .limits = limits}));
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

}  // namespace plait::tl
