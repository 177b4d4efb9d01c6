// Shared-memory collectives of a node's ranks, in all their ways, drawn at random and run in a row without a barrier in
// between; results are compared with the plain definition of each kind.
//
// --gtest_random_seed replays the draws.
#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "perf/helped.h"
#include "tests/tl/collective_traffic.h"
#include "tests/tl/ranks.h"
#include "tl/engine.h"
#include "tl/shm/node_collectives.h"
#include "tl/shm/segment_shape.h"

namespace plait::tl {
namespace {

using test::Random;

#if defined(__SANITIZE_THREAD__)
constexpr int calls_of_a_job = 8;
#else
constexpr int calls_of_a_job = 40;
#endif
constexpr auto patience = std::chrono::seconds(120);

std::uint64_t seed() {
  static const std::uint64_t drawn = [] {
    const auto given = static_cast<std::uint64_t>(::testing::GTEST_FLAG(random_seed));
    const std::uint64_t chosen = given != 0 ? given : std::random_device()() % 99999 + 1;
    std::printf("seed %llu (--gtest_random_seed replays it)\n", static_cast<unsigned long long>(chosen));
    std::fflush(stdout);
    return chosen;
  }();
  return drawn;
}

// How the members of a job may reach each other's memory.
struct Means {
  bool shared = false;  // through PoolBuffers
  std::size_t kernel_from = ~std::size_t{0};
};
constexpr Means only_stages{}, shared_buffers{.shared = true}, by_kernel{.kernel_from = 1},
    long_by_kernel{.kernel_from = 5000}, everything{.shared = true, .kernel_from = 3000};

struct CollectiveJob {
  std::uint64_t seed = 1;
  int ranks = 2;
  Means means;
  std::size_t segment_bytes = 0;
  int calls = calls_of_a_job;
  std::uint32_t first_round = 0;
  bool small = false;  // small ones only: many in a row
  int workers = 0;     // of each rank, and steps that are long enough for them
  Draws draws = Draws::anything;
};

// The sizes at which a step changes its way, or the number of its rounds.
std::vector<std::size_t> sizes_for(const CollectiveJob& job) {
  std::vector<std::size_t> sizes = {0, 1, 7, 8, 55, 56, 57, 64};
  if (job.draws == Draws::from_first) return {8, 56, 57, 500};
  if (job.draws == Draws::at_once) return {0, 56, 57, 256, 257, 600, 2000};
  if (job.small) return sizes;
  if (job.workers > 0) return {300'001, std::size_t{1} << 20, (std::size_t{1} << 21) + 77};
  const detail::ControlShape shape = detail::segment_shape(job.segment_bytes, job.ranks).control_block;
  const std::size_t area = shape.area_bytes, stage = shape.stage_bytes;
  for (const std::size_t size : {area, stage, stage * static_cast<std::size_t>(job.ranks)})
    for (const std::size_t near : {size - 1, size, size + 1})
      if (size > 0) sizes.push_back(near);
  for (const std::size_t size : {4096ul * 13, 3 * stage + 5, 9 * stage + 17}) sizes.push_back(size);
  for (std::size_t& size : sizes) size = std::min(size, std::size_t{1} << 20);
  return sizes;
}

struct Outcome {
  std::string problem;
  std::size_t found = 0;       // how often shared memory of others was used
  std::size_t by_workers = 0;  // WorkTeam::by_workers()
};

void stand_at(const CollectiveJob& job, const SharedSegment& segment, int rank) {
  const detail::ControlShape shape = detail::segment_shape(job.segment_bytes, job.ranks).control_block;
  const detail::ControlBlock control_block(segment.data() + static_cast<std::size_t>(rank) * shape.bytes(), shape);
  control_block.control().copied_in = control_block.control().reduced = control_block.control().copied_out =
      job.first_round;
}

Outcome run_rank(const CollectiveJob& job, int rank, SharedSegment segment, const std::vector<ShmPeer>& peers,
                 const CollectivePools& pools) {
  PoolBuffers buffers(pools, rank);
  ShmChannelOptions options;
  if (job.means.shared) options.buffers = &buffers;
  options.single_copy = job.means.kernel_from != ~std::size_t{0};
  options.collective_single_copy_from = options.pair_single_copy_from = job.means.kernel_from;
  auto channel = make_shm_channel(SharedSegment::view(segment.data(), job.segment_bytes), peers, rank, options);
  if (!channel.ok()) return {channel.status().message()};
  Engine engine(by_kind({channel->get()}), {.yield = true});
  std::optional<perf::Helped> helped;
  if (job.workers > 0) helped.emplace(job.workers);
  const std::vector<std::size_t> sizes = sizes_for(job);
  Random own(test::derive(job.seed, static_cast<std::uint64_t>(rank), 99));
  Outcome outcome;
  for (int call = 0; call < job.calls; ++call) {
    // A few calls drawn at random may all leave shared memory alone.
    const bool last_of_shared = job.means.shared && call + 1 == job.calls;
    const CollectiveTraffic traffic(test::derive(job.seed, static_cast<std::uint64_t>(call), 5), rank, job.ranks, sizes,
                                    last_of_shared ? Draws::through_shared : job.draws);
    if (own.one_in(8) && !(job.draws == Draws::from_first && rank == 0))
      std::this_thread::sleep_for(std::chrono::microseconds(own.below(500)));
    const std::string problem = traffic.run(engine, pools);
    if (outcome.problem.empty() && !problem.empty()) outcome.problem = "call " + std::to_string(call) + ": " + problem;
  }
  if (helped.has_value()) outcome.by_workers = helped->team.by_workers();
  outcome.found = buffers.found();
  return outcome;
}

// The other ranks of a rank that hangs or fails wait for ever, so that the whole program ends.
class Watch {
 public:
  explicit Watch(std::string what)
      : thread_([what](std::stop_token stop) {
          const auto begin = std::chrono::steady_clock::now();
          while (!stop.stop_requested()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            if (std::chrono::steady_clock::now() - begin < patience) continue;
            std::fprintf(stderr, "%s does not end\n", what.c_str());
            std::_Exit(1);
          }
        }) {}

 private:
  std::jthread thread_;
};

std::string describe(const CollectiveJob& job) {
  return "job seed " + std::to_string(job.seed) + ", " + std::to_string(job.ranks) + " ranks, segment of " +
         std::to_string(job.segment_bytes) + ", shared " + std::to_string(job.means.shared) + ", kernel from " +
         std::to_string(job.means.kernel_from);
}

// The number of ranks that failed; `found` and `by_workers` of all ranks together.
int run_in_threads(const CollectiveJob& job, std::size_t* found = nullptr, std::size_t* by_workers = nullptr) {
  const Watch watch(describe(job));
  const CollectivePools pools(job.ranks);
  if (!pools.ok()) return job.ranks;
  std::atomic<std::size_t> all = 0, all_by_workers = 0;
  std::barrier placed(job.ranks);
  const int failed = run_threads(job.ranks, job.segment_bytes, [&](int rank, SharedSegment segment, const auto& peers) {
    stand_at(job, segment, rank);
    placed.arrive_and_wait();
    Outcome outcome = run_rank(job, rank, std::move(segment), peers, pools);
    all += outcome.found;
    all_by_workers += outcome.by_workers;
    return outcome.problem;
  });
  if (found != nullptr) *found = all;
  if (by_workers != nullptr) *by_workers += all_by_workers;
  return failed;
}

#if !defined(__SANITIZE_THREAD__)  // it does not follow forks of programs with threads
int run_in_processes(const CollectiveJob& job) {
  const CollectivePools pools(job.ranks);
  if (!pools.ok()) return job.ranks;
  return run_processes(job.ranks, job.segment_bytes, [&](int rank, SharedSegment segment, const auto& peers) {
    return run_rank(job, rank, std::move(segment), peers, pools).problem;
  });
}
#endif

constexpr int rank_counts[] = {2, 3, 4, 5, 7, 8, 13};

plan::BoundShmCollective collective_of(plan::ShmCollectiveKind kind, int members, std::uint64_t bytes) {
  plan::BoundShmCollective collective;
  collective.kind = kind;
  collective.bytes = bytes;
  for (int member = 0; member < members; ++member) collective.members.push_back(member);
  return collective;
}

std::uint64_t copied(plan::ShmCollectiveKind kind, int members, const detail::CopyingRanks& ranks) {
  return detail::copied_together(collective_of(kind, members, 48 << 20), ranks);
}

// Two are done when one has copied all. More than two hold each other up at one process's memory, and go by shares:
// these have to be long, and longer where the stages are.
TEST(CopiedTogether, OfABroadcastIsAPartOfAShareWhereSeveralGetTheSame) {
  using enum plan::ShmCollectiveKind;
  EXPECT_FALSE(detail::goes_by_shares(collective_of(broadcast, 2, 1)));
  EXPECT_EQ(copied(broadcast, 2, {.roomy = true}), 48u << 20);
  for (const int members : {3, 16}) {
    EXPECT_TRUE(detail::goes_by_shares(collective_of(broadcast, members, 1)));
    EXPECT_EQ(copied(broadcast, members, {}), (48u << 20) / (4 * static_cast<unsigned>(members)));
    EXPECT_EQ(copied(broadcast, members, {.roomy = true}), (48u << 20) / (16 * static_cast<unsigned>(members)));
  }
}

TEST(CopiedTogether, OfPairsIsWhatARankHasForAllWhereItHasACore) {
  using enum plan::ShmCollectiveKind;
  EXPECT_EQ(copied(all_to_all, 2, {}), 48u << 20);
  EXPECT_EQ(copied(all_to_all, 16, {}), std::uint64_t{8 * 48} << 20);
  EXPECT_EQ(copied(all_to_all, 16, {.crowded = true}), 48u << 20);
}

class ShmCollectives : public testing::TestWithParam<int> {
 protected:
  CollectiveJob job(const Means& means, std::uint64_t salt, std::size_t segment_bytes) const {
    return {.seed = test::derive(seed(), salt, static_cast<std::uint64_t>(GetParam())),
            .ranks = GetParam(),
            .means = means,
            .segment_bytes = segment_bytes};
  }
  std::size_t least() const { return detail::least_segment_bytes(GetParam()); }
  std::size_t usual() const { return SharedSegment::default_bytes(GetParam()); }
};

TEST_P(ShmCollectives, InStages) {
  EXPECT_EQ(run_in_threads(job(only_stages, 1, least())), 0);
  EXPECT_EQ(run_in_threads(job(only_stages, 2, usual())), 0);
}

TEST_P(ShmCollectives, BetweenSharedBuffers) {
  std::size_t found = 0;
  EXPECT_EQ(run_in_threads(job(shared_buffers, 3, least()), &found), 0);
  EXPECT_GT(found, 0u);
  EXPECT_EQ(run_in_threads(job(shared_buffers, 4, usual())), 0);
}

// Threads of one process may read its memory through the kernel as well.
TEST_P(ShmCollectives, ByTheKernelAndAnyWay) {
  EXPECT_EQ(run_in_threads(job(by_kernel, 5, least())), 0);
  EXPECT_EQ(run_in_threads(job(long_by_kernel, 6, usual())), 0);
  EXPECT_EQ(run_in_threads(job(everything, 7, usual())), 0);
}

TEST_P(ShmCollectives, InSegmentsOfAnySize) {
  Random random(test::derive(seed(), static_cast<std::uint64_t>(GetParam()), 8));
  for (const std::uint64_t salt : {8u, 9u, 10u}) {
    CollectiveJob any = job(salt == 8 ? everything : only_stages, salt, least() + random.below(2 * least()));
    any.calls /= 2;
    EXPECT_EQ(run_in_threads(any), 0) << describe(any);
  }
}

// It runs ahead until no slot or area is free.
TEST_P(ShmCollectives, ARootThatWaitsForNobody) {
  CollectiveJob ahead = job(only_stages, 16, usual());
  ahead.calls = 10 * calls_of_a_job;
  ahead.draws = Draws::from_first;  // which the others follow late
  EXPECT_EQ(run_in_threads(ahead), 0);
}

// Of all kinds in any order, those in which all ranks wait for all and those in which some go ahead.
TEST_P(ShmCollectives, ManyInSlotsAndAreas) {
  CollectiveJob many = job(only_stages, 17, usual());
  many.calls = 10 * calls_of_a_job;
  many.draws = Draws::at_once;
  EXPECT_EQ(run_in_threads(many), 0);
}

TEST_P(ShmCollectives, ManySmallOnesInARow) {
  CollectiveJob many = job(shared_buffers, 11, usual());
  many.calls = 10 * calls_of_a_job;
  many.small = true;
  EXPECT_EQ(run_in_threads(many), 0);
}

TEST_P(ShmCollectives, RoundsMayWrapAround) {
  CollectiveJob late = job(only_stages, 12, least());
  late.first_round = ~std::uint32_t{0} - 40;
  EXPECT_EQ(run_in_threads(late), 0);
  late.means = by_kernel;
  late.first_round = ~std::uint32_t{0} - 2;
  EXPECT_EQ(run_in_threads(late), 0);
}

// Two threads a rank on its copies and reductions.
TEST(HelpedShmCollectives, AnyWay) {
  std::uint64_t salt = 20;
  std::size_t by_workers = 0;
  for (const int ranks : {2, 3})
    for (const Means& means : {only_stages, shared_buffers, by_kernel}) {
      const CollectiveJob helped{.seed = test::derive(seed(), ++salt, 1),
                                 .ranks = ranks,
                                 .means = means,
                                 .segment_bytes = SharedSegment::default_bytes(ranks),
                                 .workers = 1};
      EXPECT_EQ(run_in_threads(helped, nullptr, &by_workers), 0) << describe(helped);
    }
  EXPECT_GT(by_workers, 0u);
}

#if !defined(__SANITIZE_THREAD__)
TEST_P(ShmCollectives, BetweenProcesses) {
  EXPECT_EQ(run_in_processes(job(only_stages, 13, least())), 0);
  EXPECT_EQ(run_in_processes(job(everything, 14, usual())), 0);
  EXPECT_EQ(run_in_processes(job(by_kernel, 15, usual())), 0);
}
#endif

INSTANTIATE_TEST_SUITE_P(Ranks, ShmCollectives, testing::ValuesIn(rank_counts));

// Gathers to rank 0 of pieces whose givers say how much of them counts.
struct MeasuredGathers {
  int rank = 0, ranks = 2;
  std::size_t limit = 0;
  BoundSchedule schedule;
  std::vector<std::byte> piece, gathered;

  MeasuredGathers(int own, int all, std::size_t most)
      : rank(own), ranks(all), limit(most), piece(most), gathered(most * static_cast<std::size_t>(all)) {
    BoundShmCollective collective = collective_of(ShmCollectiveKind::gather, all, most * static_cast<std::size_t>(all));
    collective.self = own;
    collective.piece_offsets = {0};
    for (int member = 0; member < all; ++member)
      collective.piece_offsets.push_back(collective.piece_offsets.back() + most);
    ScheduleBuilder builder(1);
    const ScheduleBuilder::Spans all_pieces = {{0, gathered.size(), Space::output}};
    builder.collective(collective, {{0, most, Space::input}}, own == 0 ? all_pieces : ScheduleBuilder::Spans{});
    schedule = builder.build();
  }

  static std::byte value(int of, std::size_t call) { return static_cast<std::byte>(37 * of + 11 * call); }

  // Empty, or what is wrong. `lengths`: by rank, what counts; behind it nothing may be written.
  std::string run(Engine& engine, std::size_t call, const std::vector<std::size_t>& lengths) {
    constexpr std::byte untouched{0xee};
    std::ranges::fill(piece, value(rank, call));
    std::ranges::fill(gathered, untouched);
    Buffers buffers{{piece.data(), gathered.data(), nullptr}};
    buffers.piece_limit = limit;
    buffers.piece_used = lengths[static_cast<std::size_t>(rank)];
    if (const Status status = engine.run(schedule, buffers, nullptr, nullptr); !status.ok()) return status.message();
    for (int from = 1; rank == 0 && from < ranks; ++from)
      for (std::size_t i = 0; i < limit; ++i) {
        const std::byte wanted = i < lengths[static_cast<std::size_t>(from)] ? value(from, call) : untouched;
        if (gathered[static_cast<std::size_t>(from) * limit + i] == wanted) continue;
        return "call " + std::to_string(call) + ": byte " + std::to_string(i) + " from rank " + std::to_string(from);
      }
    return {};
  }
};

TEST_P(ShmCollectives, GathersOfPiecesWhoseGiversSayHowLongTheyAre) {
  const int ranks = GetParam();
  const std::size_t segment_bytes = SharedSegment::default_bytes(ranks);
  const int failed = run_threads(ranks, segment_bytes, [&](int rank, SharedSegment segment, const auto& peers) {
    auto channel = make_shm_channel(std::move(segment), peers, rank, {});
    Engine engine(by_kind({channel->get()}), {.yield = true});
    Random random(test::derive(seed(), static_cast<std::uint64_t>(ranks), 21));  // the same on all ranks
    std::string problem;
    for (const std::size_t limit : {std::size_t{64}, std::size_t{264}, std::size_t{304}, std::size_t{2000}}) {
      MeasuredGathers gathers(rank, ranks, limit);
      for (std::size_t call = 0; call < 10 * calls_of_a_job && problem.empty(); ++call) {
        std::vector<std::size_t> lengths;
        const std::size_t most = random.one_in(2) ? 60 : limit;
        for (int from = 0; from < ranks; ++from) lengths.push_back(random.below(std::min(most, limit) + 1));
        problem = gathers.run(engine, call, lengths);
      }
    }
    return problem;
  });
  EXPECT_EQ(failed, 0);
}

// Whatever they could give: a root that is late has many calls of short pieces before it.
TEST(ShmCollectiveGathers, OfShortPiecesMayBeManyAheadOfTheRoot) {
  constexpr int ahead = 60;
  constexpr auto soon = std::chrono::seconds(20);
  std::atomic<int> given = 0;
  const int failed =
      run_threads(2, SharedSegment::default_bytes(2), [&](int rank, SharedSegment segment, const auto& peers) {
        auto channel = make_shm_channel(std::move(segment), peers, rank, {});
        Engine engine(by_kind({channel->get()}), {.yield = true});
        MeasuredGathers gathers(rank, 2, 2000);
        const auto begin = std::chrono::steady_clock::now();
        while (rank == 0 && given < ahead && std::chrono::steady_clock::now() - begin < soon)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::string problem = rank == 0 && given < ahead ? "rank 1 waits for the root" : "";
        for (std::size_t call = 0; call < ahead; ++call) {
          const std::string wrong = gathers.run(engine, call, {0, 8 + call});
          if (problem.empty()) problem = wrong;
          if (rank == 1) ++given;
        }
        return problem;
      });
  EXPECT_EQ(failed, 0);
}

// A process that is gone: an error that names the rank, here and from then on; no wrong result.
TEST(ShmCollectiveFailures, AFailedCopyByTheKernelIsSaid) {
  const int gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  const CollectiveJob job{.seed = 3, .ranks = 3, .means = by_kernel, .segment_bytes = detail::least_segment_bytes(3)};
  const int failed =
      run_threads(3, job.segment_bytes, [&](int rank, SharedSegment segment, std::vector<ShmPeer> peers) {
        for (ShmPeer& peer : peers) peer.process = gone;
        auto channel =
            make_shm_channel(std::move(segment), peers, rank, {.single_copy = true, .collective_single_copy_from = 1});
        Engine engine(by_kind({channel->get()}), {.yield = true});
        std::vector<std::byte> from(20000), to(20000);
        const Buffers buffers{{from.data(), to.data(), nullptr}};
        const Reducer reducer = make_reducer(Op::sum, Element::u32);
        BoundShmCollective collective{.kind = ShmCollectiveKind::all_reduce,
                                      .self = rank,
                                      .members = {0, 1, 2},
                                      .bytes = 20000,
                                      .piece_offsets = {}};
        ScheduleBuilder builder(4);
        builder.collective(collective, {{0, 20000, Space::input}}, {{0, 20000, Space::output}});
        const BoundSchedule schedule = builder.build();
        const Status first = engine.run(schedule, buffers, &reducer, nullptr);
        if (first.ok()) return std::string("the step succeeded");
        if (first.message().find("process " + std::to_string(gone)) == std::string::npos) return first.message();
        if (engine.run(schedule, buffers, &reducer, nullptr).ok()) return std::string("the step after it succeeded");
        return std::string();
      });
  EXPECT_EQ(failed, 0);
}

// A step of fewer ranks than the node has would meet another one of the rest.
TEST(ShmCollectiveFailures, AStepOfFewerRanksIsRefused) {
  auto segment = SharedSegment::create(detail::least_segment_bytes(3));
  ASSERT_TRUE(segment.ok());
  const std::vector<ShmPeer> peers = {{0, getpid()}, {1, getpid()}, {2, getpid()}};
  auto channel = make_shm_channel(std::move(*segment), peers, 0, {});
  ASSERT_TRUE(channel.ok());
  Engine engine(by_kind({channel->get()}), {.yield = true});
  ScheduleBuilder builder(1);
  builder.collective({.kind = ShmCollectiveKind::broadcast, .members = {0, 1}, .bytes = 8, .piece_offsets = {}},
                     {{0, 8, Space::input}}, {});
  std::byte memory[8]{};
  const Status status = engine.run(builder.build(), {{memory, memory, memory}}, nullptr, nullptr);
  EXPECT_EQ(status.message(), "shm: a shared-memory collective of 2 ranks on a node of 3");
}

}  // namespace
}  // namespace plait::tl
