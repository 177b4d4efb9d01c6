// plait_fused_gemv_* on real ranks: random shapes, types and outputs against double precision, every element of
// poisoned outputs, the same bits on all ranks; a plan run a thousand times on the same buffers; two plans by turns;
// missing vectors and wrong shapes, which all ranks are told of and which touch nothing.
//
//   fused_gemv [cases] [seed] [repetitions] [options]
#include "tests/fused/products.h"
#include "tests/preload/fused_job.h"

namespace {

using namespace fused_job;
using plait::fused::ProductShape;
using plait::fused::RankWeights;
using plait::fused::RowType;

struct GemvCase : JobCase {
  ProductShape shape;
  std::vector<std::int64_t> depths;  // by rank
  std::vector<RowType> types;        // by rank
};

plait_fused_gemv shape_of(const GemvCase& given, const RankWeights& own) {
  return {.rows = given.shape.rows,
          .depth = own.depth,
          .columns = given.shape.columns,
          .type = static_cast<int>(own.type),
          .data = own.weights.data(),
          .scales = own.scales.data()};
}

struct GemvKind {
  using Case = GemvCase;
  using Data = RankWeights;

  static GemvCase some_case(Random& random) {
    GemvCase made;
    draw_job_case(random, made);
    made.shape = {.rows = fused_job::draw(random, 1, fused_job::draw(random, 0, 3) == 0 ? 5 : 700),
                  .columns = static_cast<int>(fused_job::draw(random, 1, plait::fused::most_columns)),
                  .seed = random() % 10000};
    for (int rank = 0; rank < world_ranks; ++rank) {
      made.depths.push_back(fused_job::draw(random, 0, 8) == 0 ? 0 : fused_job::draw(random, 1, 120));
      made.types.push_back(static_cast<RowType>(fused_job::draw(random, 0, 2)));
    }
    made.name = "rows " + std::to_string(made.shape.rows) + ", columns " + std::to_string(made.shape.columns);
    return made;
  }
  static GemvCase small_case(Random& random) {
    GemvCase made = some_case(random);
    made.shape.rows = 120;
    made.shape.columns = 3;
    made.depths.assign(made.depths.size(), 17);
    return made;
  }
  static RankWeights make_data(const GemvCase& given, int rank) {
    const auto at = static_cast<std::size_t>(rank);
    return plait::fused::make_weights(given.shape, given.types[at], given.depths[at], rank);
  }
  static void draw(const GemvCase& given, int rank, int round, RankWeights& weights) {
    plait::fused::draw_vectors(given.shape, rank, round, weights);
  }
  static std::size_t floats(const GemvCase& given) {
    return static_cast<std::size_t>(given.shape.rows * given.shape.columns);
  }
  static int create(const GemvCase& given, const RankWeights& own, float* output, plait_fused* plan) {
    const plait_fused_gemv shape = shape_of(given, own);
    return plait_fused_gemv_create(MPI_COMM_WORLD, &shape, output, given.options.c_str(), plan);
  }
  static void use(RankWeights& own, const RankWeights& other) { own.x = other.x; }
  static int start(plait_fused plan, const RankWeights& own) { return plait_fused_gemv_start(plan, own.x.data()); }
  static int run(plait_fused plan, const RankWeights& own) { return plait_fused_gemv_run(plan, own.x.data()); }
  static std::string wrong(const GemvCase& given, const std::vector<RankWeights>& all, const float* output) {
    std::vector<float> first(output, output + floats(given));
    MPI_Bcast(first.data(), static_cast<int>(first.size()), MPI_FLOAT, 0, MPI_COMM_WORLD);
    if (std::memcmp(first.data(), output, first.size() * sizeof(float)) != 0) return "bits differ";
    return plait::fused::wrong_product(given.shape, all, output);
  }
};

void try_wrong_shapes(Random& random, const Settings& settings) {
  const Plan<GemvKind> plan(with_options(GemvKind::some_case(random), settings));
  plait_fused made = reinterpret_cast<plait_fused>(&failures);
  const auto text_for = [&](const plait_fused_gemv& shape) {
    return text_of(plait_fused_gemv_create(MPI_COMM_WORLD, &shape, plan.output(), nullptr, &made));
  };
  plait_fused_gemv shape = shape_of(plan.given(), plan.own());
  shape.columns = world_rank == 0 ? 17 : shape.columns;
  std::string text = text_for(shape);
  expect(text.find("columns: 17: expected 1 to 16") != std::string::npos, "it says: " + text);
  expect(made == PLAIT_FUSED_NULL, "there is a plan");
  shape = shape_of(plan.given(), plan.own());
  shape.type = world_rank == world_ranks - 1 ? 7 : shape.type;
  text = text_for(shape);
  expect(text.find("type: 7: expected 0 to 2") != std::string::npos, "it says: " + text);
  shape = shape_of(plan.given(), plan.own());
  shape.rows = 10 + world_rank;
  if (world_ranks > 1) {
    text = text_for(shape);
    expect(text.find("rows: 11: expected 10, as rank 0 has it (on rank 1)") != std::string::npos, "it says: " + text);
  }
  text = text_of(plait_fused_gemv_create(MPI_COMM_WORLD, nullptr, plan.output(), nullptr, &made));
  expect(text.find("shape: NULL") != std::string::npos, "it says: " + text);
  // A plan of one operator is none of the other's.
  text = text_of(plait_fused_embedding_start(plan.handle(), nullptr, 0, nullptr, nullptr));
  expect(text.find("plan: of another operator") != std::string::npos, "it says: " + text);
}

}  // namespace

int main(int argc, char** argv) {
  return job(argc, argv, "products", [](Random& random, const Settings& settings) {
    try_operator<GemvKind>(random, settings);
    try_refused<GemvKind>(
        random, settings, [](Plan<GemvKind>& plan) { return plait_fused_gemv_run(plan.handle(), nullptr); }, "x: NULL");
    try_wrong_shapes(random, settings);
  });
}
