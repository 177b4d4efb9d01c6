// The backward direction of fused embeddings among ranks in one process: every element of every table, whatever the
// shape and the way to the other ranks; the same bits from run to run and with any number of workers; what is wrong
// with one rank's arguments is known to all, before any table is touched.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fused/embedding/embedding_back.h"
#include "tests/fused/gradients.h"
#include "tests/fused/plan_ranks.h"
#include "tests/runtime/in_process_oob.h"
#include "tests/runtime/posting.h"
#include "tests/runtime/process.h"
#include "tl/shm/shared_heap.h"

namespace plait::fused {
namespace {

struct BackCase {
  Shape ranks{2, 2};
  BagShape bags;
  std::vector<std::int64_t> tables = {};  // by rank
  std::string options = {};
  bool shares_memory = true;  // else all goes by messages
};

using Tables = std::vector<std::vector<std::byte>>;

// One rank of a case, which has made its plan.
struct BackRank {
  const BackCase& given;
  int rank;
  std::vector<RankBags> all;                   // of all ranks
  std::vector<std::vector<float>>& gradients;  // likewise; this rank's are the plan's
  Tables& tables;                              // of this rank
  Result<std::unique_ptr<EmbeddingBack>>& made;

  RankBags& own() { return all[static_cast<std::size_t>(rank)]; }
  void draw(int round) {
    for (std::size_t of = 0; of < all.size(); ++of) {
      draw_lookups(given.bags, static_cast<int>(of), round, all[of]);
      const std::vector<float> drawn = make_gradients(given.bags, all, static_cast<int>(of), round);
      std::ranges::copy(drawn, gradients[of].begin());
    }
  }
  Lookup lookup() {
    return {.indices = own().indices.data(),
            .count = static_cast<std::int64_t>(own().indices.size()),
            .offsets = own().offsets.data(),
            .weights = own().weights.data()};
  }
  Status run(float factor) {
    if (Status status = (*made)->start(lookup(), factor); !status.ok()) return status;
    return (*made)->wait();
  }
  // They are the plan's where they are.
  void reset_tables() {
    for (std::size_t table = 0; table < tables.size(); ++table)
      std::ranges::copy(own().data[table], tables[table].begin());
  }
  bool are_untouched() { return tables == own().data; }
  std::string run_and_check() {
    constexpr float factor = -0.25f;
    reset_tables();
    if (Status status = run(factor); !status.ok()) return status.message();
    for (std::size_t table = 0; table < tables.size(); ++table) {
      const WhichTable which{.rank = rank, .table = static_cast<std::int64_t>(table), .factor = factor};
      const ExpectedTable expected = expected_table(given.bags, all, gradients, which);
      const std::string wrong = wrong_table(given.bags, expected, {0, given.bags.dim}, tables[table].data());
      if (!wrong.empty()) return "table " + std::to_string(table) + ", " + wrong;
    }
    return {};
  }
};

class EmbeddingBackOf : public testing::Test {
 protected:
  using Change = std::function<void(int rank, EmbeddingArguments& arguments)>;
  using Look = std::function<std::string(BackRank& rank)>;

  static void SetUpTestSuite() { static_cast<void>(SharedHeap::create({.bytes = std::size_t{1} << 30})); }

  std::string make(
      const BackCase& given, const Look& look, const Change& change = [](int, EmbeddingArguments&) {}) {
    Process process(given.ranks.ranks);
    process.config().channels = {"mpi"};
    if (given.shares_memory) process.config().channels = {"shm", "mpi"};
    InProcessJob job(given.ranks.ranks), party(given.ranks.ranks);
    party.bring_messages(test_seed(), 3);
    return job.run([&](Oob& all) {
      PostingRank posting(job, all.rank(), given.ranks, test_seed());
      std::vector<RankBags> bags;
      for (int rank = 0; rank < given.ranks.ranks; ++rank)
        bags.push_back(make_bags(given.bags, given.tables[static_cast<std::size_t>(rank)], rank));
      std::vector<std::vector<float>> gradients;
      for (int rank = 0; rank < given.ranks.ranks; ++rank) gradients.push_back(make_gradients(given.bags, bags, rank));
      for (auto& one : gradients) one.reserve(1);  // not NULL where there are none
      const RankBags& own = bags[static_cast<std::size_t>(all.rank())];
      Tables tables = own.data;
      std::vector<void*> targets;
      for (auto& table : tables) targets.push_back(table.data());
      EmbeddingArguments arguments{.direction = Direction::back,
                                   .batch = given.bags.batch,
                                   .dim = given.bags.dim,
                                   .tables = own.tables(),
                                   .rows = own.rows.data(),
                                   .data = targets.data(),
                                   .targets = targets.data(),
                                   .type = static_cast<int>(given.bags.type),
                                   .mode = given.bags.mean ? 1 : 0,
                                   .weighted = given.bags.weighted,
                                   .gradients = gradients[static_cast<std::size_t>(all.rank())].data(),
                                   .options = given.options.c_str()};
      change(all.rank(), arguments);
      Result<std::unique_ptr<EmbeddingBack>> made = EmbeddingBack::make(all, arguments, [&] {
        return std::make_unique<AllMembers>(party, posting.progress, all.rank(), given.ranks);
      });
      BackRank rank{given, all.rank(), std::move(bags), gradients, tables, made};
      return look(rank);
    });
  }
  std::string make_and_run(const BackCase& given, int rounds) {
    return make(given, [rounds](BackRank& rank) -> std::string {
      if (!rank.made.ok()) return rank.made.status().message();
      for (int round = 0; round < rounds; ++round) {
        rank.draw(round);
        if (std::string wrong = rank.run_and_check(); !wrong.empty())
          return "round " + std::to_string(round) + ": " + wrong;
      }
      return {};
    });
  }
};

std::vector<std::int64_t> some_tables(int ranks, std::int64_t tables) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(ranks), tables);
}

TEST_F(EmbeddingBackOf, OneRankIsRight) {
  for (const char* options : {"workers=1", "workers=3"})
    EXPECT_EQ(make_and_run({.ranks = {1, 1}, .bags = {.batch = 9, .dim = 133}, .tables = {3}, .options = options}, 3),
              "");
}

TEST_F(EmbeddingBackOf, TwoRanksOfANodeAreRight) {
  for (const char* options : {"slice=4096", "slice=100 order=plain workers=2", "workers=3"})
    EXPECT_EQ(make_and_run({.bags = {.batch = 64, .dim = 140}, .tables = {3, 5}, .options = options}, 5), "");
}

TEST_F(EmbeddingBackOf, EveryShapeIsRight) {
  std::mt19937_64 random(test_seed());
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  for (int round = 0; round < 40; ++round) {
    BackCase given;
    given.ranks.ranks = round < 8 ? round + 1 : static_cast<int>(draw(1, 8));
    given.ranks.on_node = static_cast<int>(draw(1, given.ranks.ranks));
    given.bags = {.batch = draw(1, 40),
                  .dim = draw(1, 150),
                  .type = static_cast<RowType>(draw(0, 1)),
                  .mean = draw(0, 2) == 0,
                  .weighted = false,
                  .longest_bag = draw(0, 12),
                  .most_rows = draw(1, 20),
                  .seed = random() % 1000};
    given.bags.weighted = !given.bags.mean && draw(0, 1) == 0;
    for (int rank = 0; rank < given.ranks.ranks; ++rank) given.tables.push_back(draw(0, 4));
    given.options = "workers=" + std::to_string(draw(1, 3)) + " slice=" + std::to_string(draw(0, 3000)) +
                    (draw(0, 1) == 0 ? " order=plain" : "");
    given.shares_memory = draw(0, 3) != 0;
    EXPECT_EQ(make_and_run(given, 3), "") << "round " << round << ", " << given.ranks.ranks << " ranks, "
                                          << given.ranks.on_node << " on a node, " << given.options;
  }
}

// All bags are of one row, so that every other order of the additions has other bits.
TEST_F(EmbeddingBackOf, TheBitsAreTheSameWhateverComesFirst) {
  for (const Shape ranks : {Shape{4, 4}, Shape{4, 2}}) {
    std::vector<Tables> first(static_cast<std::size_t>(ranks.ranks));
    for (const char* options : {"workers=1", "workers=3 slice=64", "workers=2 slice=300 order=plain"}) {
      const BackCase given{.ranks = ranks,
                           .bags = {.batch = 40, .dim = 70, .most_rows = 1},
                           .tables = some_tables(4, 2),
                           .options = options};
      const auto look = [&](BackRank& rank) -> std::string {
        if (!rank.made.ok()) return rank.made.status().message();
        for (int round = 0; round < 30; ++round) {
          if (std::string wrong = rank.run_and_check(); !wrong.empty()) return wrong;
          Tables& expected = first[static_cast<std::size_t>(rank.rank)];
          if (expected.empty()) expected = rank.tables;
          if (expected != rank.tables) return "other bits in round " + std::to_string(round);
        }
        return {};
      };
      EXPECT_EQ(make(given, look), "") << options;
    }
  }
}

TEST_F(EmbeddingBackOf, TenThousandRunsOnTheSamePlacesHaveTheSameBits) {
  const BackCase given{
      .bags = {.batch = 8, .dim = 9, .most_rows = 4}, .tables = {2, 1}, .options = "workers=1 slice=64"};
  EXPECT_EQ(make(given,
                 [](BackRank& rank) -> std::string {
                   if (!rank.made.ok()) return rank.made.status().message();
                   rank.draw(0);
                   if (std::string wrong = rank.run_and_check(); !wrong.empty()) return wrong;
                   const Tables expected = rank.tables;
                   for (int round = 0; round < 10'000; ++round) {
                     rank.reset_tables();
                     if (Status status = rank.run(-0.25f); !status.ok()) return status.message();
                     if (rank.tables != expected) return "round " + std::to_string(round) + " has other bits";
                   }
                   return {};
                 }),
            "");
}

// Run after run on the same tables: each is a step of its own.
TEST_F(EmbeddingBackOf, ManyRunsGoOnFromEachOther) {
  for (const bool shares_memory : {true, false})
    EXPECT_EQ(make({.ranks = {3, 3},
                    .bags = {.batch = 12, .dim = 8},
                    .tables = some_tables(3, 2),
                    .options = "slice=64 workers=2",
                    .shares_memory = shares_memory},
                   [](BackRank& rank) -> std::string {
                     if (!rank.made.ok()) return rank.made.status().message();
                     for (int step = 0; step < 300; ++step) {
                       if (Status status = rank.run(step % 2 == 0 ? 0.5f : -0.5f); !status.ok())
                         return status.message();
                     }
                     // What is added and taken away again leaves a rounding.
                     for (std::size_t table = 0; table < rank.tables.size(); ++table)
                       for (std::size_t at = 0; at < rank.tables[table].size(); at += 4)
                         if (std::abs(element_at(RowType::f32, rank.tables[table].data() + at) -
                                      element_at(RowType::f32, rank.own().data[table].data() + at)) > 0.01)
                           return "a step is lost";
                     return {};
                   }),
              "");
}

TEST_F(EmbeddingBackOf, AWrongLookupIsToldToAllAndTouchesNoTable) {
  const std::vector<std::pair<std::string, std::function<void(RankBags&)>>> wrongs = {
      {"indices[5]: ", [](RankBags& bags) { bags.indices[5] = bags.rows[0]; }},
      {"indices[0]: -3: expected a row of table 0", [](RankBags& bags) { bags.indices[0] = -3; }},
      {"offsets[4]: -9: expected ", [](RankBags& bags) { bags.offsets[4] = -9; }}};
  for (const Shape ranks : {Shape{3, 3}, Shape{4, 2}})
    for (const auto& [told, change] : wrongs) {
      const BackCase given{.ranks = ranks,
                           .bags = {.batch = 16, .dim = 8, .longest_bag = 20},
                           .tables = some_tables(ranks.ranks, 2),
                           .options = "workers=2 slice=256"};
      const auto look = [&, &told = told, &change = change](BackRank& rank) -> std::string {
        if (!rank.made.ok()) return rank.made.status().message();
        const RankBags before = rank.own();
        for (int round = 0; round < 6; ++round) {
          if (std::string bad = rank.run_and_check(); !bad.empty()) return "well: " + bad;
          rank.reset_tables();
          if (rank.rank == 1) change(rank.own());
          const Status status = rank.run(1);
          if (status.code() != Code::invalid || status.message().find(told) == std::string::npos ||
              status.message().find("(on rank 1)") == std::string::npos)
            return "it says: " + status.message();
          if (!rank.are_untouched()) return "a table is touched";
          rank.own() = before;
        }
        return {};
      };
      EXPECT_EQ(make(given, look), "") << told;
    }
}

TEST_F(EmbeddingBackOf, WrongArgumentsMakeNoPlanOnAnyRank) {
  static void* same[2] = {};
  const std::vector<std::pair<std::string, std::function<void(EmbeddingArguments&)>>> wrongs = {
      {"dim: 0: expected 1 to ", [](EmbeddingArguments& given) { given.dim = 0; }},
      {"type: 2: expected 0 or 1", [](EmbeddingArguments& given) { given.type = 2; }},
      {"gradients: NULL", [](EmbeddingArguments& given) { given.gradients = nullptr; }},
      {"data: NULL", [](EmbeddingArguments& given) { given.data = given.targets = nullptr; }},
      {"data[1]: overlaps data[0]",
       [](EmbeddingArguments& given) {
         same[0] = same[1] = given.targets[0];
         given.data = given.targets = same;
       }},
      {"plan: NULL", [](EmbeddingArguments& given) { given.missing = "plan"; }}};
  const BackCase given{.ranks = {3, 3}, .bags = {.batch = 8, .dim = 4}, .tables = {2, 2, 2}};
  for (const auto& [told, change] : wrongs) {
    const auto look = [&told = told](BackRank& rank) -> std::string {
      if (rank.made.ok()) return "it was made";
      const std::string message = rank.made.status().message();
      const bool names_rank = rank.rank == 1 || message.find("(on rank 1)") != std::string::npos;
      return message.find(told) == 0 && names_rank ? "" : "it says: " + message;
    };
    EXPECT_EQ(make(given, look,
                   [&change = change](int rank, EmbeddingArguments& arguments) {
                     if (rank == 1) change(arguments);
                   }),
              "");
  }
}

TEST_F(EmbeddingBackOf, IsStartedOnceAtATime) {
  const BackCase given{.bags = {.batch = 8, .dim = 4}, .tables = {1, 1}};
  EXPECT_EQ(make(given,
                 [](BackRank& rank) -> std::string {
                   if (!rank.made.ok()) return rank.made.status().message();
                   EmbeddingBack& plan = **rank.made;
                   if (plan.wait().ok()) return "a plan that was not started is waited for";
                   if (!plan.start(rank.lookup(), 1).ok()) return "it is not started";
                   if (plan.start(rank.lookup(), 1).ok()) return "it is started twice";
                   return plan.wait().ok() ? "" : "it is not waited for";
                 }),
            "");
}

}  // namespace
}  // namespace plait::fused
