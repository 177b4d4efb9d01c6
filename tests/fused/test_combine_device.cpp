// Experts' products and the sums of their results, with data on a device. Every element of every output; on the device
// where all data are there, and else by copies.
#include <random>

#include "fused/moe/combine.h"
#include "tests/fused/device_ranks.h"
#include "tests/fused/experts.h"

namespace plait::fused {
namespace {

struct CombineCase {
  MoeShape shape;
  std::size_t direct_from = direct_always;
  bool host_lists = true, host_x = false;
  int host_rank = -1;  // whose output is the processor's

  bool on_devices() const {
    if (direct_from != direct_always) return false;
    return host_rank < 0 || shape.tokens[static_cast<std::size_t>(host_rank)] == 0;
  }
  // What stands between a plan and the devices: a rank that has nothing there says nothing.
  bool any_data() const {
    for (std::size_t rank = 0; rank < shape.tokens.size(); ++rank)
      if (shape.tokens[rank] > 0 || shape.experts[rank] > 0) return true;
    return false;
  }
};

CombineCase combine_case(int ranks, std::int64_t tokens, std::int64_t experts, const MoeShape& shape) {
  CombineCase made{.shape = shape};
  made.shape.tokens.assign(static_cast<std::size_t>(ranks), tokens);
  made.shape.experts.assign(static_cast<std::size_t>(ranks), experts);
  made.shape.capacity = ample_capacity(made.shape);
  return made;
}

class CombinesOnDevices : public DeviceRanks {
 protected:
  // One rank's data and plan.
  struct Rank {
    const CombineCase& given;
    int rank;
    std::vector<RankExperts> all;
    MoeCombine& plan;
    const DeviceCopy& output;
    const std::vector<float>& host_output;

    void draw(int round) {
      for (int of = 0; of < given.shape.ranks(); ++of)
        draw_tokens(given.shape, Half::combine, of, round, all[static_cast<std::size_t>(of)]);
    }
    Status run() {
      const RankExperts& own = all[static_cast<std::size_t>(rank)];
      const DeviceCopy x = DeviceCopy::of(own.x.elements), experts = DeviceCopy::of(own.experts),
                       factors = DeviceCopy::of(own.factors);
      const bool here = given.host_lists;
      const bool any = !own.weights.empty();
      const float* rows = given.host_x ? own.x.elements.data() : x.address<float>();
      Status status = plan.start({.x = any ? rows : nullptr,
                                  .experts = here ? own.experts.data() : experts.address<std::int32_t>(),
                                  .weights = here ? own.factors.data() : factors.address<float>()});
      return status.ok() ? plan.wait() : status;
    }
    std::string run_right() {
      output.fill(0xa5);
      if (Status status = run(); !status.ok()) return status.message();
      const std::vector<float> result = rank == given.host_rank ? host_output : output.read<float>();
      return wrong_combine(given.shape, all, rank, result.data());
    }
    bool is_on_devices() const { return plan.description().find("\"on\": \"devices\"") != std::string::npos; }
  };

  template <class Look>
  static std::string make(const CombineCase& given, Look&& look) {
    return on_ranks(given.shape.ranks(), given.direct_from, [&](const Here& here) -> std::string {
      std::vector<RankExperts> all;
      for (int of = 0; of < given.shape.ranks(); ++of) all.push_back(make_experts(given.shape, Half::combine, of));
      std::vector<DeviceCopy> weights;
      std::vector<const void*> places;
      for (const Matrix& one : all[static_cast<std::size_t>(here.rank)].weights) {
        weights.push_back(DeviceCopy::of(one.elements));
        places.push_back(weights.back().address());
      }
      const std::int64_t tokens = given.shape.tokens[static_cast<std::size_t>(here.rank)];
      const auto floats = static_cast<std::size_t>(tokens * given.shape.columns);
      const DeviceCopy output(floats * sizeof(float));
      std::vector<float> host_output(floats + 1);
      const bool on_host = here.rank == given.host_rank;
      auto made =
          MoeCombine::make(here.all,
                           {.tokens = tokens,
                            .choices = given.shape.choices,
                            .experts = static_cast<std::int64_t>(places.size()),
                            .depth = given.shape.depth,
                            .columns = given.shape.columns,
                            .capacity = given.shape.capacity,
                            .weights = places.data(),
                            .output = on_host ? static_cast<void*>(host_output.data()) : output.address<void>()},
                           here.members);
      if (!made.ok()) return made.status().message();
      Rank rank{given, here.rank, std::move(all), **made, output, host_output};
      return look(rank);
    });
  }

  // The others wait for a rank that leaves: all rounds in any case.
  static std::string make_and_run(const CombineCase& given) {
    return make(given, [&](Rank& rank) -> std::string {
      std::string first = rank.is_on_devices() == given.on_devices() ? "" : rank.plan.description();
      for (int round = 0; round < device_rounds; ++round) {
        rank.draw(round);
        const std::string wrong = rank.run_right();
        if (first.empty() && !wrong.empty()) first = "round " + std::to_string(round) + ": " + wrong;
      }
      return first;
    });
  }
};

TEST_F(CombinesOnDevices, EveryNumberOfRanksIsRight) {
  for (const int ranks : {1, 2, 3, 5, 7}) {
    const CombineCase given = combine_case(ranks, 30, 2, {.choices = 2, .depth = 17, .columns = 70, .skew = 1});
    const long before = FakeDevice::instance().kernels();
    EXPECT_EQ(make_and_run(given), "") << given.shape.text();
    EXPECT_LE(FakeDevice::instance().kernels() - before, 2L * ranks * device_rounds) << "products, and sums";
  }
}

TEST_F(CombinesOnDevices, EveryShapeIsRight) {
  std::mt19937_64 random(test_seed());
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  for (int round = 0; round < 40; ++round) {
    CombineCase given;
    MoeShape& shape = given.shape;
    shape.choices = draw(1, 4);
    shape.depth = draw(1, 40);
    shape.columns = draw(0, 1) == 0 ? draw(1, 30) : draw(1, 200);
    shape.skew = static_cast<double>(draw(0, 3));
    shape.dropped = draw(0, 5) == 0 ? 1 : static_cast<double>(draw(0, 4)) / 8;
    shape.seed = random() % 1000;
    for (std::int64_t rank = draw(1, 5); rank > 0; --rank) {
      shape.tokens.push_back(draw(0, 4) == 0 ? 0 : draw(1, 90));
      shape.experts.push_back(draw(0, 4) == 0 ? 0 : draw(1, 4));
    }
    shape.capacity = draw(0, 1) == 0 ? ample_capacity(shape) : draw(1, ample_capacity(shape));
    given.host_lists = draw(0, 1) == 0;
    given.host_x = draw(0, 2) == 0;
    if (draw(0, 3) == 0) given.host_rank = static_cast<int>(draw(0, shape.ranks() - 1));
    if (draw(0, 4) == 0) given.direct_from = direct_never;
    if (!given.any_data()) continue;
    EXPECT_EQ(make_and_run(given), "") << "round " << round << ", " << shape.text();
  }
}

TEST_F(CombinesOnDevices, WrongChoicesAreRefusedOnAllRanks) {
  const CombineCase given = combine_case(3, 10, 2, {.choices = 2, .depth = 5, .columns = 9});
  EXPECT_EQ(make(given,
                 [](Rank& rank) -> std::string {
                   rank.output.fill(0xa5);
                   rank.all[1].experts[3] = 99;
                   const Status refused = rank.run();
                   if (refused.message().find("experts[3]: 99") == std::string::npos ||
                       refused.message().find("(on rank 1)") == std::string::npos)
                     return "refused: " + refused.message();
                   if (!rank.output.is_filled(0xa5)) return "an output was touched";
                   rank.draw(1);
                   return rank.run_right();
                 }),
            "");
}

}  // namespace
}  // namespace plait::fused
