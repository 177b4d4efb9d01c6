// Fused products among ranks in one process: every element of every output, the same bits on all ranks, whatever the
// shape and the way to the other ranks; run after run; and what is wrong with one rank's arguments is known to all,
// before any output is touched.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fused/gemv/gemv.h"
#include "tests/fused/plan_ranks.h"
#include "tests/fused/products.h"

namespace plait::fused {
namespace {

struct GemvCase {
  Shape ranks{2, 2};
  ProductShape shape;
  std::vector<std::int64_t> depths = {};  // by rank
  std::vector<RowType> types = {};        // by rank; none: f32
  std::string options = {};
  Where where = Where::private_memory;

  RowType type_of(std::size_t rank) const { return types.empty() ? RowType::f32 : types[rank]; }
  std::size_t floats() const { return static_cast<std::size_t>(shape.rows * shape.columns); }
};

GemvArguments gemv_arguments_of(const GemvCase& given, const RankWeights& weights, float* output) {
  return {.rows = given.shape.rows,
          .depth = weights.depth,
          .columns = given.shape.columns,
          .type = static_cast<int>(weights.type),
          .weights = weights.weights.data(),
          .scales = weights.scales.data(),
          .output = output,
          .options = given.options.c_str()};
}

// The ranks' outputs of a run, which must be the same bits.
class SameBits {
 public:
  explicit SameBits(const GemvCase& given) : floats_(given.floats()) {}
  // "" where they are those of the rank that came first in this round.
  std::string compare(std::size_t round, const float* output) {
    const std::scoped_lock lock(guard_);
    if (round >= rounds_.size()) rounds_.resize(round + 1);
    if (rounds_[round].empty()) rounds_[round].assign(output, output + floats_);
    return std::memcmp(rounds_[round].data(), output, floats_ * sizeof(float)) == 0 ? "" : "the ranks' bits differ";
  }

 private:
  const std::size_t floats_;
  std::mutex guard_;
  std::vector<std::vector<float>> rounds_;
};

// One rank of a case, which has made its plan.
struct GemvRank {
  const GemvCase& given;
  int rank;
  std::vector<RankWeights> all;  // of all ranks
  OutputMemory& output;
  SameBits& same;
  Result<std::unique_ptr<Gemv>>& made;

  RankWeights& own() { return all[static_cast<std::size_t>(rank)]; }
  void draw(int round) {
    for (std::size_t of = 0; of < all.size(); ++of) draw_vectors(given.shape, static_cast<int>(of), round, all[of]);
  }
  std::string run_once() {
    if (Status status = (*made)->start(own().x.data()); !status.ok()) return "start: " + status.message();
    if (Status status = (*made)->wait(); !status.ok()) return "wait: " + status.message();
    return {};
  }
  std::string run(int round) {
    output.fill();
    if (std::string wrong = run_once(); !wrong.empty()) return wrong;
    if (!output.is_untouched_behind()) return "something behind the output is written";
    if (std::string wrong = same.compare(static_cast<std::size_t>(round), output.data()); !wrong.empty()) return wrong;
    return wrong_product(given.shape, all, output.data());
  }
};

class GemvOf : public testing::Test {
 protected:
  using Change = std::function<void(int rank, GemvArguments& arguments)>;
  using Look = std::function<std::string(GemvRank& rank)>;

  static void SetUpTestSuite() { static_cast<void>(SharedHeap::create({.bytes = std::size_t{1} << 30})); }

  std::string make(
      const GemvCase& given, const Look& look, const Change& change = [](int, GemvArguments&) {}) {
    Process process(given.ranks.ranks);
    process.config().channels = {"shm", "mpi"};
    InProcessJob job(given.ranks.ranks), party(given.ranks.ranks);
    party.bring_messages(test_seed(), 3);
    SameBits same(given);
    return job.run([&](Oob& all) {
      PostingRank posting(job, all.rank(), given.ranks, test_seed());
      std::vector<RankWeights> weights;
      for (std::size_t rank = 0; rank < given.depths.size(); ++rank)
        weights.push_back(make_weights(given.shape, given.type_of(rank), given.depths[rank], static_cast<int>(rank)));
      OutputMemory output(given.floats(), given.where);
      GemvArguments arguments = gemv_arguments_of(given, weights[static_cast<std::size_t>(all.rank())], output.data());
      change(all.rank(), arguments);
      Result<std::unique_ptr<Gemv>> made = Gemv::make(all, arguments, [&] {
        return std::make_unique<AllMembers>(party, posting.progress, all.rank(), given.ranks);
      });
      GemvRank rank{given, all.rank(), std::move(weights), output, same, made};
      return look(rank);
    });
  }
  std::string make_and_run(const GemvCase& given, int rounds) {
    return make(given, [rounds](GemvRank& rank) -> std::string {
      if (!rank.made.ok()) return rank.made.status().message();
      for (int round = 0; round < rounds; ++round) {
        rank.draw(round);
        if (std::string wrong = rank.run(round); !wrong.empty()) return "round " + std::to_string(round) + ": " + wrong;
      }
      return {};
    });
  }
};

std::vector<std::int64_t> same_depths(int ranks, std::int64_t depth) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(ranks), depth);
}

TEST_F(GemvOf, OneRankIsRight) {
  EXPECT_EQ(make_and_run({.ranks = {1, 1}, .shape = {.rows = 33, .columns = 3}, .depths = {40}}, 3), "");
}

TEST_F(GemvOf, TwoRanksOfANodeAreRight) {
  for (const Where where : {Where::private_memory, Where::shared_heap})
    EXPECT_EQ(make_and_run({.ranks = {2, 2},
                            .shape = {.rows = 300, .columns = 2},
                            .depths = {65, 31},
                            .types = {RowType::f32, RowType::i8},
                            .options = "slice=256",
                            .where = where},
                           5),
              "");
}

TEST_F(GemvOf, ThePlanSaysHowSlicesGo) {
  struct Way {
    Shape ranks;
    Where where;
    const char* says;
  };
  const std::vector<Way> ways = {{{2, 2}, Where::shared_heap, "\"direct\": 1, \"staged\": 0, \"messages\": 0"},
                                 {{2, 2}, Where::private_memory, "\"direct\": 0, \"staged\": 1, \"messages\": 0"},
                                 {{4, 2}, Where::shared_heap, "\"direct\": 1, \"staged\": 0, \"messages\": 2"}};
  for (const Way& way : ways) {
    const GemvCase given{
        .ranks = way.ranks, .shape = {.rows = 64}, .depths = same_depths(way.ranks.ranks, 4), .where = way.where};
    EXPECT_EQ(make(given,
                   [&](GemvRank& rank) -> std::string {
                     if (!rank.made.ok()) return rank.made.status().message();
                     const std::string& description = (*rank.made)->description();
                     return description.find(way.says) != std::string::npos ? "" : description;
                   }),
              "");
  }
}

TEST_F(GemvOf, EveryShapeIsRight) {
  std::mt19937_64 random(test_seed());
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  for (int round = 0; round < 60; ++round) {
    GemvCase given;
    given.ranks.ranks = static_cast<int>(draw(1, 8));
    given.ranks.on_node = static_cast<int>(draw(1, given.ranks.ranks));
    // Some ranks own no row.
    given.shape = {.rows = draw(1, draw(0, 2) == 0 ? 6 : 400),
                   .columns = static_cast<int>(draw(1, most_columns)),
                   .seed = random() % 1000};
    for (int rank = 0; rank < given.ranks.ranks; ++rank) {
      given.depths.push_back(draw(0, 6) == 0 ? 0 : draw(1, 70));
      given.types.push_back(static_cast<RowType>(draw(0, 2)));
    }
    given.options = "workers=" + std::to_string(draw(1, 3)) + " slice=" + std::to_string(draw(0, 2000)) +
                    (draw(0, 1) == 0 ? " order=plain" : "");
    given.where = draw(0, 1) == 0 ? Where::private_memory : Where::shared_heap;
    EXPECT_EQ(make_and_run(given, 3), "")
        << "round " << round << ", " << given.ranks.ranks << " ranks, " << given.ranks.on_node << " on a node, rows "
        << given.shape.rows << ", columns " << given.shape.columns << ", " << given.options;
  }
}

// Rows that are longer than a worker's turn: a tile is a row.
TEST_F(GemvOf, LongRowsAreRight) {
  for (const Where where : {Where::private_memory, Where::shared_heap})
    EXPECT_EQ(make_and_run({.ranks = {3, 2},
                            .shape = {.rows = 7, .columns = 1},
                            .depths = {40'000, 3, 20'001},
                            .types = {RowType::f32, RowType::i8, RowType::bf16},
                            .options = "workers=2 slice=8",
                            .where = where},
                           2),
              "");
}

TEST_F(GemvOf, TheSamePlacesServeManyRuns) {
  for (const Shape ranks : {Shape{3, 3}, Shape{4, 2}, Shape{5, 2}})
    for (const Where where : {Where::private_memory, Where::shared_heap})
      EXPECT_EQ(make_and_run({.ranks = ranks,
                              .shape = {.rows = 40, .columns = 2},
                              .depths = same_depths(ranks.ranks, 5),
                              .options = "workers=2 slice=64",
                              .where = where},
                             300),
                "");
}

// Without anything between the runs: a rank may be a run ahead of another.
TEST_F(GemvOf, RunsThatFollowEachOtherAtOnceGiveTheSameBits) {
  for (const Shape ranks : {Shape{2, 2}, Shape{4, 2}}) {
    const GemvCase given{.ranks = ranks,
                         .shape = {.rows = 50, .columns = 3},
                         .depths = same_depths(ranks.ranks, 7),
                         .options = "workers=1 slice=128",
                         .where = Where::shared_heap};
    const auto look = [&](GemvRank& rank) -> std::string {
      if (!rank.made.ok()) return rank.made.status().message();
      std::vector<std::vector<float>> expected;
      for (int round = 0; round < 1500; ++round) {
        rank.draw(round % 3);
        if (std::string wrong = rank.run_once(); !wrong.empty()) return wrong;
        const float* output = rank.output.data();
        if (round < 3) expected.emplace_back(output, output + given.floats());
        if (std::memcmp(expected[static_cast<std::size_t>(round % 3)].data(), output, given.floats() * sizeof(float)))
          return "round " + std::to_string(round) + " has other bits";
      }
      return {};
    };
    EXPECT_EQ(make(given, look), "");
  }
}

TEST_F(GemvOf, AMissingVectorIsToldToAllAndTouchesNothing) {
  for (const Shape ranks : {Shape{3, 3}, Shape{4, 2}})
    for (const Where where : {Where::private_memory, Where::shared_heap}) {
      const GemvCase given{.ranks = ranks,
                           .shape = {.rows = 100, .columns = 2},
                           .depths = same_depths(ranks.ranks, 8),
                           .options = "workers=2 slice=64",
                           .where = where};
      const auto look = [&](GemvRank& rank) -> std::string {
        if (!rank.made.ok()) return rank.made.status().message();
        for (int round = 0; round < 6; ++round) {
          rank.draw(round);
          if (round % 2 == 0) {
            if (std::string bad = rank.run(round); !bad.empty()) return "well: " + bad;
            continue;
          }
          rank.output.fill();
          static_cast<void>((*rank.made)->start(rank.rank == 1 ? nullptr : rank.own().x.data()));
          const Status status = (*rank.made)->wait();
          if (status.code() != Code::invalid || status.message() != "x: NULL (on rank 1)")
            return "it says: " + status.message();
          if (!rank.output.is_untouched()) return "the output is touched";
        }
        return {};
      };
      EXPECT_EQ(make(given, look), "");
    }
}

TEST_F(GemvOf, WrongArgumentsMakeNoPlanOnAnyRank) {
  using ChangeOne = std::function<void(GemvArguments&)>;
  const std::vector<std::pair<std::string, ChangeOne>> wrongs = {
      {"rows: 0: expected 1 to ", [](GemvArguments& given) { given.rows = 0; }},
      {"depth: -1: expected 0 to ", [](GemvArguments& given) { given.depth = -1; }},
      {"columns: 0: expected 1 to 16", [](GemvArguments& given) { given.columns = 0; }},
      {"columns: 17: expected 1 to 16", [](GemvArguments& given) { given.columns = 17; }},
      {"type: 3: expected 0 to 2", [](GemvArguments& given) { given.type = 3; }},
      {"type: -1: expected 0 to 2", [](GemvArguments& given) { given.type = -1; }},
      {"data: NULL", [](GemvArguments& given) { given.weights = nullptr; }},
      {"scales: NULL",
       [](GemvArguments& given) {
         given.type = 2;
         given.scales = nullptr;
       }},
      {"output: NULL", [](GemvArguments& given) { given.output = nullptr; }},
      {"plan: NULL", [](GemvArguments& given) { given.wants_plan = false; }},
      {"options: \"check=1\": expected workers=, slice=, order=",
       [](GemvArguments& given) { given.options = "check=1"; }},
      {"options: \"slice=-1\": expected a number from 0", [](GemvArguments& given) { given.options = "slice=-1"; }}};
  const GemvCase given{.ranks = {3, 3}, .shape = {.rows = 8}, .depths = {2, 2, 2}};
  for (const auto& [told, change] : wrongs) {
    const auto look = [&told = told](GemvRank& rank) -> std::string {
      if (rank.made.ok()) return "it was made";
      const std::string message = rank.made.status().message();
      const bool names_rank = rank.rank == 1 || message.find("(on rank 1)") != std::string::npos;
      return message.find(told) == 0 && names_rank ? "" : "it says: " + message;
    };
    EXPECT_EQ(make(given, look,
                   [&change = change](int rank, GemvArguments& arguments) {
                     if (rank == 1) change(arguments);
                   }),
              "");
  }
}

TEST_F(GemvOf, RanksThatGiveSomethingElseAreNamedToAll) {
  const GemvCase given{.ranks = {3, 3}, .shape = {.rows = 8, .columns = 2}, .depths = {2, 2, 2}};
  const auto tell = [](const std::string& told) {
    return [told](GemvRank& rank) {
      const std::string message = rank.made.ok() ? "it was made" : rank.made.status().message();
      return message == told ? "" : "it says: " + message;
    };
  };
  EXPECT_EQ(make(given, tell("rows: 9: expected 8, as rank 0 has it (on rank 1)"),
                 [](int rank, GemvArguments& arguments) { arguments.rows += rank; }),
            "");
  EXPECT_EQ(make(given, tell("columns: 3: expected 2, as rank 0 has it (on rank 2)"),
                 [](int rank, GemvArguments& arguments) { arguments.columns += rank == 2 ? 1 : 0; }),
            "");
  EXPECT_EQ(make(given, tell("slice=: 64: expected 0, as rank 0 has it (on rank 1)"),
                 [](int rank, GemvArguments& arguments) { arguments.options = rank == 1 ? "slice=64" : ""; }),
            "");
}

TEST_F(GemvOf, IsStartedOnceAtATime) {
  const GemvCase given{.ranks = {2, 2}, .shape = {.rows = 8}, .depths = {1, 1}};
  EXPECT_EQ(make(given,
                 [](GemvRank& rank) -> std::string {
                   if (!rank.made.ok()) return rank.made.status().message();
                   Gemv& plan = **rank.made;
                   if (plan.wait().ok()) return "a plan that was not started is waited for";
                   if (!plan.start(rank.own().x.data()).ok()) return "it is not started";
                   if (plan.start(rank.own().x.data()).ok()) return "it is started twice";
                   return plan.wait().ok() ? "" : "it is not waited for";
                 }),
            "");
}

}  // namespace
}  // namespace plait::fused
