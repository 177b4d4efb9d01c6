// Both halves of a layer of experts among ranks in one process: every element of every output, whatever the shape, the
// choices and the way to the other ranks; run after run with other choices; and what is wrong with one rank's arguments
// is known to all, before any output is touched.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fused/moe/combine.h"
#include "fused/moe/dispatch.h"
#include "tests/fused/experts.h"
#include "tests/fused/plan_test.h"

namespace plait::fused {
namespace {

struct MoeCase : PlanCase {
  MoeShape shape = {};
  std::string text() const { return PlanCase::text() + ", " + shape.text(); }
};

MoeCase moe_case(Shape ranks, std::int64_t tokens, std::int64_t experts, const MoeShape& shape) {
  MoeCase made;
  made.ranks = ranks;
  made.shape = shape;
  made.shape.tokens.assign(static_cast<std::size_t>(ranks.ranks), tokens);
  made.shape.experts.assign(static_cast<std::size_t>(ranks.ranks), experts);
  made.shape.capacity = ample_capacity(made.shape);
  return made;
}

template <class Operator>
struct MoeKind {
  using Plan = Operator;
  using Arguments = MoeArguments;
  using Case = MoeCase;
  using Data = RankExperts;
  struct Shared {
    explicit Shared(const MoeCase&) {}
  };
  static constexpr bool dispatches = std::is_same_v<Operator, MoeDispatch>;
  static constexpr Half half = dispatches ? Half::dispatch : Half::combine;

  static RankExperts make_data(const MoeCase& given, int rank) { return make_experts(given.shape, half, rank); }
  static void draw(const MoeCase& given, int rank, int round, RankExperts& data) {
    draw_tokens(given.shape, half, rank, round, data);
  }
  static std::size_t floats(const MoeCase& given, int rank) {
    const MoeShape& shape = given.shape;
    const auto at = static_cast<std::size_t>(rank);
    const std::int64_t rows = !dispatches             ? shape.tokens[at]
                              : shape.experts[at] > 0 ? shape.ranks() * shape.capacity
                                                      : 0;
    return static_cast<std::size_t>(rows * shape.columns);
  }
  static MoeArguments arguments(const MoeCase& given, const RankExperts& data, float* output) {
    return {.tokens = static_cast<std::int64_t>(data.experts.size()) / given.shape.choices,
            .choices = given.shape.choices,
            .experts = static_cast<std::int64_t>(data.weights.size()),
            .depth = given.shape.depth,
            .columns = given.shape.columns,
            .capacity = given.shape.capacity,
            .type = 0,
            .weights = data.weights_list.data(),
            .output = output,
            .counts = const_cast<std::int64_t*>(data.counts.data()),
            .options = given.options.c_str()};
  }
  static Status start(Operator& plan, const RankExperts& data) {
    if constexpr (dispatches)
      return plan.start({.x = data.x.elements.data(), .experts = data.experts.data()});
    else
      return plan.start({.x = data.x.elements.data(), .experts = data.experts.data(), .weights = data.factors.data()});
  }
  static std::string wrong(PlanRank<MoeKind>& rank, int) {
    const float* output = rank.output.data();
    return dispatches ? wrong_dispatch(rank.given.shape, rank.all, rank.rank, output, poison)
                      : wrong_combine(rank.given.shape, rank.all, rank.rank, output);
  }
};

template <class Operator>
class MoeOf : public PlansOf<MoeKind<Operator>> {
 protected:
  static MoeCase draw_case(std::mt19937_64& random) {
    const auto draw = [&](std::int64_t from, std::int64_t to) {
      return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
    };
    MoeCase given;
    draw_plan_case(random, given, 9000);
    MoeShape& shape = given.shape;
    shape.choices = draw(1, 4);
    shape.depth = draw(1, 40);
    shape.columns = draw(1, draw(0, 1) == 0 ? 30 : 300);
    shape.skew = static_cast<double>(draw(0, 3));
    shape.dropped = draw(0, 5) == 0 ? 1 : static_cast<double>(draw(0, 4)) / 8;
    shape.seed = random() % 1000;
    for (int rank = 0; rank < given.ranks.ranks; ++rank) {
      shape.tokens.push_back(draw(0, 6) == 0 ? 0 : draw(1, 120));
      shape.experts.push_back(draw(0, 5) == 0 ? 0 : draw(1, 5));
    }
    shape.capacity = draw(0, 1) == 0 ? ample_capacity(shape) : draw(1, ample_capacity(shape));
    return given;
  }
};

using Halves = testing::Types<MoeDispatch, MoeCombine>;
class HalfName {
 public:
  template <class Operator>
  static std::string GetName(int) {
    return MoeKind<Operator>::dispatches ? "Dispatch" : "Combine";
  }
};
TYPED_TEST_SUITE(MoeOf, Halves, HalfName);

TYPED_TEST(MoeOf, OneRankIsRight) {
  EXPECT_EQ(this->make_and_run(moe_case({1, 1}, 50, 4, {.choices = 2, .depth = 20, .columns = 33}), 3), "");
}

TYPED_TEST(MoeOf, TwoRanksOfANodeAreRight) {
  for (const std::int64_t choices : {1, 2, 3}) {
    MoeCase given = moe_case({2, 2}, 200, 3, {.choices = choices, .depth = 65, .columns = 300, .skew = 1});
    for (const Where where : {Where::private_memory, Where::shared_heap}) {
      given.where = where;
      EXPECT_EQ(this->make_and_run(given, 4), "");
    }
  }
}

TYPED_TEST(MoeOf, EveryShapeIsRight) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 60; ++round) {
    const MoeCase given = this->draw_case(random);
    EXPECT_EQ(this->make_and_run(given, 3), "") << "round " << round << ", " << given.text();
  }
}

TYPED_TEST(MoeOf, RanksWithoutTokensOrExpertsTakePart) {
  MoeCase given = moe_case({4, 2}, 30, 2, {.choices = 2, .depth = 7, .columns = 9});
  given.shape.tokens = {0, 40, 0, 3};
  given.shape.experts = {3, 0, 0, 2};
  given.shape.capacity = ample_capacity(given.shape);
  EXPECT_EQ(this->make_and_run(given, 5), "");
}

TYPED_TEST(MoeOf, TheSamePlacesServeManyRuns) {
  for (const Shape ranks : {Shape{3, 3}, Shape{4, 2}, Shape{5, 2}})
    for (const Where where : {Where::private_memory, Where::shared_heap}) {
      MoeCase given = moe_case(ranks, 40, 2, {.choices = 2, .depth = 5, .columns = 20, .skew = 2});
      given.options = "workers=2 slice=512";
      given.where = where;
      EXPECT_EQ(this->make_and_run(given, 200), "");
    }
}

// The thread sanitizer sees all of it: nothing is mapped at two addresses.
TYPED_TEST(MoeOf, ByMessagesAloneTheSamePlacesServeManyRuns) {
  for (const int workers : {1, 3}) {
    MoeCase given = moe_case({3, 3}, 40, 2, {.choices = 2, .depth = 5, .columns = 20, .skew = 2});
    given.options = "slice=512 workers=" + std::to_string(workers);
    given.shares_memory = false;
    EXPECT_EQ(this->make_and_run(given, 100), "");
  }
}

TYPED_TEST(MoeOf, RunsThatFollowEachOtherAtOnceGiveTheSameBits) {
  for (const Shape ranks : {Shape{2, 2}, Shape{4, 2}}) {
    MoeCase given = moe_case(ranks, 50, 2, {.choices = 2, .depth = 7, .columns = 20});
    given.options = "workers=1 slice=512";
    given.where = Where::shared_heap;
    EXPECT_EQ(this->run_at_once(given, 1000), "");
  }
}

TYPED_TEST(MoeOf, ThePlanSaysThatNothingIsCopied) {
  MoeCase given = moe_case({4, 2}, 8, 2, {});
  for (const Where where : {Where::private_memory, Where::shared_heap}) {
    given.where = where;
    EXPECT_EQ(this->make(given,
                         [](auto& rank) -> std::string {
                           if (!rank.made.ok()) return rank.made.status().message();
                           const std::string& description = rank.plan().description();
                           const std::string says = "\"direct\": 1, \"staged\": 0, \"messages\": 2";
                           return description.find(says) != std::string::npos ? "" : description;
                         }),
              "");
  }
}

// However many experts there are, and so pieces of rows, places are for the capacity: beside what a rank keeps for its
// own tokens, what the other one sends, or what goes to it and comes from it by messages.
TYPED_TEST(MoeOf, PlacesAreForTheCapacityAlone) {
  for (const bool shares_memory : {true, false})
    for (const std::int64_t experts : {1, 32}) {
      MoeCase given = moe_case({2, 2}, 40, experts, {.choices = 1, .depth = 64, .columns = 64});
      given.shape.capacity = 512;
      given.shares_memory = shares_memory;
      const std::uint64_t place = 512 * 64 * sizeof(float), of_pairs = shares_memory ? 2 : 3;
      const auto look = [&](auto& rank) -> std::string {
        if (!rank.made.ok()) return rank.made.status().message();
        const std::string &description = rank.plan().description(), key = "\"memory\": ";
        const std::uint64_t bytes = std::stoull(description.substr(description.find(key) + key.size()));
        return bytes >= of_pairs * place && bytes < of_pairs * place + place / 4 ? "" : description;
      };
      EXPECT_EQ(this->make(given, look), "") << experts << " experts";
      EXPECT_EQ(this->make_and_run(given, 3), "") << experts << " experts";
    }
}

TYPED_TEST(MoeOf, AWrongRoutingIsToldToAllAndTouchesNothing) {
  using Change = std::function<void(RankExperts & data)>;
  const std::vector<std::pair<std::string, Change>> wrongs = {
      {"experts[5]: 6: expected -1, for none, to 5 (on rank 1)", [](RankExperts& data) { data.experts[5] = 6; }},
      {"experts[0]: -2: expected -1, for none, to 5 (on rank 1)", [](RankExperts& data) { data.experts[0] = -2; }},
      {"experts: 60 rows for experts of rank 2: expected at most 59, the capacity (on rank 1)",
       [](RankExperts& data) { std::ranges::fill(data.experts, 4); }}};
  for (const Shape ranks : {Shape{3, 3}, Shape{3, 2}})
    for (const Where where : {Where::private_memory, Where::shared_heap})
      for (const auto& [told, change] : wrongs) {
        MoeCase given = moe_case(ranks, 30, 2, {.choices = 2, .depth = 8, .columns = 20});
        given.shape.capacity = 59;
        given.options = "workers=2 slice=512";
        given.where = where;
        const auto start = [&change = change](auto& rank) {
          change(rank.own());
          return MoeKind<TypeParam>::start(rank.plan(), rank.own());
        };
        EXPECT_EQ(this->refuse_by_turns(given, start, told), "") << told;
      }
}

TYPED_TEST(MoeOf, AMissingListIsToldToAllAndTouchesNothing) {
  const MoeCase given = moe_case({3, 2}, 30, 2, {.choices = 2, .depth = 8, .columns = 20});
  EXPECT_EQ(this->refuse_by_turns(
                given,
                [](auto& rank) {
                  RankExperts data = rank.own();
                  if constexpr (MoeKind<TypeParam>::dispatches)
                    return rank.plan().start({.x = nullptr, .experts = rank.own().experts.data()});
                  else
                    return rank.plan().start(
                        {.x = nullptr, .experts = rank.own().experts.data(), .weights = rank.own().factors.data()});
                },
                "x: NULL (on rank 1)"),
            "");
  EXPECT_EQ(this->refuse_by_turns(
                given,
                [](auto& rank) {
                  if constexpr (MoeKind<TypeParam>::dispatches)
                    return rank.plan().start({.x = rank.own().x.elements.data(), .experts = nullptr});
                  else
                    return rank.plan().start(
                        {.x = rank.own().x.elements.data(), .experts = nullptr, .weights = rank.own().factors.data()});
                },
                "experts: NULL (on rank 1)"),
            "");
}

TYPED_TEST(MoeOf, WrongArgumentsMakeNoPlanOnAnyRank) {
  static const void* const nothing[] = {nullptr, nullptr};
  typename TestFixture::Wrongs wrongs = {
      {"tokens: -1: expected 0 to ", [](MoeArguments& given) { given.tokens = -1; }},
      {"choices: 0: expected 1 to 64", [](MoeArguments& given) { given.choices = 0; }},
      {"experts: -1: expected 0 to ", [](MoeArguments& given) { given.experts = -1; }},
      {"depth: 0: expected 1 to ", [](MoeArguments& given) { given.depth = 0; }},
      {"columns: 0: expected 1 to ", [](MoeArguments& given) { given.columns = 0; }},
      {"capacity: 0: expected 1 to ", [](MoeArguments& given) { given.capacity = 0; }},
      {"type: 1: expected 0 to 0", [](MoeArguments& given) { given.type = 1; }},
      {"data: NULL", [](MoeArguments& given) { given.weights = nullptr; }},
      {"data[0]: NULL", [](MoeArguments& given) { given.weights = nothing; }},
      {"output: NULL", [](MoeArguments& given) { given.output = nullptr; }},
      {"plan: NULL", [](MoeArguments& given) { given.missing = "plan"; }}};
  if (MoeKind<TypeParam>::dispatches)
    wrongs.push_back({"counts: NULL", [](MoeArguments& given) { given.counts = nullptr; }});
  this->expect_refused(moe_case({3, 3}, 8, 2, {}), wrongs);
}

TYPED_TEST(MoeOf, RanksThatGiveSomethingElseAreNamedToAll) {
  const MoeCase given = moe_case({3, 3}, 8, 2, {});
  this->expect_told(given, "choices: 3: expected 2, as rank 0 has it (on rank 1)",
                    [](int rank, MoeArguments& arguments) { arguments.choices += rank; });
  this->expect_told(given, "capacity: 17: expected 16, as rank 0 has it (on rank 2)",
                    [](int rank, MoeArguments& arguments) { arguments.capacity += rank == 2 ? 1 : 0; });
}

TYPED_TEST(MoeOf, IsStartedOnceAtATime) { EXPECT_EQ(this->start_once_at_a_time(moe_case({2, 2}, 8, 1, {})), ""); }

}  // namespace
}  // namespace plait::fused
