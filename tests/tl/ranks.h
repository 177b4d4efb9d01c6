// Runs a function as several ranks of one node, in forked processes or in threads, with a segment among them.
#pragma once

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tl/shm/segment_shape.h"
#include "tl/shm/shm_channel.h"
#include "topo/hierarchy.h"

namespace plait::tl {

// A segment whose rings have `pair_bytes` each.
inline std::size_t segment_for(int ranks, std::size_t pair_bytes) {
  const std::size_t rings = detail::pair_count(ranks) * pair_bytes, control_blocks = static_cast<std::size_t>(ranks);
  return rings + std::clamp(rings, control_blocks * detail::least_control_bytes,
                            control_blocks * detail::generous_control_bytes);
}

// Threads that stand for the ranks of a hierarchy, in one piece of memory: a channel among the ranks of each node, and
// one among all, by which those of different nodes exchange messages.
class NodeMemory {
 public:
  NodeMemory(const Hierarchy& hierarchy, std::size_t pair_bytes) : pair_bytes_(pair_bytes) {
    for (int node = 0; node < hierarchy.nodes(); ++node) nodes_.push_back(hierarchy.ranks_on_node(node));
    for (int rank = 0; rank < hierarchy.ranks(); ++rank) all_.push_back(rank);
  }

  std::size_t bytes() const {
    std::size_t bytes = bytes_for(all_);
    for (const std::vector<int>& ranks : nodes_) bytes += bytes_for(ranks);
    return bytes;
  }

  // Nothing for a rank that is alone on its node.
  Result<std::unique_ptr<Channel>> within_node(std::byte* memory, int rank, ShmChannelOptions options) const {
    for (const std::vector<int>& ranks : nodes_) {
      if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end())
        memory += bytes_for(ranks);
      else if (ranks.size() > 1)
        return make(memory, ranks, rank, options);
    }
    return std::unique_ptr<Channel>();
  }

  Result<std::unique_ptr<Channel>> among_all(std::byte* memory, int rank) const {
    return make(memory + bytes() - bytes_for(all_), all_, rank, {});
  }

 private:
  std::size_t bytes_for(const std::vector<int>& ranks) const {
    return segment_for(static_cast<int>(ranks.size()), pair_bytes_);
  }
  Result<std::unique_ptr<Channel>> make(std::byte* memory, const std::vector<int>& ranks, int self,
                                        ShmChannelOptions options) const {
    std::vector<ShmPeer> peers;
    for (const int rank : ranks) peers.push_back({rank, getpid()});
    const auto index = std::find(ranks.begin(), ranks.end(), self) - ranks.begin();
    return make_shm_channel(SharedSegment::view(memory, bytes_for(ranks)), peers, static_cast<int>(index), options);
  }

  std::size_t pair_bytes_;
  std::vector<std::vector<int>> nodes_;
  std::vector<int> all_;
};

// Names memory of this process, which threads share, by its address; a part of it, as a seed decides, is private.
class ThreadBuffers final : public PeerBuffers {
 public:
  ThreadBuffers(std::uint64_t seed, unsigned private_of_eight) : seed_(seed), private_(private_of_eight) {}

  std::optional<std::uint64_t> name(const std::byte* address, std::size_t) const override {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    if (((value / 64 ^ seed_) * 0x9E3779B97F4A7C15u) >> 61 < private_) return std::nullopt;
    return value;
  }
  std::byte* find(std::size_t, std::uint64_t name, std::size_t) const override {
    return reinterpret_cast<std::byte*>(name);
  }

 private:
  std::uint64_t seed_;
  unsigned private_;
};

// Empty, or what went wrong.
using RankBody = std::function<std::string(int rank, SharedSegment segment, const std::vector<ShmPeer>& peers)>;

// Rank k's process runs for 60 s at most. Returns the number of ranks that failed; they say why on standard error.
inline int run_processes(int ranks, std::size_t segment_bytes, const RankBody& body) {
  auto segment = SharedSegment::create(segment_bytes + 4096);  // the last page is for the process ids
  if (!segment.ok()) return ranks;
  auto* processes = reinterpret_cast<std::atomic<int>*>(segment->data() + segment_bytes);
  const SegmentOffer offer = segment->offer();
  std::vector<int> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const int child = fork();
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    alarm(60);
    processes[rank] = getpid();
    std::vector<ShmPeer> peers;
    for (int peer = 0; peer < ranks; ++peer) {
      while (processes[peer] == 0) sched_yield();
      peers.push_back({peer, processes[peer]});
    }
    auto attached = SharedSegment::attach(offer);
    const std::string problem = attached.ok() ? body(rank, std::move(*attached), peers) : attached.status().message();
    if (!problem.empty()) std::fprintf(stderr, "rank %d: %s\n", rank, problem.c_str());
    _exit(problem.empty() ? 0 : 1);
  }
  int failed = 0;
  for (const int child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) ++failed;
  }
  return failed;
}

// The same in threads of this process, which is what the thread sanitizer can follow.
inline int run_threads(int ranks, std::size_t segment_bytes, const RankBody& body) {
  auto segment = SharedSegment::create(segment_bytes);
  if (!segment.ok()) return ranks;
  std::vector<ShmPeer> peers;
  for (int rank = 0; rank < ranks; ++rank) peers.push_back({rank, getpid()});
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const std::string problem = body(rank, SharedSegment::view(segment->data(), segment_bytes), peers);
      if (problem.empty()) return;
      std::fprintf(stderr, "rank %d: %s\n", rank, problem.c_str());
      ++failed;
    });
  for (std::thread& thread : threads) thread.join();
  return failed;
}

}  // namespace plait::tl
