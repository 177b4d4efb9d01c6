// plait_fused_moe_dispatch_* and plait_fused_moe_combine_* on real ranks: random shapes, choices and outputs against
// double precision, every element of poisoned outputs; a plan run a thousand times on the same buffers; two plans by
// turns; wrong choices and shapes, which all ranks are told of and which touch nothing.
//
//   fused_moe [cases] [seed] [repetitions] [options]
#include <type_traits>

#include "tests/fused/experts.h"
#include "tests/preload/fused_job.h"

namespace {

using namespace fused_job;
using plait::fused::Half;
using plait::fused::MoeShape;
using plait::fused::RankExperts;

struct MoeCase : JobCase {
  MoeShape shape = {};
};

plait_fused_moe shape_of(const MoeCase& given, const RankExperts& own) {
  return {.tokens = static_cast<std::int64_t>(own.experts.size()) / given.shape.choices,
          .choices = given.shape.choices,
          .experts = static_cast<std::int64_t>(own.weights.size()),
          .depth = given.shape.depth,
          .columns = given.shape.columns,
          .capacity = given.shape.capacity,
          .type = PLAIT_FUSED_F32,
          .data = own.weights_list.data()};
}

template <Half half>
struct MoeKind {
  using Case = MoeCase;
  using Data = RankExperts;
  static constexpr bool dispatches = half == Half::dispatch;

  static MoeCase some_case(Random& random) {
    MoeCase made;
    draw_job_case(random, made);
    MoeShape& shape = made.shape;
    shape.choices = fused_job::draw(random, 1, 4);
    shape.depth = fused_job::draw(random, 1, 50);
    shape.columns = fused_job::draw(random, 1, fused_job::draw(random, 0, 1) == 0 ? 20 : 200);
    shape.skew = static_cast<double>(fused_job::draw(random, 0, 3));
    shape.dropped = fused_job::draw(random, 0, 5) == 0 ? 1 : static_cast<double>(fused_job::draw(random, 0, 4)) / 8;
    shape.seed = random() % 10000;
    for (int rank = 0; rank < world_ranks; ++rank) {
      shape.tokens.push_back(fused_job::draw(random, 0, 6) == 0 ? 0 : fused_job::draw(random, 1, 80));
      shape.experts.push_back(fused_job::draw(random, 0, 5) == 0 ? 0 : fused_job::draw(random, 1, 4));
    }
    shape.capacity = fused_job::draw(random, 1, ample_capacity(shape));
    made.name = std::string(dispatches ? "dispatch" : "combine") + ", " + shape.text();
    return made;
  }
  static MoeCase small_case(Random& random) {
    MoeCase made = some_case(random);
    made.shape.tokens.assign(made.shape.tokens.size(), 20);
    made.shape.experts.assign(made.shape.experts.size(), 2);
    made.shape.choices = 2;
    made.shape.depth = 9;
    made.shape.columns = 14;
    made.shape.capacity = 39;
    return made;
  }
  static RankExperts make_data(const MoeCase& given, int rank) {
    return plait::fused::make_experts(given.shape, half, rank);
  }
  static void draw(const MoeCase& given, int rank, int round, RankExperts& data) {
    plait::fused::draw_tokens(given.shape, half, rank, round, data);
  }
  static std::size_t floats(const MoeCase& given) {
    const auto at = static_cast<std::size_t>(world_rank);
    const std::int64_t rows = !dispatches                   ? given.shape.tokens[at]
                              : given.shape.experts[at] > 0 ? world_ranks * given.shape.capacity
                                                            : 0;
    return static_cast<std::size_t>(rows * given.shape.columns);
  }
  static int create_of(const plait_fused_moe& shape, RankExperts& own, float* output, const char* options,
                       plait_fused* plan) {
    return dispatches
               ? plait_fused_moe_dispatch_create(MPI_COMM_WORLD, &shape, output, own.counts.data(), options, plan)
               : plait_fused_moe_combine_create(MPI_COMM_WORLD, &shape, output, options, plan);
  }
  static int create(const MoeCase& given, RankExperts& own, float* output, plait_fused* plan) {
    return create_of(shape_of(given, own), own, output, given.options.c_str(), plan);
  }
  static void use(RankExperts& own, const RankExperts& other) {
    own.x = other.x;
    own.experts = other.experts;
    own.factors = other.factors;
  }
  static int start(plait_fused plan, const RankExperts& own) {
    const float* x = own.x.elements.data();
    return dispatches ? plait_fused_moe_dispatch_start(plan, x, own.experts.data())
                      : plait_fused_moe_combine_start(plan, x, own.experts.data(), own.factors.data());
  }
  static int run(plait_fused plan, const RankExperts& own) {
    const float* x = own.x.elements.data();
    return dispatches ? plait_fused_moe_dispatch_run(plan, x, own.experts.data())
                      : plait_fused_moe_combine_run(plan, x, own.experts.data(), own.factors.data());
  }
  static std::string wrong(const MoeCase& given, const std::vector<RankExperts>& all, const float* output) {
    return dispatches ? plait::fused::wrong_dispatch(given.shape, all, world_rank, output, poison)
                      : plait::fused::wrong_combine(given.shape, all, world_rank, output);
  }
};

template <Half half>
void try_wrong_choices(Random& random, const Settings& settings) {
  using Kind = MoeKind<half>;
  const auto try_wrong = [&](const auto& change, const std::string& text) {
    try_refused<Kind>(
        random, settings,
        [&](Plan<Kind>& plan) {
          change(plan.own());
          return plan.run();
        },
        text);
  };
  const std::string last = std::to_string(2 * world_ranks - 1);
  try_wrong([](RankExperts& own) { own.experts[7] = 1'000'000; },
            "experts[7]: 1000000: expected -1, for none, to " + last);
  try_wrong([](RankExperts& own) { own.experts[0] = -5; }, "experts[0]: -5: expected -1, for none, to " + last);
  try_wrong([](RankExperts& own) { std::ranges::fill(own.experts, 1); },
            "experts: 40 rows for experts of rank 0: expected at most 39, the capacity");
}

template <Half half>
void try_wrong_shapes(Random& random, const Settings& settings) {
  using Kind = MoeKind<half>;
  Plan<Kind> plan(with_options(Kind::small_case(random), settings));
  plait_fused made = reinterpret_cast<plait_fused>(&failures);
  const auto expect_text = [&](const plait_fused_moe& shape, const std::string& expected) {
    const std::string text = text_of(Kind::create_of(shape, plan.own(), plan.output(), nullptr, &made));
    expect(text.find(expected) != std::string::npos, "it says: " + text);
    expect(made == PLAIT_FUSED_NULL, "there is a plan");
  };
  plait_fused_moe shape = shape_of(plan.given(), plan.own());
  shape.choices = world_rank == 0 ? 65 : shape.choices;
  expect_text(shape, "choices: 65: expected 1 to 64");
  shape = shape_of(plan.given(), plan.own());
  shape.capacity = 10 + world_rank;
  if (world_ranks > 1) expect_text(shape, "capacity: 11: expected 10, as rank 0 has it (on rank 1)");
  const std::string text = text_of(plait_fused_gemv_start(plan.handle(), nullptr));
  expect(text.find("plan: of another operator") != std::string::npos, "it says: " + text);
}

template <Half half>
void try_all(Random& random, const Settings& settings) {
  try_operator<MoeKind<half>>(random, settings);
  try_wrong_choices<half>(random, settings);
  try_wrong_shapes<half>(random, settings);
}

}  // namespace

int main(int argc, char** argv) {
  return job(argc, argv, "layers of experts", [](Random& random, const Settings& settings) {
    try_all<Half::dispatch>(random, settings);
    try_all<Half::combine>(random, settings);
  });
}
