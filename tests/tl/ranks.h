// Runs a function as several ranks of one node, in forked processes or in threads, with a segment among them.
#pragma once

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tl/shm/segment_shape.h"
#include "tl/shm/shm_channel.h"

namespace plait {

// A segment whose rings have `pair_bytes` each.
inline std::size_t segment_for(int ranks, std::size_t pair_bytes) {
  const std::size_t rings = detail::pair_count(ranks) * pair_bytes, boards = static_cast<std::size_t>(ranks);
  return rings + std::clamp(rings, boards * detail::least_board_bytes, boards * detail::generous_board_bytes);
}

// Empty, or what went wrong.
using RankBody = std::function<std::string(int rank, SharedSegment segment, const std::vector<ShmPeer>& peers)>;

// Rank k's process runs for 60 s at most. Returns the number of ranks that failed; they say why on standard error.
inline int run_processes(int ranks, std::size_t segment_bytes, const RankBody& body) {
  auto segment = SharedSegment::create(segment_bytes + 4096);  // the last page is for the process ids
  if (!segment.ok()) return ranks;
  auto* processes = reinterpret_cast<std::atomic<int>*>(segment->data() + segment_bytes);
  const int parent = getpid(), descriptor = segment->descriptor();
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
    auto attached = SharedSegment::attach(parent, descriptor, segment_bytes + 4096);
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

}  // namespace plait
