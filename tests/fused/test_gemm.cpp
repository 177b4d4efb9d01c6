// Fused products of matrices, with a reduce-scatter behind and with an all-gather before, among ranks in one process:
// every element of every output, whatever the shape and the way to the other ranks; run after run; and what is wrong
// with one rank's arguments is known to all, before any output is touched.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fused/gemm/all_gather.h"
#include "fused/gemm/reduce_scatter.h"
#include "tests/fused/matrices.h"
#include "tests/fused/plan_test.h"

namespace plait::fused {
namespace {

struct GemmCase : PlanCase {
  std::int64_t rows = 1;
  std::vector<std::int64_t> depths = {};   // by rank
  std::vector<std::int64_t> columns = {};  // by rank
  std::uint64_t seed = 1;

  std::string text() const {
    std::string text = PlanCase::text() + ", rows " + std::to_string(rows);
    for (std::size_t rank = 0; rank < depths.size(); ++rank)
      text += ", " + std::to_string(depths[rank]) + " x " + std::to_string(columns[rank]);
    return text;
  }
};

GemmCase gemm_case(Shape ranks, std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  GemmCase made;
  made.ranks = ranks;
  made.rows = rows;
  made.depths.assign(static_cast<std::size_t>(ranks.ranks), depth);
  made.columns.assign(static_cast<std::size_t>(ranks.ranks), columns);
  return made;
}

struct RankMatrices {
  Matrix x, weights;
};

struct Nothing {
  explicit Nothing(const GemmCase&) {}
};

// Of both operators: which rows of x a rank has, and of the output.
template <class Operator>
struct GemmKind {
  using Plan = Operator;
  using Arguments = GemmArguments;
  using Case = GemmCase;
  using Data = RankMatrices;
  using Shared = Nothing;
  static constexpr bool gathers = std::is_same_v<Operator, AllGatherGemm>;

  static Range share(const GemmCase& given, int rank) { return share_of(given.rows, given.ranks.ranks, rank); }
  static std::int64_t input_rows(const GemmCase& given, int rank) {
    return gathers ? share(given, rank).length() : given.rows;
  }
  static std::int64_t output_rows(const GemmCase& given, int rank) {
    return gathers ? given.rows : share(given, rank).length();
  }
  static std::uint64_t seed_of(const GemmCase& given, int rank, int round) {
    return given.seed * 1000 + static_cast<std::uint64_t>(rank) + static_cast<std::uint64_t>(round + 1) * 77777;
  }

  static RankMatrices make_data(const GemmCase& given, int rank) {
    const auto at = static_cast<std::size_t>(rank);
    RankMatrices made;
    made.weights = draw_matrix(given.depths[at], given.columns[at], seed_of(given, rank, -1));
    draw(given, rank, 0, made);
    return made;
  }
  static void draw(const GemmCase& given, int rank, int round, RankMatrices& matrices) {
    matrices.x =
        draw_matrix(input_rows(given, rank), given.depths[static_cast<std::size_t>(rank)], seed_of(given, rank, round));
  }
  static std::size_t floats(const GemmCase& given, int rank) {
    return static_cast<std::size_t>(output_rows(given, rank) * given.columns[static_cast<std::size_t>(rank)]);
  }
  static GemmArguments arguments(const GemmCase& given, const RankMatrices& matrices, float* output) {
    return {.rows = given.rows,
            .depth = matrices.weights.rows,
            .columns = matrices.weights.columns,
            .type = 0,
            .weights = matrices.weights.elements.data(),
            .output = output,
            .options = given.options.c_str()};
  }
  static Status start(Operator& plan, const RankMatrices& matrices) { return plan.start(matrices.x.elements.data()); }
  static std::string wrong(PlanRank<GemmKind>& rank, int) {
    const std::int64_t columns = rank.given.columns[static_cast<std::size_t>(rank.rank)];
    ExpectedMatrix expected(output_rows(rank.given, rank.rank), columns);
    if (!gathers) {
      std::int64_t roundings = 0;
      for (const RankMatrices& of : rank.all) {
        expected.add_product(of.x, share(rank.given, rank.rank).begin, of.weights);
        roundings += 2 * of.weights.rows;
      }
      return expected.compare(rank.output.data(), roundings + rank.given.ranks.ranks);
    }
    Matrix x{.rows = rank.given.rows, .columns = rank.own().weights.rows, .elements = {}};
    for (const RankMatrices& of : rank.all)
      x.elements.insert(x.elements.end(), of.x.elements.begin(), of.x.elements.end());
    expected.add_product(x, 0, rank.own().weights);
    return expected.compare(rank.output.data(), 2 * x.columns);
  }
};

template <class Operator>
class GemmOf : public PlansOf<GemmKind<Operator>> {
 protected:
  using Plans = PlansOf<GemmKind<Operator>>;
  using Rank = typename Plans::Rank;
  static constexpr bool gathers = GemmKind<Operator>::gathers;

  // What is spread over the ranks may be nothing on some.
  static GemmCase draw_case(std::mt19937_64& random) {
    const auto draw = [&](std::int64_t from, std::int64_t to) {
      return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
    };
    GemmCase given;
    draw_plan_case(random, given, 20'000);
    given.rows = draw(1, draw(0, 2) == 0 ? 9 : 500);
    given.seed = random() % 1000;
    const std::int64_t depth = draw(1, 70), columns = draw(1, draw(0, 1) == 0 ? 40 : 300);
    for (int rank = 0; rank < given.ranks.ranks; ++rank) {
      given.depths.push_back(gathers ? depth : draw(0, 6) == 0 ? 0 : draw(1, 70));
      given.columns.push_back(!gathers ? columns : draw(0, 6) == 0 ? 0 : draw(1, 200));
    }
    return given;
  }
};

using Operators = testing::Types<GemmReduceScatter, AllGatherGemm>;
class OperatorName {
 public:
  template <class Operator>
  static std::string GetName(int) {
    return GemmKind<Operator>::gathers ? "AllGather" : "ReduceScatter";
  }
};
TYPED_TEST_SUITE(GemmOf, Operators, OperatorName);

TYPED_TEST(GemmOf, OneRankIsRight) { EXPECT_EQ(this->make_and_run(gemm_case({1, 1}, 130, 40, 70), 3), ""); }

TYPED_TEST(GemmOf, TwoRanksOfANodeAreRight) {
  GemmCase given = gemm_case({2, 2}, 400, 65, 300);
  for (const Where where : {Where::private_memory, Where::shared_heap}) {
    given.where = where;
    EXPECT_EQ(this->make_and_run(given, 4), "");
  }
}

TYPED_TEST(GemmOf, EveryShapeIsRight) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 40; ++round) {
    const GemmCase given = this->draw_case(random);
    EXPECT_EQ(this->make_and_run(given, 3), "") << "round " << round << ", " << given.text();
  }
}

// A tile's product is made in parts.
TYPED_TEST(GemmOf, DeepProductsBetweenNodesAreRight) {
  EXPECT_EQ(this->make_and_run(gemm_case({2, 1}, 20, 2500, 30), 2), "");
}

TYPED_TEST(GemmOf, TenThousandRunsOnTheSamePlacesHaveTheSameBits) {
  GemmCase given = gemm_case({2, 2}, 16, 4, 8);
  given.options = "workers=1 slice=256";
  given.where = Where::shared_heap;
  EXPECT_EQ(this->run_at_once(given, 10'000), "");
}

TYPED_TEST(GemmOf, TheSamePlacesServeManyRuns) {
  for (const Shape ranks : {Shape{3, 3}, Shape{4, 2}, Shape{5, 2}})
    for (const Where where : {Where::private_memory, Where::shared_heap}) {
      GemmCase given = gemm_case(ranks, 90, 5, 20);
      given.options = "workers=2 slice=512";
      given.where = where;
      EXPECT_EQ(this->make_and_run(given, 200), "");
    }
}

// The thread sanitizer sees all of it: nothing is mapped at two addresses.
TYPED_TEST(GemmOf, ByMessagesAloneTheSamePlacesServeManyRuns) {
  for (const int workers : {1, 3}) {
    GemmCase given = gemm_case({3, 3}, 90, 5, 20);
    given.options = "slice=512 workers=" + std::to_string(workers);
    given.shares_memory = false;
    EXPECT_EQ(this->make_and_run(given, 100), "");
  }
}

TYPED_TEST(GemmOf, RunsThatFollowEachOtherAtOnceGiveTheSameBits) {
  for (const Shape ranks : {Shape{2, 2}, Shape{4, 2}}) {
    GemmCase given = gemm_case(ranks, 70, 7, 20);
    given.options = "workers=1 slice=512";
    given.where = Where::shared_heap;
    EXPECT_EQ(this->run_at_once(given, 1000), "");
  }
}

TYPED_TEST(GemmOf, AMissingMatrixIsToldToAllAndTouchesNothing) {
  for (const Shape ranks : {Shape{3, 3}, Shape{4, 2}})
    for (const Where where : {Where::private_memory, Where::shared_heap}) {
      GemmCase given = gemm_case(ranks, 100, 8, 20);
      given.options = "workers=2 slice=512";
      given.where = where;
      EXPECT_EQ(this->refuse_by_turns(
                    given, [](auto& rank) { return rank.plan().start(nullptr); }, "x: NULL (on rank 1)"),
                "");
    }
}

TYPED_TEST(GemmOf, WrongArgumentsMakeNoPlanOnAnyRank) {
  typename TestFixture::Wrongs wrongs = {
      {"rows: 0: expected 1 to ", [](GemmArguments& given) { given.rows = 0; }},
      {"depth: -1: expected ", [](GemmArguments& given) { given.depth = -1; }},
      {"columns: -1: expected ", [](GemmArguments& given) { given.columns = -1; }},
      {"type: 1: expected 0 to 0", [](GemmArguments& given) { given.type = 1; }},
      {"data: NULL", [](GemmArguments& given) { given.weights = nullptr; }},
      {"output: NULL", [](GemmArguments& given) { given.output = nullptr; }},
      {"plan: NULL", [](GemmArguments& given) { given.missing = "plan"; }},
      {"options: \"check=1\": expected workers=", [](GemmArguments& given) { given.options = "check=1"; }}};
  this->expect_refused(gemm_case({3, 3}, 8, 2, 2), wrongs);
}

TYPED_TEST(GemmOf, RanksThatGiveSomethingElseAreNamedToAll) {
  const GemmCase given = gemm_case({3, 3}, 8, 2, 2);
  this->expect_told(given, "rows: 9: expected 8, as rank 0 has it (on rank 1)",
                    [](int rank, GemmArguments& arguments) { arguments.rows += rank; });
  const std::string other = GemmKind<TypeParam>::gathers ? "depth" : "columns";
  this->expect_told(given, other + ": 3: expected 2, as rank 0 has it (on rank 2)",
                    [](int rank, GemmArguments& arguments) {
                      (GemmKind<TypeParam>::gathers ? arguments.depth : arguments.columns) += rank == 2 ? 1 : 0;
                    });
  this->expect_told(given, "slice=: 64: expected 0, as rank 0 has it (on rank 1)",
                    [](int rank, GemmArguments& arguments) { arguments.options = rank == 1 ? "slice=64" : ""; });
}

TYPED_TEST(GemmOf, IsStartedOnceAtATime) { EXPECT_EQ(this->start_once_at_a_time(gemm_case({2, 2}, 8, 1, 1)), ""); }

}  // namespace
}  // namespace plait::fused
