// Fused products among ranks in one process: every element of every output, the same bits on all ranks, whatever the
// shape and the way to the other ranks; run after run; and what is wrong with one rank's arguments is known to all,
// before any output is touched.
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fused/gemv/gemv.h"
#include "tests/fused/plan_test.h"
#include "tests/fused/products.h"

namespace plait::fused {
namespace {

struct GemvCase : PlanCase {
  ProductShape shape = {};
  std::vector<std::int64_t> depths = {};  // by rank
  std::vector<RowType> types = {};        // by rank; none: f32

  RowType type_of(std::size_t rank) const { return types.empty() ? RowType::f32 : types[rank]; }
  std::size_t floats() const { return static_cast<std::size_t>(shape.rows * shape.columns); }
};

// The ranks' outputs of a run, which must be the same bits.
class SameBits {
 public:
  explicit SameBits(const GemvCase& given) : floats_(given.floats()) {}
  // "" where they are those of the rank that came first in this round.
  std::string compare(int number, const float* output) {
    const std::scoped_lock lock(guard_);
    const auto round = static_cast<std::size_t>(number);
    if (round >= rounds_.size()) rounds_.resize(round + 1);
    if (rounds_[round].empty()) rounds_[round].assign(output, output + floats_);
    return std::memcmp(rounds_[round].data(), output, floats_ * sizeof(float)) == 0 ? "" : "the ranks' bits differ";
  }

 private:
  const std::size_t floats_;
  std::mutex guard_;
  std::vector<std::vector<float>> rounds_;
};

struct GemvKind {
  using Plan = Gemv;
  using Arguments = GemvArguments;
  using Case = GemvCase;
  using Data = RankWeights;
  using Shared = SameBits;

  static RankWeights make_data(const GemvCase& given, int rank) {
    const auto at = static_cast<std::size_t>(rank);
    return make_weights(given.shape, given.type_of(at), given.depths[at], rank);
  }
  static void draw(const GemvCase& given, int rank, int round, RankWeights& weights) {
    draw_vectors(given.shape, rank, round, weights);
  }
  static std::size_t floats(const GemvCase& given, int) { return given.floats(); }
  static GemvArguments arguments(const GemvCase& given, const RankWeights& weights, float* output) {
    return {.rows = given.shape.rows,
            .depth = weights.depth,
            .columns = given.shape.columns,
            .type = static_cast<int>(weights.type),
            .weights = weights.weights.data(),
            .scales = weights.scales.data(),
            .output = output,
            .options = given.options.c_str()};
  }
  static Status start(Gemv& plan, const RankWeights& weights) { return plan.start(weights.x.data()); }
  static std::string wrong(PlanRank<GemvKind>& rank, int round) {
    if (std::string wrong = rank.shared.compare(round, rank.output.data()); !wrong.empty()) return wrong;
    return wrong_product(rank.given.shape, rank.all, rank.output.data());
  }
};

using GemvOf = PlansOf<GemvKind>;

GemvCase gemv_case(Shape ranks, const ProductShape& shape, std::vector<std::int64_t> depths) {
  GemvCase made;
  made.ranks = ranks;
  made.shape = shape;
  made.depths = std::move(depths);
  return made;
}

std::vector<std::int64_t> same_depths(int ranks, std::int64_t depth) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(ranks), depth);
}

TEST_F(GemvOf, OneRankIsRight) { EXPECT_EQ(make_and_run(gemv_case({1, 1}, {.rows = 33, .columns = 3}, {40}), 3), ""); }

TEST_F(GemvOf, TwoRanksOfANodeAreRight) {
  GemvCase given = gemv_case({2, 2}, {.rows = 300, .columns = 2}, {65, 31});
  given.types = {RowType::f32, RowType::i8};
  given.options = "slice=256";
  for (const Where where : {Where::private_memory, Where::shared_heap}) {
    given.where = where;
    EXPECT_EQ(make_and_run(given, 5), "");
  }
}

TEST_F(GemvOf, ThePlanSaysHowSlicesGo) { expect_ways(gemv_case({4, 2}, {.rows = 64}, same_depths(4, 4))); }

TEST_F(GemvOf, EveryShapeIsRight) {
  std::mt19937_64 random(test_seed());
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  for (int round = 0; round < 60; ++round) {
    GemvCase given;
    draw_plan_case(random, given, 2000);
    // Some ranks own no row.
    given.shape = {.rows = draw(1, draw(0, 2) == 0 ? 6 : 400),
                   .columns = static_cast<int>(draw(1, most_columns)),
                   .seed = random() % 1000};
    for (int rank = 0; rank < given.ranks.ranks; ++rank) {
      given.depths.push_back(draw(0, 6) == 0 ? 0 : draw(1, 70));
      given.types.push_back(static_cast<RowType>(draw(0, 2)));
    }
    EXPECT_EQ(make_and_run(given, 3), "") << "round " << round << ", " << given.text() << ", rows " << given.shape.rows
                                          << ", columns " << given.shape.columns;
  }
}

// Rows that are longer than a worker's turn: a tile is a row.
TEST_F(GemvOf, LongRowsAreRight) {
  GemvCase given = gemv_case({3, 2}, {.rows = 7, .columns = 1}, {40'000, 3, 20'001});
  given.types = {RowType::f32, RowType::i8, RowType::bf16};
  given.options = "workers=2 slice=8";
  for (const Where where : {Where::private_memory, Where::shared_heap}) {
    given.where = where;
    EXPECT_EQ(make_and_run(given, 2), "");
  }
}

TEST_F(GemvOf, TheSamePlacesServeManyRuns) {
  for (const Shape ranks : {Shape{3, 3}, Shape{4, 2}, Shape{5, 2}})
    for (const Where where : {Where::private_memory, Where::shared_heap}) {
      GemvCase given = gemv_case(ranks, {.rows = 40, .columns = 2}, same_depths(ranks.ranks, 5));
      given.options = "workers=2 slice=64";
      given.where = where;
      EXPECT_EQ(make_and_run(given, 300), "");
    }
}

TEST_F(GemvOf, RunsThatFollowEachOtherAtOnceGiveTheSameBits) {
  for (const Shape ranks : {Shape{2, 2}, Shape{4, 2}}) {
    GemvCase given = gemv_case(ranks, {.rows = 50, .columns = 3}, same_depths(ranks.ranks, 7));
    given.options = "workers=1 slice=128";
    given.where = Where::shared_heap;
    EXPECT_EQ(run_at_once(given, 1500), "");
  }
}

TEST_F(GemvOf, TenThousandRunsOnTheSamePlacesHaveTheSameBits) {
  GemvCase given = gemv_case({2, 2}, {.rows = 30, .columns = 2}, same_depths(2, 5));
  given.options = "workers=1 slice=64";
  given.where = Where::shared_heap;
  EXPECT_EQ(run_at_once(given, 10'000), "");
}

TEST_F(GemvOf, AMissingVectorIsToldToAllAndTouchesNothing) {
  for (const Shape ranks : {Shape{3, 3}, Shape{4, 2}})
    for (const Where where : {Where::private_memory, Where::shared_heap}) {
      GemvCase given = gemv_case(ranks, {.rows = 100, .columns = 2}, same_depths(ranks.ranks, 8));
      given.options = "workers=2 slice=64";
      given.where = where;
      EXPECT_EQ(refuse_by_turns(
                    given, [](Rank& rank) { return rank.plan().start(nullptr); }, "x: NULL (on rank 1)"),
                "");
    }
}

TEST_F(GemvOf, WrongArgumentsMakeNoPlanOnAnyRank) {
  const Wrongs wrongs = {
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
      {"plan: NULL", [](GemvArguments& given) { given.missing = "plan"; }},
      {"options: \"check=1\": expected workers=, slice=, order=",
       [](GemvArguments& given) { given.options = "check=1"; }},
      {"options: \"slice=-1\": expected a number from 0", [](GemvArguments& given) { given.options = "slice=-1"; }}};
  expect_refused(gemv_case({3, 3}, {.rows = 8}, {2, 2, 2}), wrongs);
}

TEST_F(GemvOf, RanksThatGiveSomethingElseAreNamedToAll) {
  const GemvCase given = gemv_case({3, 3}, {.rows = 8, .columns = 2}, {2, 2, 2});
  expect_told(given, "rows: 9: expected 8, as rank 0 has it (on rank 1)",
              [](int rank, GemvArguments& arguments) { arguments.rows += rank; });
  expect_told(given, "columns: 3: expected 2, as rank 0 has it (on rank 2)",
              [](int rank, GemvArguments& arguments) { arguments.columns += rank == 2 ? 1 : 0; });
  expect_told(given, "slice=: 64: expected 0, as rank 0 has it (on rank 1)",
              [](int rank, GemvArguments& arguments) { arguments.options = rank == 1 ? "slice=64" : ""; });
}

TEST_F(GemvOf, IsStartedOnceAtATime) { EXPECT_EQ(start_once_at_a_time(gemv_case({2, 2}, {.rows = 8}, {1, 1})), ""); }

}  // namespace
}  // namespace plait::fused
