// What the programs behind perf/fused* share: ways to the same result, timed in turn in one job.
#pragma once

#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "plait/plait_fused.h"

namespace fused_timing {

inline int world_rank = 0, world_ranks = 1;

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// By rank: seconds of the slowest and of the fastest one.
struct Span {
  double slowest = 0, fastest = 0;
};

inline Span timed_on_all(const std::function<void()>& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now();
  work();
  const double mine = now() - begin;
  double ends[2] = {mine, -mine};
  MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return {ends[0], -ends[1]};
}

// The slowest rank's.
inline double timed(const std::function<void()>& work) { return timed_on_all(work).slowest; }

inline double median(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

struct Way {
  std::string name;
  std::function<void()> go;
};
struct WayTimes {
  std::vector<double> seconds, skew;  // of the slowest rank; by how much of that the fastest one was sooner
};
using Times = std::map<std::string, WayTimes>;

// Each way in turn, round after round.
inline Times time_in_turn(const std::vector<Way>& ways, int rounds) {
  Times times;
  for (int warm_up = 0; warm_up < 2; ++warm_up)
    for (const Way& way : ways) way.go();
  for (int round = 0; round < rounds; ++round)
    for (const Way& way : ways) {
      const Span span = timed_on_all(way.go);
      times[way.name].seconds.push_back(span.slowest);
      times[way.name].skew.push_back(1 - span.fastest / span.slowest);
    }
  return times;
}

inline void put_times(const Times& times, nlohmann::json& line) {
  for (const auto& [name, all] : times) {
    line["seconds"][name] = median(all.seconds);
    line["fastest_seconds"][name] = *std::ranges::min_element(all.seconds);
    line["rank_skew"][name] = median(all.skew);
  }
}

inline void print(const nlohmann::json& line) {
  if (world_rank == 0) std::printf("%s\n", line.dump().c_str());
}

// A call of MPI by Plait, or by the host alone.
template <class Call>
void by(bool plait, Call&& call) {
  const int before = plait_set_enabled(plait ? 1 : 0);
  call();
  plait_set_enabled(before);
}

// The same ways in so many chunks, the host's and Plait's: `go` has the number of chunks.
inline void add_chunked(std::vector<Way>& ways, const std::vector<int>& numbers, const std::function<void(int)>& go) {
  for (const bool plait : {false, true})
    for (const int chunks : numbers)
      ways.push_back({std::to_string(chunks) + (plait ? " chunks, plait" : " chunks, host"),
                      [=] { by(plait, [&] { go(chunks); }); }});
}

// Chunk after chunk, each one's collective under way while others are computed: `begin` begins a chunk's, `end` sees to
// what it has brought.
template <class Begin, class End>
void go_in_chunks(int chunks, Begin&& begin, End&& end) {
  std::vector<MPI_Request> requests(static_cast<std::size_t>(chunks));
  for (int chunk = 0; chunk < chunks; ++chunk) begin(chunk, requests[static_cast<std::size_t>(chunk)]);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    MPI_Wait(&requests[static_cast<std::size_t>(chunk)], MPI_STATUS_IGNORE);
    end(chunk);
  }
}

inline bool on_all(bool mine) {
  int all = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

// ---- Memory ----

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, FreeMemory>;

// In large pages where the system has them and they are wanted.
inline Memory make_memory(std::size_t bytes, bool large_pages) {
  constexpr std::size_t large_page = std::size_t{2} << 20;
  const std::size_t whole = (bytes + large_page - 1) / large_page * large_page;
  Memory made(static_cast<std::byte*>(std::aligned_alloc(large_page, whole)));
  if (large_pages) madvise(made.get(), whole, MADV_HUGEPAGE);
  return made;
}

// There until the process ends. Of plait_alloc(), or the program's own.
inline float* make_floats(std::size_t count, bool is_private) {
  const std::size_t bytes = std::max<std::size_t>(count, 1) * sizeof(float);
  auto* made =
      static_cast<float*>(is_private ? std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096) : plait_alloc(bytes));
  std::fill_n(made, count, 0.0f);
  return made;
}

// What a plain read of some memory gives, so that it is computed.
inline std::uint64_t read_all(const std::byte* memory, std::size_t bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(memory);
  const std::size_t count = bytes / sizeof(std::uint64_t) / 8 * 8;
  std::uint64_t sum[8] = {};
  for (std::size_t i = 0; i < count; i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane) sum[lane] += words[i + lane];
  return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

// ---- The job ----

template <class Measure>
int job(int argc, char** argv, const Measure& measure) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
  const int code = measure(argc, argv);
  MPI_Finalize();
  return code;
}

}  // namespace fused_timing
