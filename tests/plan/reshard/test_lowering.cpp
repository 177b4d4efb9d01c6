// Every strategy with every scheduler: proven, and run on bytes by simulated ranks against a plain gather and scatter.
#include <gtest/gtest.h>

#include <numeric>
#include <tuple>

#include "plan/lower/proof.h"
#include "plan/reshard/lowering.h"
#include "tests/plan/reshard/random_task.h"
#include "tests/plan/simulated_ranks.h"

namespace plait::plan::reshard {
namespace {

constexpr unsigned seed = 20261122;

// A rank's part of the whole tensor, element by element.
std::vector<std::byte> gather(const Task& task, const std::vector<std::byte>& tensor, const Box& box) {
  std::vector<std::byte> part;
  for (std::int64_t i = 0; i < box.elements(); ++i) {
    std::int64_t rest = i, number = 0, stride = 1;
    for (int d = box.dimensions; d-- > 0;) {
      const auto at = static_cast<std::size_t>(d);
      number += (box.extent[at].begin + rest % box.length(d)) * stride;
      rest /= box.length(d);
      stride *= task.shape[at];
    }
    const std::byte* element = tensor.data() + static_cast<std::size_t>(number) * task.element_bytes;
    part.insert(part.end(), element, element + task.element_bytes);
  }
  return part;
}

Routes routes(const std::vector<int>& host_of, bool shared_memory) {
  return shared_memory ? routes_by_node(host_of, ChannelKind::shm, ChannelKind::ucx) : Routes(ChannelKind::ucx);
}

std::vector<std::byte> random_tensor(const Task& task, Random& random) {
  std::size_t bytes = task.element_bytes;
  for (const std::int64_t length : task.shape) bytes *= static_cast<std::size_t>(length);
  std::vector<std::byte> tensor(bytes);
  for (std::byte& byte : tensor) byte = static_cast<std::byte>(random() & 0xFF);
  return tensor;
}

std::uint32_t no_combination(std::uint32_t, std::uint32_t) { return 0; }

void expect_arrival(const Task& task, const Plan& plan, const LoweredPlan& lowered, Random& random) {
  const std::vector<std::byte> tensor = random_tensor(task, random);
  std::vector<SimulatedRank> ranks;
  for (int rank = 0; rank < lowered.semantics.ranks(); ++rank) {
    const BlockPlaces places = places_of(task, plan, lowered.semantics, rank);
    SimulatedRank one;
    one.schedule = bind(lowered.schedules[static_cast<std::size_t>(rank)], lowered.semantics, rank,
                        {.element_bytes = task.element_bytes, .places = &places});
    one.input = gather(task, tensor, shard_of(task.source, task.source_spec, task.shape, rank));
    one.output.assign(gather(task, tensor, shard_of(task.destination, task.destination_spec, task.shape, rank)).size(),
                      std::byte{0x5A});
    one.scratch.resize(one.schedule.scratch_bytes);
    EXPECT_LE(one.schedule.input_bytes, one.input.size());
    EXPECT_LE(one.schedule.output_bytes, one.output.size());
    ranks.push_back(std::move(one));
  }
  ASSERT_TRUE(SimulatedJob(ranks, static_cast<unsigned>(random()), no_combination).run());
  for (int rank = 0; rank < lowered.semantics.ranks(); ++rank)
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)].output,
              gather(task, tensor, shard_of(task.destination, task.destination_spec, task.shape, rank)))
        << "rank " << rank;
}

TEST(Grid, HasEveryElementOfAPieceInOrder) {
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    const int dimensions = draw(random, 1, 6);
    Box local{dimensions, {}}, piece{dimensions, {}};
    for (int d = 0; d < dimensions; ++d) {
      const auto at = static_cast<std::size_t>(d);
      local.extent[at] = {draw(random, 0, 3), 0};
      local.extent[at].end = local.extent[at].begin + draw(random, 1, 4);
      piece.extent[at].begin = local.extent[at].begin + draw(random, 0, static_cast<int>(local.length(d)) - 1);
      piece.extent[at].end =
          draw(random, static_cast<int>(piece.extent[at].begin) + 1, static_cast<int>(local.extent[at].end));
    }
    std::vector<std::uint64_t> expected;
    for (std::int64_t i = 0; i < local.elements(); ++i) {
      std::int64_t rest = i;
      bool inside = true;
      for (int d = dimensions; d-- > 0;) {
        const std::int64_t coordinate = local.extent[static_cast<std::size_t>(d)].begin + rest % local.length(d);
        rest /= local.length(d);
        inside = inside && coordinate >= piece.extent[static_cast<std::size_t>(d)].begin &&
                 coordinate < piece.extent[static_cast<std::size_t>(d)].end;
      }
      for (std::uint64_t byte = 0; inside && byte < 3; ++byte)
        expected.push_back(static_cast<std::uint64_t>(i) * 3 + byte);
    }
    const RunGrid grid = grid_of(piece, local, 3);
    std::vector<std::uint64_t> found;
    for (std::uint64_t at = 0; at < static_cast<std::uint64_t>(piece.elements()) * 3; ++at)
      found.push_back(grid.offset_of(at));
    EXPECT_EQ(found, expected) << "seed " << seed << ", round " << round;
  }
}

TEST(Resharding, ArrivesInVeryThinColumns) {
  Random random(seed + 1);
  for (int round = 0; round < 150; ++round) {
    const int ranks = draw(random, 1, 9);
    const Task task = thin_task(random, ranks);
    const std::vector<int> host_of = random_hosts(random, ranks);
    Options options;
    options.strategy = static_cast<Strategy>(round % strategy_count);
    options.scheduler = Scheduler::load_balance;
    options.chunks = draw(random, 0, 5);
    SCOPED_TRACE("seed " + std::to_string(seed + 1) + ", round " + std::to_string(round) + ": " + text(task) + " " +
                 std::string(name(options.strategy)));
    const auto plan = make_plan(task, host_of, options);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const auto lowered = lower(*plan, host_of, routes(host_of, draw(random, 0, 3) > 0));
    ASSERT_TRUE(lowered.ok()) << lowered.status().message();
    const Status proven = prove(lowered->semantics, lowered->schedules, true);
    ASSERT_TRUE(proven.ok()) << proven.message();
    expect_arrival(task, *plan, *lowered, random);
  }
}

// However short its runs are: what a rank keeps to find its data grows with the blocks, not with the runs.
TEST(Resharding, KeepsNoEntryForARun) {
  for (const auto& [from, to, shape] :
       {std::tuple{"S0R", "RS0", std::vector<std::int64_t>{1 << 20, 16}},
        std::tuple{"RS0", "S0R", std::vector<std::int64_t>{1 << 20, 16}},
        std::tuple{"RS0RR", "RRS0S1", std::vector<std::int64_t>{1 << 16, 8, 8, 4}},
        std::tuple{"RRRRRS10", "S0RRRRR", std::vector<std::int64_t>{64, 16, 16, 16, 8, 8}}}) {
    Task task;
    task.source = consecutive_mesh({4, 2}, 0);
    task.destination = consecutive_mesh({4, 2}, 8);
    task.source_spec = *parse_spec(from, "s");
    task.destination_spec = *parse_spec(to, "d");
    task.shape = shape;
    std::vector<int> host_of;
    for (int rank = 0; rank < 16; ++rank) host_of.push_back(rank / 4);
    const auto plan = make_plan(task, host_of, {});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const auto lowered = lower(*plan, host_of, routes(host_of, true));
    for (int rank = 0; rank < 16; ++rank) {
      const BlockPlaces places = places_of(task, *plan, lowered->semantics, rank);
      EXPECT_EQ(places.input.size() + places.output.size(),
                lowered->semantics.input_cells(rank) + lowered->semantics.output_cells(rank));
      EXPECT_LE(places.grids.size(), 2 * plan->tasks.size());
      const Schedule& schedule = lowered->schedules[static_cast<std::size_t>(rank)];
      const BoundSchedule bound = bind(schedule, lowered->semantics, rank, {.element_bytes = 1, .places = &places});
      EXPECT_LE(bound.spans.size(), 2 * schedule.steps.size()) << from << " to " << to;
      const std::size_t table = bound.spans.size() * sizeof(BoundSpan) + bound.grids.size() * sizeof(RunGrid);
      EXPECT_LT(table, 64u << 10) << from << " to " << to << ": 16 MiB or more, of which this rank has an eighth";
    }
  }
}

TEST(Resharding, IsProvenAndArrivesWithEveryStrategyAndScheduler) {
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    const int ranks = draw(random, 1, 9);
    const Task task = random_task(random, ranks, 9);
    const std::vector<int> host_of = random_hosts(random, ranks);
    for (int s = 0; s < strategy_count; ++s)
      for (int k = 0; k < scheduler_count; ++k) {
        Options options;
        options.strategy = static_cast<Strategy>(s);
        options.scheduler = static_cast<Scheduler>(k);
        options.budget = {.depth_first_steps = 5000, .greedy_steps = 5000, .seed = 7};
        options.chunks = draw(random, 0, 5);
        SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round) + ": " + text(task) + " " +
                     std::string(name(options.strategy)) + " " + std::string(name(options.scheduler)));
        const auto plan = make_plan(task, host_of, options);
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        const bool shared = draw(random, 0, 3) > 0;
        const auto lowered = lower(*plan, host_of, routes(host_of, shared));
        ASSERT_TRUE(lowered.ok()) << lowered.status().message();
        const Status proven = prove(lowered->semantics, lowered->schedules, true);
        ASSERT_TRUE(proven.ok()) << proven.message();
        if (k == round % scheduler_count) expect_arrival(task, *plan, *lowered, random);
      }
  }
}

Task whole_to_halves() {
  Task task;
  task.source = consecutive_mesh({2}, 0);
  task.destination = consecutive_mesh({2}, 2);
  task.source_spec = *parse_spec("R", "s");
  task.destination_spec = *parse_spec("S0", "d");
  task.shape = {64};
  return task;
}

// The proof knows holders that stand for each other, and nobody else.
TEST(Resharding, IsRefusedByTheProofWhereABlockIsWrong) {
  const Task task = whole_to_halves();
  const std::vector<int> host_of = {0, 0, 1, 1};
  const auto plan = make_plan(task, host_of, {});
  const auto lowered = lower(*plan, host_of, routes(host_of, true));
  ASSERT_TRUE(prove(lowered->semantics, lowered->schedules, true).ok());
  auto lost = lowered->schedules;
  for (Schedule& schedule : lost)
    std::erase_if(schedule.steps, [](const Step& step) { return step.kind == StepKind::recv; });
  EXPECT_FALSE(prove(lowered->semantics, lost, true).ok());
  auto wrong = lowered->schedules;
  for (CellRun& run : wrong[0].runs) run.first ^= 1u;
  for (CellRun& run : wrong[1].runs) run.first ^= 1u;
  EXPECT_FALSE(prove(lowered->semantics, wrong, true).ok());
}

std::size_t network_bytes(const Task& task, const Plan& plan, const LoweredPlan& lowered) {
  std::size_t bytes = 0;
  for (int rank = 0; rank < lowered.semantics.ranks(); ++rank) {
    const BlockPlaces places = places_of(task, plan, lowered.semantics, rank);
    for (const BoundStep& step : bind(lowered.schedules[static_cast<std::size_t>(rank)], lowered.semantics, rank,
                                      {.element_bytes = task.element_bytes, .places = &places})
                                     .steps)
      if (step.kind == StepKind::send && step.channel == ChannelKind::ucx) bytes += step.bytes;
  }
  return bytes;
}

// One rank to three hosts of two: what crosses the network.
TEST(Resharding, EntersEachHostOnce) {
  Task task;
  task.source = consecutive_mesh({1}, 0);
  task.destination = consecutive_mesh({3, 2}, 1);
  task.source_spec = *parse_spec("R", "s");
  task.destination_spec = *parse_spec("R", "d");
  task.shape = {6000};
  const std::vector<int> host_of = {0, 1, 1, 2, 2, 3, 3};
  const auto crossing = [&](Strategy strategy) {
    Options options;
    options.strategy = strategy;
    options.chunks = 12;
    const auto plan = make_plan(task, host_of, options);
    const auto lowered = lower(*plan, host_of, routes(host_of, true));
    return network_bytes(task, *plan, *lowered);
  };
  EXPECT_EQ(crossing(Strategy::broadcast), 3u * 6000);
  EXPECT_EQ(crossing(Strategy::local_allgather), 3u * 6000);
  EXPECT_EQ(crossing(Strategy::send_recv), 6u * 6000);
  EXPECT_EQ(crossing(Strategy::global_allgather), 6000u + 3 * 5000);
}

// Where a holder is on the receiver's host nothing crosses the network.
TEST(Resharding, StaysWithinAHostThatHasAHolder) {
  Task task = whole_to_halves();
  const std::vector<int> host_of = {0, 1, 0, 1};
  const auto plan = make_plan(task, host_of, {});
  EXPECT_TRUE(plan->legs.empty());
  EXPECT_EQ(plan->lower_bound, 0);
  const auto lowered = lower(*plan, host_of, routes(host_of, true));
  EXPECT_EQ(network_bytes(task, *plan, *lowered), 0u);
}

TEST(Resharding, CutsIntoMoreChunksTheMoreHostsFollow) {
  Options options;
  options.links = {.network_per_byte = 1e-9,
                   .network_per_message = 1e-5,
                   .network_latency = 1e-5,
                   .local_per_byte = 1e-11,
                   .local_per_message = 1e-6};
  const auto chunks = [&](int hosts) {
    Task task;
    task.source = consecutive_mesh({1}, 0);
    task.destination = consecutive_mesh({hosts}, 1);
    task.source_spec = task.destination_spec = *parse_spec("R", "s");
    task.shape = {4 << 20};
    std::vector<int> host_of(static_cast<std::size_t>(hosts) + 1);
    std::iota(host_of.begin(), host_of.end(), 0);
    const auto plan = make_plan(task, host_of, options);
    const double once = 4.2e-3;  // one transfer
    EXPECT_LT(plan->schedule.seconds, once * 1.3) << hosts;
    return plan->tasks.front().chunks;
  };
  EXPECT_EQ(chunks(1), 1u);
  EXPECT_LT(chunks(2), chunks(4));
}

}  // namespace
}  // namespace plait::plan::reshard
