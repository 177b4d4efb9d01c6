// plait_fused_gemm_reduce_scatter_* and plait_fused_all_gather_gemm_* on real ranks: random shapes and outputs against
// double precision, every element of poisoned outputs; a plan run a thousand times on the same buffers; two plans by
// turns; missing matrices and wrong shapes, which all ranks are told of and which touch nothing.
//
//   fused_gemm [cases] [seed] [repetitions] [options]
#include "tests/fused/matrices.h"
#include "tests/preload/fused_job.h"

namespace {

using namespace fused_job;
using plait::fused::draw_matrix;
using plait::fused::ExpectedMatrix;
using plait::fused::Matrix;

struct GemmCase : JobCase {
  std::int64_t rows = 1;
  std::vector<std::int64_t> depths, columns;  // by rank
  std::uint64_t seed = 1;

  std::int64_t columns_of(int rank) const { return columns[static_cast<std::size_t>(rank)]; }
};

struct RankMatrices {
  Matrix x, weights;
};

struct Rows {
  std::int64_t begin, count;
};
Rows share(std::int64_t rows, int rank) {
  const std::int64_t even = rows / world_ranks, more = rows % world_ranks;
  return {even * rank + std::min<std::int64_t>(more, rank), even + (rank < more ? 1 : 0)};
}

plait_fused_gemm shape_of(const GemmCase& given, const RankMatrices& own) {
  return {.rows = given.rows,
          .depth = own.weights.rows,
          .columns = own.weights.columns,
          .type = PLAIT_FUSED_F32,
          .data = own.weights.elements.data()};
}

// What both operators have in common; `gathers`: the rows of x are spread over the ranks, else those of the output.
template <bool gathers>
struct GemmKind {
  using Case = GemmCase;
  using Data = RankMatrices;
  static constexpr auto create_plan =
      gathers ? plait_fused_all_gather_gemm_create : plait_fused_gemm_reduce_scatter_create;
  static constexpr auto start_plan =
      gathers ? plait_fused_all_gather_gemm_start : plait_fused_gemm_reduce_scatter_start;
  static constexpr auto run_plan = gathers ? plait_fused_all_gather_gemm_run : plait_fused_gemm_reduce_scatter_run;

  static GemmCase some_case(Random& random) {
    GemmCase made;
    draw_job_case(random, made);
    made.rows = fused_job::draw(random, 1, fused_job::draw(random, 0, 3) == 0 ? 5 : 200);
    made.seed = random() % 10000;
    const std::int64_t depth = fused_job::draw(random, 1, 90), columns = fused_job::draw(random, 1, 200);
    for (int rank = 0; rank < world_ranks; ++rank) {
      const bool none = fused_job::draw(random, 0, 8) == 0;
      const std::int64_t other = fused_job::draw(random, 1, 90);
      made.depths.push_back(gathers ? depth : none ? 0 : other);
      made.columns.push_back(!gathers ? columns : none ? 0 : other);
    }
    made.name = std::string(gathers ? "all-gather" : "reduce-scatter") + ", rows " + std::to_string(made.rows);
    return made;
  }
  static GemmCase small_case(Random& random) {
    GemmCase made = some_case(random);
    made.rows = 60;
    made.depths.assign(made.depths.size(), 11);
    made.columns.assign(made.columns.size(), 14);
    return made;
  }
  static std::uint64_t seed_of(const GemmCase& given, int rank, int round) {
    return given.seed * 1000 + static_cast<std::uint64_t>(rank) + static_cast<std::uint64_t>(round + 1) * 77777;
  }
  static RankMatrices make_data(const GemmCase& given, int rank) {
    RankMatrices made;
    made.weights =
        draw_matrix(given.depths[static_cast<std::size_t>(rank)], given.columns_of(rank), seed_of(given, rank, -1));
    draw(given, rank, 0, made);
    return made;
  }
  static void draw(const GemmCase& given, int rank, int round, RankMatrices& matrices) {
    const std::int64_t rows = gathers ? share(given.rows, rank).count : given.rows;
    matrices.x = draw_matrix(rows, given.depths[static_cast<std::size_t>(rank)], seed_of(given, rank, round));
  }
  static std::int64_t output_rows(const GemmCase& given) {
    return gathers ? given.rows : share(given.rows, world_rank).count;
  }
  static std::size_t floats(const GemmCase& given) {
    return static_cast<std::size_t>(output_rows(given) * given.columns_of(world_rank));
  }
  static int create(const GemmCase& given, const RankMatrices& own, float* output, plait_fused* plan) {
    const plait_fused_gemm shape = shape_of(given, own);
    return create_plan(MPI_COMM_WORLD, &shape, output, given.options.c_str(), plan);
  }
  static void use(RankMatrices& own, const RankMatrices& other) { own.x = other.x; }
  static int start(plait_fused plan, const RankMatrices& own) { return start_plan(plan, own.x.elements.data()); }
  static int run(plait_fused plan, const RankMatrices& own) { return run_plan(plan, own.x.elements.data()); }
  static std::string wrong(const GemmCase& given, const std::vector<RankMatrices>& all, const float* output) {
    ExpectedMatrix expected(output_rows(given), given.columns_of(world_rank));
    if (!gathers) {
      std::int64_t roundings = 0;
      for (const RankMatrices& of : all) {
        expected.add_product(of.x, share(given.rows, world_rank).begin, of.weights);
        roundings += 2 * of.weights.rows;
      }
      return expected.compare(output, roundings + world_ranks);
    }
    const Matrix& weights = all[static_cast<std::size_t>(world_rank)].weights;
    Matrix x{.rows = given.rows, .columns = weights.rows, .elements = {}};
    for (const RankMatrices& of : all) x.elements.insert(x.elements.end(), of.x.elements.begin(), of.x.elements.end());
    expected.add_product(x, 0, weights);
    return expected.compare(output, 2 * x.columns);
  }
};

template <bool gathers>
void try_wrong_shapes(Random& random, const Settings& settings) {
  using Kind = GemmKind<gathers>;
  const Plan<Kind> plan(with_options(Kind::small_case(random), settings));
  plait_fused made = reinterpret_cast<plait_fused>(&failures);
  const auto expect_text = [&](const plait_fused_gemm& shape, const std::string& expected) {
    const std::string text = text_of(Kind::create_plan(MPI_COMM_WORLD, &shape, plan.output(), nullptr, &made));
    expect(text.find(expected) != std::string::npos, "it says: " + text);
    expect(made == PLAIT_FUSED_NULL, "there is a plan");
  };
  plait_fused_gemm shape = shape_of(plan.given(), plan.own());
  shape.columns = world_rank == 0 ? -1 : shape.columns;
  expect_text(shape, "columns: -1: expected ");
  shape = shape_of(plan.given(), plan.own());
  shape.type = world_rank == world_ranks - 1 ? PLAIT_FUSED_I8 : shape.type;
  expect_text(shape, "type: 2: expected 0 to 0");
  shape = shape_of(plan.given(), plan.own());
  shape.rows = 10 + world_rank;
  if (world_ranks > 1) expect_text(shape, "rows: 11: expected 10, as rank 0 has it (on rank 1)");
  const std::string text = text_of(plait_fused_gemv_start(plan.handle(), nullptr));
  expect(text.find("plan: of another operator") != std::string::npos, "it says: " + text);
}

template <bool gathers>
void try_all(Random& random, const Settings& settings) {
  using Kind = GemmKind<gathers>;
  try_operator<Kind>(random, settings);
  try_refused<Kind>(
      random, settings, [](Plan<Kind>& plan) { return Kind::run_plan(plan.handle(), nullptr); }, "x: NULL");
  try_wrong_shapes<gathers>(random, settings);
}

}  // namespace

int main(int argc, char** argv) {
  return job(argc, argv, "products of matrices", [](Random& random, const Settings& settings) {
    try_all<false>(random, settings);
    try_all<true>(random, settings);
  });
}
