// Fused embeddings among ranks in one process: every element of every output, whatever the shape and the way to the
// other ranks; run after run; and what is wrong with one rank's arguments is known to all, before any output is
// touched.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fused/embedding/embedding.h"
#include "tests/fused/bags.h"
#include "tests/fused/plan_ranks.h"
#include "tests/runtime/in_process_oob.h"
#include "tests/runtime/posting.h"
#include "tests/runtime/process.h"
#include "tl/shm/shared_heap.h"

namespace plait::fused {
namespace {

struct Case {
  Shape ranks{2, 2};
  BagShape bags;
  std::vector<std::int64_t> tables = {};  // by rank
  std::string options = {};
  Where where = Where::private_memory;
  bool shares_memory = true;  // else all goes by messages

  std::int64_t all_tables() const {
    std::int64_t sum = 0;
    for (const std::int64_t count : tables) sum += count;
    return sum;
  }
};

EmbeddingArguments arguments_of(const Case& given, const RankBags& bags, float* output) {
  return {.batch = given.bags.batch,
          .dim = given.bags.dim,
          .tables = bags.tables(),
          .rows = bags.rows.data(),
          .data = bags.data_list.data(),
          .scales = bags.scales_list.data(),
          .type = static_cast<int>(given.bags.type),
          .mode = given.bags.mean ? 1 : 0,
          .weighted = given.bags.weighted,
          .output = output,
          .options = given.options.c_str()};
}

Lookup lookup_of(const RankBags& bags) {
  return {.indices = bags.indices.data(),
          .count = static_cast<std::int64_t>(bags.indices.size()),
          .offsets = bags.offsets.data(),
          .weights = bags.weights.data()};
}

// One rank of a case, which has made its plan.
struct EmbeddingRank {
  const Case& given;
  int rank;
  std::vector<RankBags> all;  // of all ranks
  OutputMemory& output;
  Result<std::unique_ptr<Embedding>>& made;

  RankBags& own() { return all[static_cast<std::size_t>(rank)]; }
  void draw(int round) {
    for (std::size_t of = 0; of < all.size(); ++of) draw_lookups(given.bags, static_cast<int>(of), round, all[of]);
  }
  std::string run() {
    output.fill();
    if (Status status = (*made)->start(lookup_of(own())); !status.ok()) return "start: " + status.message();
    if (Status status = (*made)->wait(); !status.ok()) return "wait: " + status.message();
    if (!output.is_untouched_behind()) return "something behind the output is written";
    const Range rows = share_of(given.bags.batch, given.ranks.ranks, rank);
    return wrong_output(given.bags, all, {rows.begin, rows.end}, output.data());
  }
};

class EmbeddingOf : public testing::Test {
 protected:
  using Change = std::function<void(int rank, EmbeddingArguments& arguments)>;
  using Look = std::function<std::string(EmbeddingRank& rank)>;

  static void SetUpTestSuite() { static_cast<void>(SharedHeap::create({.bytes = std::size_t{1} << 30})); }

  std::string make(
      const Case& given, const Look& look, const Change& change = [](int, EmbeddingArguments&) {}) {
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
      const Range rows = share_of(given.bags.batch, given.ranks.ranks, all.rank());
      OutputMemory output(static_cast<std::size_t>(rows.length() * given.all_tables() * given.bags.dim), given.where);
      EmbeddingArguments arguments = arguments_of(given, bags[static_cast<std::size_t>(all.rank())], output.data());
      change(all.rank(), arguments);
      Result<std::unique_ptr<Embedding>> made = Embedding::make(all, arguments, [&] {
        return std::make_unique<AllMembers>(party, posting.progress, all.rank(), given.ranks);
      });
      EmbeddingRank rank{given, all.rank(), std::move(bags), output, made};
      return look(rank);
    });
  }
  std::string make_and_run(const Case& given, int rounds) {
    return make(given, [rounds](EmbeddingRank& rank) -> std::string {
      if (!rank.made.ok()) return rank.made.status().message();
      for (int round = 0; round < rounds; ++round) {
        rank.draw(round);
        if (std::string wrong = rank.run(); !wrong.empty()) return "round " + std::to_string(round) + ": " + wrong;
      }
      return {};
    });
  }
};

std::vector<std::int64_t> same_tables(int ranks, std::int64_t tables) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(ranks), tables);
}

TEST_F(EmbeddingOf, OneRankIsRight) {
  EXPECT_EQ(make_and_run({.ranks = {1, 1}, .bags = {.batch = 9, .dim = 33}, .tables = {3}}, 3), "");
}

TEST_F(EmbeddingOf, TwoRanksOfANodeAreRight) {
  for (const Where where : {Where::private_memory, Where::shared_heap})
    EXPECT_EQ(make_and_run({.ranks = {2, 2},
                            .bags = {.batch = 64, .dim = 40},
                            .tables = {3, 5},
                            .options = "slice=4096",
                            .where = where},
                           5),
              "");
}

TEST_F(EmbeddingOf, ThePlanSaysHowSlicesGo) {
  struct Way {
    Shape ranks;
    Where where;
    const char* says;
  };
  const std::vector<Way> ways = {{{2, 2}, Where::shared_heap, "\"direct\": 1, \"staged\": 0, \"messages\": 0"},
                                 {{2, 2}, Where::private_memory, "\"direct\": 0, \"staged\": 1, \"messages\": 0"},
                                 {{4, 2}, Where::shared_heap, "\"direct\": 1, \"staged\": 0, \"messages\": 2"}};
  for (const Way& way : ways) {
    const Case given{.ranks = way.ranks,
                     .bags = {.batch = 8, .dim = 4},
                     .tables = same_tables(way.ranks.ranks, 1),
                     .options = "",
                     .where = way.where};
    EXPECT_EQ(make(given,
                   [&](EmbeddingRank& rank) -> std::string {
                     if (!rank.made.ok()) return rank.made.status().message();
                     const std::string& description = (*rank.made)->description();
                     return description.find(way.says) != std::string::npos ? "" : description;
                   }),
              "");
  }
}

TEST_F(EmbeddingOf, EveryShapeIsRight) {
  std::mt19937_64 random(test_seed());
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  for (int round = 0; round < 40; ++round) {
    Case given;
    given.ranks.ranks = static_cast<int>(draw(1, 8));
    given.ranks.on_node = static_cast<int>(draw(1, given.ranks.ranks));
    given.bags = {.batch = draw(1, 40),
                  .dim = draw(1, 70),
                  .type = static_cast<RowType>(draw(0, 2)),
                  .mean = draw(0, 2) == 0,
                  .weighted = false,
                  .longest_bag = draw(0, 12),
                  .seed = random() % 1000};
    given.bags.weighted = !given.bags.mean && draw(0, 1) == 0;
    for (int rank = 0; rank < given.ranks.ranks; ++rank) given.tables.push_back(draw(0, 4));
    given.options = "workers=" + std::to_string(draw(1, 3)) + " slice=" + std::to_string(draw(0, 3000)) +
                    (draw(0, 1) == 0 ? " order=plain" : "");
    given.where = draw(0, 1) == 0 ? Where::private_memory : Where::shared_heap;
    EXPECT_EQ(make_and_run(given, 3), "") << "round " << round << ", " << given.ranks.ranks << " ranks, "
                                          << given.ranks.on_node << " on a node, " << given.options;
  }
}

TEST_F(EmbeddingOf, TheSamePlacesServeManyRuns) {
  for (const Shape ranks : {Shape{3, 3}, Shape{4, 2}})
    for (const Where where : {Where::private_memory, Where::shared_heap})
      EXPECT_EQ(make_and_run({.ranks = ranks,
                              .bags = {.batch = 12, .dim = 8},
                              .tables = same_tables(ranks.ranks, 2),
                              .options = "workers=2 slice=64",
                              .where = where},
                             300),
                "");
}

// Nothing between the runs: a rank may be a run ahead of another.
TEST_F(EmbeddingOf, TenThousandRunsOnTheSamePlacesHaveTheSameBits) {
  for (const Where where : {Where::private_memory, Where::shared_heap}) {
    const Case given{.ranks = {2, 2},
                     .bags = {.batch = 8, .dim = 9},
                     .tables = {2, 1},
                     .options = "workers=1 slice=64",
                     .where = where};
    const auto look = [&](EmbeddingRank& rank) -> std::string {
      if (!rank.made.ok()) return rank.made.status().message();
      const std::size_t floats = 4 * 3 * 9;
      std::vector<std::vector<float>> expected;
      std::vector<RankBags> sets;
      for (int round = 0; round < 3; ++round) {
        rank.draw(round);
        if (std::string wrong = rank.run(); !wrong.empty()) return wrong;
        expected.emplace_back(rank.output.data(), rank.output.data() + floats);
        sets.push_back(rank.own());
      }
      for (std::size_t round = 0; round < 10'000; ++round) {
        if (!(*rank.made)->start(lookup_of(sets[round % 3])).ok() || !(*rank.made)->wait().ok()) return "it fails";
        if (std::memcmp(rank.output.data(), expected[round % 3].data(), floats * sizeof(float)) != 0)
          return "round " + std::to_string(round) + " has other bits";
      }
      return {};
    };
    EXPECT_EQ(make(given, look), "");
  }
}

// The thread sanitizer sees all of it: nothing is mapped at two addresses.
TEST_F(EmbeddingOf, ByMessagesAloneTheSamePlacesServeManyRuns) {
  for (const int workers : {1, 3})
    EXPECT_EQ(make_and_run({.ranks = {3, 3},
                            .bags = {.batch = 12, .dim = 8},
                            .tables = same_tables(3, 2),
                            .options = "slice=64 workers=" + std::to_string(workers),
                            .shares_memory = false},
                           100),
              "");
}

// What a rank changes, and what all are told.
struct Wrong {
  std::function<void(RankBags& bags)> change;
  std::string told;
};

TEST_F(EmbeddingOf, AWrongLookupIsToldToAllAndTouchesNothing) {
  const std::vector<Wrong> wrongs = {
      {[](RankBags& bags) { bags.indices[5] = bags.rows[0]; }, "indices[5]: "},
      {[](RankBags& bags) { bags.indices[0] = -3; }, "indices[0]: -3: expected a row of table 0"},
      {[](RankBags& bags) { bags.offsets[0] = -1; }, "offsets[0]: -1: expected 0"},
      {[](RankBags& bags) { bags.offsets[4] = -9; }, "offsets[4]: -9: expected "},
      {[](RankBags& bags) { bags.offsets.back() += 1; }, "the number of indices"}};
  for (const Shape ranks : {Shape{3, 3}, Shape{4, 2}})
    for (const Where where : {Where::private_memory, Where::shared_heap})
      for (const Wrong& wrong : wrongs) {
        Case given{.ranks = ranks,
                   .bags = {.batch = 16, .dim = 8, .longest_bag = 20},
                   .tables = same_tables(ranks.ranks, 2),
                   .options = "workers=2 slice=256",
                   .where = where};
        const auto look = [&](EmbeddingRank& rank) -> std::string {
          if (!rank.made.ok()) return rank.made.status().message();
          for (int round = 0; round < 6; ++round) {
            rank.draw(round);
            if (round % 2 == 0) {
              if (std::string bad = rank.run(); !bad.empty()) return "well: " + bad;
              continue;
            }
            if (rank.rank == 1) wrong.change(rank.own());
            rank.output.fill();
            static_cast<void>((*rank.made)->start(lookup_of(rank.own())));
            const Status status = (*rank.made)->wait();
            if (status.code() != Code::invalid || status.message().find(wrong.told) == std::string::npos ||
                status.message().find("(on rank 1)") == std::string::npos)
              return "it says: " + status.message();
            if (!rank.output.is_untouched()) return "the output is touched";
          }
          return {};
        };
        EXPECT_EQ(make(given, look), "") << wrong.told;
      }
}

TEST_F(EmbeddingOf, WrongArgumentsMakeNoPlanOnAnyRank) {
  using Change = std::function<void(EmbeddingArguments&)>;
  static const std::int64_t negative[] = {5, -4};
  const std::vector<std::pair<std::string, Change>> wrongs = {
      {"batch: 0: expected 1 to ", [](EmbeddingArguments& given) { given.batch = 0; }},
      {"dim: -1: expected 1 to ", [](EmbeddingArguments& given) { given.dim = -1; }},
      {"type: 3: expected 0 to 2", [](EmbeddingArguments& given) { given.type = 3; }},
      {"mode: 9: expected 0 to 1", [](EmbeddingArguments& given) { given.mode = 9; }},
      {"weighted: ",
       [](EmbeddingArguments& given) {
         given.mode = 1;
         given.weighted = true;
       }},
      {"rows[1]: -4: expected 0 to ", [](EmbeddingArguments& given) { given.rows = negative; }},
      {"data: NULL", [](EmbeddingArguments& given) { given.data = nullptr; }},
      {"output: NULL", [](EmbeddingArguments& given) { given.output = nullptr; }},
      {"plan: NULL", [](EmbeddingArguments& given) { given.missing = "plan"; }},
      {"options: \"check=2\": expected a number from 0 to 1",
       [](EmbeddingArguments& given) { given.options = "check=2"; }}};
  const Case given{.ranks = {3, 3}, .bags = {.batch = 8, .dim = 4}, .tables = {2, 2, 2}};
  for (const auto& [told, change] : wrongs) {
    const auto look = [&told = told](EmbeddingRank& rank) -> std::string {
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

TEST_F(EmbeddingOf, RanksThatGiveSomethingElseAllHearOfIt) {
  const Case given{.ranks = {3, 3}, .bags = {.batch = 8, .dim = 4}, .tables = {2, 2, 2}};
  const auto tell = [](const std::string& told) {
    return [told](EmbeddingRank& rank) {
      const std::string message = rank.made.ok() ? "it was made" : rank.made.status().message();
      return message == told ? "" : "it says: " + message;
    };
  };
  EXPECT_EQ(make(given, tell("batch: 9: expected 8, as rank 0 has it (on rank 1)"),
                 [](int rank, EmbeddingArguments& arguments) { arguments.batch += rank; }),
            "");
  EXPECT_EQ(make(given, tell("dim: 5: expected 4, as rank 0 has it (on rank 2)"),
                 [](int rank, EmbeddingArguments& arguments) { arguments.dim += rank == 2 ? 1 : 0; }),
            "");
}

TEST_F(EmbeddingOf, IsStartedOnceAtATime) {
  const Case given{.ranks = {2, 2}, .bags = {.batch = 8, .dim = 4}, .tables = {1, 1}};
  EXPECT_EQ(make(given,
                 [](EmbeddingRank& rank) -> std::string {
                   if (!rank.made.ok()) return rank.made.status().message();
                   Embedding& plan = **rank.made;
                   if (plan.wait().ok()) return "a plan that was not started is waited for";
                   if (!plan.start(lookup_of(rank.own())).ok()) return "it is not started";
                   if (plan.start(lookup_of(rank.own())).ok()) return "it is started twice";
                   return plan.wait().ok() ? "" : "it is not waited for";
                 }),
            "");
}

}  // namespace
}  // namespace plait::fused
