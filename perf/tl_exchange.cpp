// What the shared-memory channel makes of the patterns a two-rank collective consists of, by mechanism:
//   exchange   allreduce: both send all they have and reduce what comes
//   halves     allreduce: send one half, reduce the other, send the result, receive the other result
//   bcast      rank 0 sends, rank 1 receives
// Two processes, pinned to two cores; one line a size: microseconds a call, from a common start to the later rank's
// end, in the best of many short batches, since other work on the machine only ever makes it slower.
//
//   tl_exchange [largest bytes [chunks [segment bytes]]]
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <vector>

#include "core/reduction.h"
#include "tests/tl/schedule_builder.h"
#include "tl/engine.h"
#include "tl/shm/shm_channel.h"

namespace {

using namespace plait;
using namespace plait::tl;

constexpr std::size_t element_bytes = 4;

constexpr ChannelKind shm = ChannelKind::shm;

BoundSchedule exchange(int rank, std::size_t bytes, std::size_t) {
  const int peer = 1 - rank;
  ScheduleBuilder builder(element_bytes);
  builder.send(shm, peer, {{0, bytes, Space::input}});
  builder.recv_reduce(shm, peer, {{0, bytes, Space::output}}, {{0, bytes, Space::input}}, peer == 0);
  return builder.build();
}

// The results of a chunk are sent after the next chunk's contribution, when the peer is likely to have them.
BoundSchedule halves(int rank, std::size_t bytes, std::size_t chunks) {
  const int peer = 1 - rank;
  const std::size_t half = bytes / 2, chunk = half / chunks;
  const std::size_t mine = static_cast<std::size_t>(rank) * half, other = half - mine;
  ScheduleBuilder builder(element_bytes);
  std::vector<std::uint32_t> reduced(chunks);
  for (std::size_t k = 0; k <= chunks; ++k) {
    const std::size_t now = k * chunk, before = now - chunk;
    if (k < chunks) {
      builder.send(shm, peer, {{other + now, chunk, Space::input}});
      reduced[k] = builder.recv_reduce(shm, peer, {{mine + now, chunk, Space::output}},
                                       {{mine + now, chunk, Space::input}}, peer == 0);
    }
    if (k == 0) continue;
    builder.send(shm, peer, {{mine + before, chunk, Space::output}}, {reduced[k - 1]});
    builder.recv(shm, peer, {{other + before, chunk, Space::output}});
  }
  return builder.build();
}

BoundSchedule bcast(int rank, std::size_t bytes, std::size_t) {
  ScheduleBuilder builder(element_bytes);
  if (rank == 0)
    builder.send(shm, 1, {{0, bytes, Space::output}});
  else
    builder.recv(shm, 0, {{0, bytes, Space::output}});
  return builder.build();
}

struct Pattern {
  const char* name;
  BoundSchedule (*make)(int rank, std::size_t bytes, std::size_t chunks);
  std::size_t least, most;  // bytes of the whole vector
};

const Pattern patterns[] = {{"exchange", exchange, 8, 64 * 1024},
                            {"halves", halves, 1024, ~std::size_t{0}},
                            {"bcast", bcast, 8, ~std::size_t{0}}};

struct Mechanism {
  const char* name;
  ShmChannelOptions options;
};

const Mechanism mechanisms[] = {
    {"slots", {}},
    {"copy", {.single_copy = true, .single_copy_threshold = 1}},
    {"built-in", {.single_copy = true}},
};

// What the two processes share besides the segments.
struct Shared {
  alignas(64) std::atomic<std::uint32_t> arrived[2];
  alignas(64) double seconds[2][64];
};

void meet(Shared& shared, int rank, std::uint32_t& round) {
  shared.arrived[rank].store(++round, std::memory_order_release);
  while (static_cast<std::int32_t>(shared.arrived[1 - rank].load(std::memory_order_acquire) - round) < 0) {
  }
}

void pin(int rank) {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&one);
  for (int core = 0, found = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed) && found++ == rank) CPU_SET(core, &one);
  if (CPU_COUNT(&one) == 1) sched_setaffinity(0, sizeof one, &one);
}

void die(const Status& status) {
  std::fprintf(stderr, "tl_exchange: %s\n", status.message().c_str());
  std::exit(1);
}

class Process {
 public:
  Process(Shared& shared, int rank, std::span<const ShmPeer> peers, std::size_t largest)
      : shared_(shared), rank_(rank), peers_(peers.begin(), peers.end()), input_(largest), output_(largest) {}

  // The best batch's seconds a call of the slower rank; the same on both.
  double measure(Channel& channel, const BoundSchedule& schedule, std::size_t bytes) {
    Engine engine(by_kind({&channel}), {});
    const Reducer reducer = make_reducer(Op::sum, Element::f32);
    const Buffers buffers{{input_.data(), output_.data(), nullptr}};
    constexpr int batches = 60;
    const int calls = static_cast<int>(std::clamp<std::size_t>(1'000'000 / (bytes + 1), 2, 1000));
    for (int batch = 0; batch < batches; ++batch) {
      std::uint64_t total_ns = 0;
      for (int call = 0; call < calls; ++call) {
        meet(shared_, rank_, round_);
        const std::uint64_t begin = monotonic_ns();
        if (Status status = engine.run(schedule, buffers, &reducer, nullptr); !status.ok()) die(status);
        total_ns += monotonic_ns() - begin;
      }
      shared_.seconds[rank_][batch] = 1e-9 * static_cast<double>(total_ns) / calls;
    }
    meet(shared_, rank_, round_);
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t batch = 0; batch < batches; ++batch)
      best = std::min(best, std::max(shared_.seconds[0][batch], shared_.seconds[1][batch]));
    meet(shared_, rank_, round_);
    return best;
  }

  std::unique_ptr<Channel> channel(const ShmChannelOptions& options, const SegmentOffer& offer) {
    auto segment = SharedSegment::attach(offer);
    if (!segment.ok()) die(segment.status());
    auto channel = make_shm_channel(std::move(*segment), peers_, rank_, options);
    if (!channel.ok()) die(channel.status());
    return std::move(*channel);
  }

 private:
  Shared& shared_;
  int rank_;
  std::vector<ShmPeer> peers_;
  std::vector<std::byte> input_, output_;
  std::uint32_t round_ = 0;
};

void report(const char* pattern, std::size_t bytes, const std::vector<double>& seconds) {
  std::printf("%-10s %9zu", pattern, bytes);
  for (double value : seconds) std::printf(" %10.2f", value * 1e6);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t largest = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 16u << 20;
  const std::size_t chunks = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::size_t segment_bytes = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : SharedSegment::default_bytes(2);
  std::vector<SharedSegment> segments;
  for (std::size_t i = 0; i < std::size(mechanisms); ++i) {
    auto segment = SharedSegment::create(segment_bytes);
    if (!segment.ok()) die(segment.status());
    segments.push_back(std::move(*segment));
  }
  void* page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Shared& shared = *new (page) Shared{};
  const int parent = getpid();
  std::vector<SegmentOffer> offers;
  for (const SharedSegment& segment : segments) offers.push_back(segment.offer());
  const int child = fork();
  const int rank = child == 0 ? 1 : 0;
  ShmPeer peers[2] = {{0, parent}, {1, child == 0 ? getpid() : child}};
  pin(rank);

  Process process(shared, rank, peers, largest);
  std::vector<std::unique_ptr<Channel>> channels;
  for (std::size_t i = 0; i < std::size(mechanisms); ++i)
    channels.push_back(process.channel(mechanisms[i].options, offers[i]));
  if (rank == 0) {
    std::printf("# %zu chunks, segment %zu bytes, microseconds\n%-10s %9s", chunks, segment_bytes, "pattern", "bytes");
    for (const Mechanism& mechanism : mechanisms) std::printf(" %10s", mechanism.name);
    std::printf("\n");
  }
  for (const Pattern& pattern : patterns) {
    for (std::size_t bytes = pattern.least; bytes <= std::min(pattern.most, largest); bytes *= 2) {
      const BoundSchedule schedule = pattern.make(rank, bytes, std::min(chunks, bytes / 128));
      std::vector<double> seconds;
      for (auto& channel : channels) seconds.push_back(process.measure(*channel, schedule, bytes));
      if (rank == 0) report(pattern.name, bytes, seconds);
    }
  }
  if (child == 0) return 0;
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
