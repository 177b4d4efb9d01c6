// Fused embeddings whose data are on a device, among ranks that are threads with the tests' own driver: on the device,
// where all data are there and it lets them, and else on processors, by copies. Every element of every output.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fused/embedding/embedding.h"
#include "tests/fused/bags.h"
#include "tests/fused/fake_device.h"
#include "tests/fused/plan_ranks.h"
#include "tests/runtime/in_process_oob.h"
#include "tests/runtime/posting.h"
#include "tests/runtime/process.h"
#include "tl/shm/shared_heap.h"

namespace plait::fused {
namespace {

constexpr std::size_t always = 1, never = std::numeric_limits<std::size_t>::max();
constexpr unsigned char untouched = 0xa5;

struct DeviceCase {
  Shape ranks{2, 2};
  BagShape bags;
  std::vector<std::int64_t> tables = {};  // by rank
  std::string options = {};
  std::size_t direct_from = always;  // PLAIT_DEVICE_DIRECT
  int host_rank = -1;                // whose output is the processor's
  int host_tables = -1;              // whose tables are
  bool host_lookups = false;
  std::size_t offset = 0;  // of outputs, in their allocations
  // The driver's function that fails while the plan is made, after so many calls of it.
  const char* refuses = "nothing";
  long refuses_after = -1;

  std::int64_t all_tables() const {
    std::int64_t sum = 0;
    for (const std::int64_t count : tables) sum += count;
    return sum;
  }
};

// One rank's data on the device.
struct OnDevice {
  std::vector<DeviceCopy> tables, scales;
  std::vector<const void*> table_list;
  std::vector<const float*> scale_list;

  OnDevice(const RankBags& bags, bool on_host) : table_list(bags.data_list), scale_list(bags.scales_list) {
    if (on_host) return;
    table_list.clear();
    scale_list.clear();
    for (std::size_t table = 0; table < bags.data.size(); ++table) {
      tables.push_back(DeviceCopy::of(bags.data[table]));
      table_list.push_back(tables.back().address());
      if (table >= bags.scales.size()) continue;
      scales.push_back(DeviceCopy::of(bags.scales[table]));
      scale_list.push_back(scales.back().address<float>());
    }
  }
};

struct DeviceRank {
  const DeviceCase& given;
  int rank;
  std::vector<RankBags>& all;
  const DeviceCopy& output;
  std::vector<float>& host_output;
  Embedding& plan;

  RankBags& own() { return all[static_cast<std::size_t>(rank)]; }
  void draw(int round) {
    for (std::size_t of = 0; of < all.size(); ++of) draw_lookups(given.bags, static_cast<int>(of), round, all[of]);
  }
  Status run() {
    const RankBags& bags = own();
    const auto count = static_cast<std::int64_t>(bags.indices.size());
    if (given.host_lookups)
      return run({.indices = bags.indices.data(),
                  .count = count,
                  .offsets = bags.offsets.data(),
                  .weights = bags.weights.data()});
    const DeviceCopy indices = DeviceCopy::of(bags.indices), offsets = DeviceCopy::of(bags.offsets),
                     weights = DeviceCopy::of(bags.weights);
    return run({.indices = indices.address<std::int64_t>(),
                .count = count,
                .offsets = offsets.address<std::int64_t>(),
                .weights = weights.address<float>()});
  }
  Status run(const Lookup& lookup) {
    if (Status status = plan.start(lookup); !status.ok()) return status;
    return plan.wait();
  }
  std::string run_right() {
    output.fill(untouched);
    if (Status status = run(); !status.ok()) return status.message();
    const Range rows = share_of(given.bags.batch, given.ranks.ranks, rank);
    const std::vector<float> result = rank == given.host_rank ? host_output : output.read<float>();
    return wrong_output(given.bags, all, {rows.begin, rows.end}, result.data());
  }
  bool says(const std::string& text) const { return plan.description().find(text) != std::string::npos; }
};

class EmbeddingOnDevices : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static_cast<void>(SharedHeap::create({.bytes = std::size_t{1} << 30}));
    FakeDevice::instance();
  }

  template <class Look>
  std::string make(const DeviceCase& given, Look&& look) {
    Process process(given.ranks.ranks);
    process.config().channels = {"shm", "mpi", "cuda"};
    process.config().device_direct_from = given.direct_from;
    InProcessJob job(given.ranks.ranks), party(given.ranks.ranks);
    party.bring_messages(test_seed(), 3);
    return job.run([&](Oob& all) -> std::string {
      FakeDevice::instance().use();
      PostingRank posting(job, all.rank(), given.ranks, test_seed());
      std::vector<RankBags> bags;
      for (int rank = 0; rank < given.ranks.ranks; ++rank)
        bags.push_back(make_bags(given.bags, given.tables[static_cast<std::size_t>(rank)], rank));
      const RankBags& own = bags[static_cast<std::size_t>(all.rank())];
      const OnDevice data(own, all.rank() == given.host_tables);
      const std::int64_t rows = share_of(given.bags.batch, given.ranks.ranks, all.rank()).length();
      const auto floats = static_cast<std::size_t>(rows * given.all_tables() * given.bags.dim);
      const DeviceCopy output(floats * sizeof(float), given.offset);
      std::vector<float> host_output(floats + 1);
      const bool on_host = all.rank() == given.host_rank;
      const EmbeddingArguments arguments{.batch = given.bags.batch,
                                         .dim = given.bags.dim,
                                         .tables = own.tables(),
                                         .rows = own.rows.data(),
                                         .data = data.table_list.data(),
                                         .scales = data.scale_list.data(),
                                         .type = static_cast<int>(given.bags.type),
                                         .mode = given.bags.mean ? 1 : 0,
                                         .weighted = given.bags.weighted,
                                         .output = on_host ? host_output.data() : output.address<void>(),
                                         .options = given.options.c_str()};
      static_cast<void>(all.go_on_together({}));
      if (all.rank() == 0) FakeDevice::instance().fail(given.refuses, given.refuses_after, 801);
      static_cast<void>(all.go_on_together({}));
      Result<std::unique_ptr<Embedding>> made = Embedding::make(all, arguments, [&] {
        return std::make_unique<AllMembers>(party, posting.progress, all.rank(), given.ranks);
      });
      static_cast<void>(all.go_on_together({}));
      if (all.rank() == 0) FakeDevice::instance().fail(given.refuses, -1, 0);
      static_cast<void>(all.go_on_together({}));
      if (!made.ok()) return made.status().message();
      DeviceRank rank{given, all.rank(), bags, output, host_output, **made};
      return look(rank);
    });
  }

  std::string make_and_run(const DeviceCase& given, int rounds, const std::string& expected) {
    return make(given, [&](DeviceRank& rank) -> std::string {
      if (!rank.says(expected)) return rank.plan.description();
      // The others wait for a rank that leaves.
      std::string first;
      for (int round = 0; round < rounds; ++round) {
        rank.draw(round);
        const std::string wrong = rank.run_right();
        if (first.empty() && !wrong.empty()) first = "round " + std::to_string(round) + ": " + wrong;
      }
      return first;
    });
  }
};

const std::string on_devices = "\"on\": \"devices\"";

TEST_F(EmbeddingOnDevices, EveryNumberOfRanksIsRight) {
  for (const int ranks : {1, 2, 3, 5, 7}) {
    const long before = FakeDevice::instance().kernels();
    EXPECT_EQ(make_and_run({.ranks = {ranks, ranks},
                            .bags = {.batch = 37, .dim = 16},
                            .tables = std::vector<std::int64_t>(static_cast<std::size_t>(ranks), 3),
                            .options = "slice=512"},
                           3, on_devices),
              "")
        << ranks;
    EXPECT_EQ(FakeDevice::instance().kernels() - before, 2L * 3 * ranks) << "a look and a kernel a rank and run";
  }
}

TEST_F(EmbeddingOnDevices, EveryShapeIsRight) {
  std::mt19937_64 random(test_seed());
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  for (int round = 0; round < 40; ++round) {
    DeviceCase given;
    given.ranks.ranks = given.ranks.on_node = static_cast<int>(draw(1, 4));
    given.bags = {.batch = draw(1, 40),
                  .dim = draw(0, 1) == 0 ? draw(1, 70) : 16 * draw(1, 6),
                  .type = static_cast<RowType>(draw(0, 2)),
                  .mean = draw(0, 2) == 0,
                  .weighted = false,
                  .longest_bag = draw(0, 12),
                  .seed = random() % 1000};
    given.bags.weighted = !given.bags.mean && draw(0, 1) == 0;
    for (int rank = 0; rank < given.ranks.ranks; ++rank) given.tables.push_back(draw(0, 4));
    given.options = "slice=" + std::to_string(draw(0, 3000)) + (draw(0, 1) == 0 ? " order=plain" : "") +
                    (draw(0, 3) == 0 ? " check=0" : "");
    given.direct_from = draw(0, 3) == 0 ? never : always;
    given.host_lookups = draw(0, 2) == 0;
    given.offset = 4 * static_cast<std::size_t>(draw(0, 4));
    EXPECT_EQ(make_and_run(given, 3, ""), "")
        << "round " << round << ", " << given.ranks.ranks << " ranks, " << given.options;
  }
}

TEST_F(EmbeddingOnDevices, GoByCopiesWhereTheyCannotBeThere) {
  const DeviceCase usual{.ranks = {3, 3}, .bags = {.batch = 10, .dim = 8}, .tables = {1, 2, 1}};
  DeviceCase not_let = usual, mixed = usual, mixed_tables = usual, both = usual, two_nodes = usual, unaligned = usual;
  not_let.direct_from = never;
  mixed.host_rank = 1;
  mixed_tables.host_tables = 2;
  both.host_rank = both.host_tables = 0;
  two_nodes.ranks.on_node = 2;
  unaligned.offset = 2;
  for (const DeviceCase& given : {not_let, mixed, mixed_tables, both, two_nodes, unaligned})
    EXPECT_EQ(make_and_run(given, 2, "\"workers\""), "");
}

// Each of them of the first rank that asks, or of a later one.
TEST_F(EmbeddingOnDevices, GoByCopiesWhereTheDriverRefuses) {
  for (const char* function : {"cuMemAlloc_v2", "cuMemHostRegister_v2", "cuStreamCreate", "cuEventCreate"})
    for (const long after : {0, 2}) {
      const DeviceCase given{.ranks = {3, 3},
                             .bags = {.batch = 10, .dim = 8},
                             .tables = {1, 2, 1},
                             .refuses = function,
                             .refuses_after = after};
      EXPECT_EQ(make_and_run(given, 2, "\"workers\""), "") << function << " after " << after;
    }
}

// Nothing comes to the last rank: wherever it says that its output is, nobody asks.
TEST_F(EmbeddingOnDevices, AnOutputOfNothingMayBeAnywhere) {
  const DeviceCase given{.ranks = {3, 3}, .bags = {.batch = 2, .dim = 4}, .tables = {1, 0, 2}, .host_rank = 2};
  EXPECT_EQ(make_and_run(given, 2, on_devices), "");
}

// The program's work on the device is not waited for.
TEST_F(EmbeddingOnDevices, LookupsOfTheProcessorNeedNoDriver) {
  const DeviceCase given{.ranks = {3, 3}, .bags = {.batch = 10, .dim = 8}, .tables = {1, 2, 1}, .host_lookups = true};
  EXPECT_EQ(make(given,
                 [](DeviceRank& rank) -> std::string {
                   if (!rank.says(on_devices)) return rank.plan.description();
                   rank.draw(0);
                   FakeDevice::instance().fail("cuMemcpyAsync", 0, 801);
                   const std::string wrong = rank.run_right();
                   FakeDevice::instance().fail("cuMemcpyAsync", -1, 0);
                   return wrong;
                 }),
            "");
}

TEST_F(EmbeddingOnDevices, AnAbsurdCountIsRefused) {
  for (const std::size_t direct : {always, never}) {
    const DeviceCase given{.ranks = {2, 2}, .bags = {.batch = 4, .dim = 4}, .tables = {1, 1}, .direct_from = direct};
    EXPECT_EQ(make(given,
                   [](DeviceRank& rank) -> std::string {
                     rank.draw(0);
                     const DeviceCopy indices = DeviceCopy::of(rank.own().indices),
                                      offsets = DeviceCopy::of(rank.own().offsets);
                     // Its bytes are none, modulo 2^64.
                     const auto right = static_cast<std::int64_t>(rank.own().indices.size());
                     const Status refused = rank.run({.indices = indices.address<std::int64_t>(),
                                                      .count = rank.rank == 0 ? std::int64_t{1} << 61 : right,
                                                      .offsets = offsets.address<std::int64_t>()});
                     return refused.ok() ? "it was taken" : "";
                   }),
              "");
  }
}

TEST_F(EmbeddingOnDevices, WrongLookupsAreRefusedOnAllRanks) {
  for (const std::size_t direct : {always, never}) {
    const DeviceCase given{.ranks = {3, 3},
                           .bags = {.batch = 9, .dim = 4},
                           .tables = {2, 2, 2},
                           .options = "slice=64",
                           .direct_from = direct};
    EXPECT_EQ(make(given,
                   [](DeviceRank& rank) -> std::string {
                     rank.draw(0);
                     rank.output.fill(untouched);
                     const std::size_t last = rank.all[1].indices.size() - 1;
                     rank.all[1].indices[last] = 1000;
                     const Status refused = rank.run();
                     const std::string expected =
                         "indices[" + std::to_string(last) + "]: 1000: expected a row of table";
                     if (refused.message().find(expected) == std::string::npos) return "refused: " + refused.message();
                     if (refused.message().find("(on rank 1)") == std::string::npos) return refused.message();
                     if (!rank.output.is_filled(untouched)) return "an output was touched";
                     rank.draw(1);
                     return rank.run_right();
                   }),
              "");
  }
}

TEST_F(EmbeddingOnDevices, MissingLookupsAreRefused) {
  const DeviceCase given{.ranks = {2, 2}, .bags = {.batch = 4, .dim = 4}, .tables = {1, 1}};
  EXPECT_EQ(make(given,
                 [](DeviceRank& rank) -> std::string {
                   const Status refused =
                       rank.rank == 0 ? rank.run({.indices = nullptr, .count = 3, .offsets = nullptr}) : rank.run();
                   if (refused.message() != "offsets: NULL (on rank 0)") return refused.message();
                   rank.draw(1);
                   return rank.run_right();
                 }),
            "");
}

}  // namespace
}  // namespace plait::fused
