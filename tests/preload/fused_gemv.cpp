// plait_fused_gemv_* on real ranks: random shapes, types and outputs against double precision, every element of
// poisoned outputs, the same bits on all ranks; a plan run a thousand times on the same buffers; two plans by turns;
// missing vectors and wrong shapes, which all ranks are told of and which touch nothing.
//
//   fused_gemv [cases] [seed] [repetitions] [options]
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "plait/plait_fused.h"
#include "tests/fused/products.h"

namespace {

using plait::fused::ProductShape;
using plait::fused::RankWeights;
using plait::fused::RowType;

constexpr float poison = -3.25e28f;
constexpr std::size_t behind = 64;  // floats that must stay

int world_rank = 0, world_ranks = 1, failures = 0;

void expect(bool right, const std::string& what) {
  if (right) return;
  if (++failures < 10) std::printf("rank %d: wrong: %s\n", world_rank, what.c_str());
}

struct Case {
  ProductShape shape;
  std::vector<std::int64_t> depths;  // by rank
  std::vector<RowType> types;        // by rank
  bool shared = false;               // the output is from plait_alloc()
  std::string options, name;
};

using Random = std::mt19937;
std::int64_t draw(Random& random, std::int64_t from, std::int64_t to) {
  return from + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(to - from + 1));
}

Case some_case(Random& random, const std::string& options) {
  Case made;
  made.shape = {.rows = draw(random, 1, draw(random, 0, 3) == 0 ? 5 : 700),
                .columns = static_cast<int>(draw(random, 1, plait::fused::most_columns)),
                .seed = random() % 10000};
  for (int rank = 0; rank < world_ranks; ++rank) {
    made.depths.push_back(draw(random, 0, 8) == 0 ? 0 : draw(random, 1, 120));
    made.types.push_back(static_cast<RowType>(draw(random, 0, 2)));
  }
  made.shared = draw(random, 0, 1) == 0;
  made.options = options;
  if (options.empty())
    made.options = "workers=" + std::to_string(draw(random, 1, 3)) + " slice=" + std::to_string(draw(random, 0, 9000)) +
                   (draw(random, 0, 2) == 0 ? " order=plain" : "");
  made.name = "rows " + std::to_string(made.shape.rows) + ", columns " + std::to_string(made.shape.columns) + ", " +
              made.options;
  return made;
}

// A plan of a case and all that it works on.
class Plan {
 public:
  explicit Plan(const Case& given)
      : given_(given), floats_(static_cast<std::size_t>(given.shape.rows * given.shape.columns)) {
    for (int rank = 0; rank < world_ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      all_.push_back(plait::fused::make_weights(given.shape, given.types[at], given.depths[at], rank));
    }
    const std::size_t bytes = (floats_ + behind) * sizeof(float);
    output_ = static_cast<float*>(given.shared ? plait_alloc(bytes) : std::malloc(bytes));
    const plait_fused_gemv shape = shape_of();
    expect(plait_fused_gemv_create(MPI_COMM_WORLD, &shape, output_, given.options.c_str(), &plan_) == MPI_SUCCESS,
           given.name + ": create");
  }
  ~Plan() {
    expect(plait_fused_free(&plan_) == MPI_SUCCESS && plan_ == PLAIT_FUSED_NULL, "free");
    if (given_.shared)
      plait_free(output_);
    else
      std::free(output_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  plait_fused_gemv shape_of() const {
    const RankWeights& own = all_[static_cast<std::size_t>(world_rank)];
    return {.rows = given_.shape.rows,
            .depth = own.depth,
            .columns = given_.shape.columns,
            .type = static_cast<int>(own.type),
            .data = own.weights.data(),
            .scales = own.scales.data()};
  }
  plait_fused handle() const { return plan_; }
  float* output() const { return output_; }
  std::size_t output_bytes() const { return floats_ * sizeof(float); }
  const float* x() const { return all_[static_cast<std::size_t>(world_rank)].x.data(); }
  void set_x(const std::vector<float>& x) { all_[static_cast<std::size_t>(world_rank)].x = x; }
  const std::vector<float>& own_x() const { return all_[static_cast<std::size_t>(world_rank)].x; }

  void draw(int round) {
    for (int rank = 0; rank < world_ranks; ++rank)
      plait::fused::draw_vectors(given_.shape, rank, round, all_[static_cast<std::size_t>(rank)]);
  }
  void fill() { std::fill_n(output_, floats_ + behind, poison); }
  bool is_poisoned(std::size_t from) const {
    return std::all_of(output_ + from, output_ + floats_ + behind, [](float value) { return value == poison; });
  }
  int start() { return plait_fused_gemv_start(plan_, x()); }
  int run() { return plait_fused_gemv_run(plan_, x()); }
  void check(const std::string& how) const {
    const std::string wrong = plait::fused::wrong_product(given_.shape, all_, output_);
    expect(wrong.empty(), given_.name + ", " + how + ": " + wrong);
    expect(is_poisoned(floats_), given_.name + ", " + how + ": something behind the output is written");
    std::vector<float> first(output_, output_ + floats_);
    MPI_Bcast(first.data(), static_cast<int>(floats_), MPI_FLOAT, 0, MPI_COMM_WORLD);
    expect(std::memcmp(first.data(), output_, output_bytes()) == 0, given_.name + ", " + how + ": bits differ");
  }
  std::vector<float> result() const { return {output_, output_ + floats_}; }

 private:
  Case given_;
  std::vector<RankWeights> all_;
  std::size_t floats_ = 0;
  float* output_ = nullptr;
  plait_fused plan_ = PLAIT_FUSED_NULL;
};

void try_case(Random& random, const std::string& options) {
  Plan plan(some_case(random, options));
  for (int round = 0; round < 3; ++round) {
    plan.draw(round);
    plan.fill();
    MPI_Barrier(MPI_COMM_WORLD);
    const int error = round < 2 ? plan.run() : plan.start();
    expect(error == MPI_SUCCESS, "run");
    if (round == 2) expect(plait_fused_wait(plan.handle()) == MPI_SUCCESS, "wait");
    plan.check("round " + std::to_string(round));
  }
}

// Nothing between the runs: a rank may be a run ahead of another.
void try_often(Random& random, const std::string& options, int repetitions) {
  for (const bool shared : {false, true}) {
    Case given = some_case(random, options);
    given.shared = shared;
    given.shape.rows = 120;
    given.shape.columns = 3;
    given.depths.assign(given.depths.size(), 17);
    Plan plan(given);
    constexpr int sets = 3;
    std::vector<std::vector<float>> expected, vectors;
    for (int set = 0; set < sets; ++set) {
      plan.draw(set);
      plan.fill();
      MPI_Barrier(MPI_COMM_WORLD);
      plan.run();
      plan.check("set " + std::to_string(set));
      expected.push_back(plan.result());
      vectors.push_back(plan.own_x());
    }
    for (int round = 0; round < repetitions; ++round) {
      const auto set = static_cast<std::size_t>(round % sets);
      plan.set_x(vectors[set]);
      expect(plan.run() == MPI_SUCCESS, "run");
      expect(std::memcmp(plan.output(), expected[set].data(), plan.output_bytes()) == 0,
             given.name + ", repetition " + std::to_string(round));
    }
  }
}

void try_two(Random& random, const std::string& options) {
  Plan one(some_case(random, options)), other(some_case(random, options));
  for (int round = 0; round < 5; ++round) {
    one.draw(round);
    other.draw(round);
    one.fill();
    other.fill();
    MPI_Barrier(MPI_COMM_WORLD);
    one.start();
    other.start();
    plait_fused_wait(one.handle());
    plait_fused_wait(other.handle());
    one.check("of two");
    other.check("of two");
  }
}

std::string text_of(int error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (error != MPI_SUCCESS) MPI_Error_string(error, text, &length);
  return text;
}

void try_missing_vectors(Random& random, const std::string& options) {
  for (const bool shared : {false, true}) {
    Case given = some_case(random, options);
    given.shared = shared;
    given.depths.assign(given.depths.size(), 9);
    Plan plan(given);
    const int bad = world_ranks - 1;
    for (int round = 0; round < 4; ++round) {
      plan.draw(round);
      plan.fill();
      MPI_Barrier(MPI_COMM_WORLD);
      const std::string text = text_of(world_rank == bad ? plait_fused_gemv_run(plan.handle(), nullptr) : plan.run());
      expect(text.find("x: NULL (on rank " + std::to_string(bad) + ")") != std::string::npos, "it says: " + text);
      expect(plan.is_poisoned(0), "a refused run has touched an output");
      MPI_Barrier(MPI_COMM_WORLD);
    }
    plan.draw(9);
    plan.fill();
    MPI_Barrier(MPI_COMM_WORLD);
    expect(plan.run() == MPI_SUCCESS, "run after refused ones");
    plan.check("after refused runs");
  }
}

void try_wrong_shapes(Random& random) {
  const Plan plan(some_case(random, ""));
  plait_fused made = reinterpret_cast<plait_fused>(&failures);
  const auto text_for = [&](const plait_fused_gemv& shape) {
    return text_of(plait_fused_gemv_create(MPI_COMM_WORLD, &shape, plan.output(), nullptr, &made));
  };
  plait_fused_gemv shape = plan.shape_of();
  shape.columns = world_rank == 0 ? 17 : shape.columns;
  std::string text = text_for(shape);
  expect(text.find("columns: 17: expected 1 to 16") != std::string::npos, "it says: " + text);
  expect(made == PLAIT_FUSED_NULL, "there is a plan");
  shape = plan.shape_of();
  shape.type = world_rank == world_ranks - 1 ? 7 : shape.type;
  text = text_for(shape);
  expect(text.find("type: 7: expected 0 to 2") != std::string::npos, "it says: " + text);
  shape = plan.shape_of();
  shape.rows = 10 + world_rank;
  if (world_ranks > 1) {
    text = text_for(shape);
    expect(text.find("rows: 11: expected 10, as rank 0 has it (on rank 1)") != std::string::npos, "it says: " + text);
  }
  text = text_of(plait_fused_gemv_create(MPI_COMM_WORLD, nullptr, plan.output(), nullptr, &made));
  expect(text.find("rows: 0: expected 1 to") != std::string::npos, "it says: " + text);
  // A plan of one operator is none of the other's.
  text = text_of(plait_fused_embedding_start(plan.handle(), nullptr, 0, nullptr, nullptr));
  expect(text.find("plan: of another operator") != std::string::npos, "it says: " + text);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int cases = argc > 1 ? std::atoi(argv[1]) : 10;
  const auto seed = static_cast<unsigned>(argc > 2 ? std::atoi(argv[2]) : 1);
  const int repetitions = argc > 3 ? std::atoi(argv[3]) : 1000;
  const std::string options = argc > 4 ? argv[4] : "";
  Random random(seed);
  for (int number = 0; number < cases; ++number) try_case(random, options);
  try_often(random, options, repetitions);
  try_two(random, options);
  try_missing_vectors(random, options);
  try_wrong_shapes(random);
  int all = 0;
  if (MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS) all = 1;
  if (world_rank == 0)
    std::printf("fused: %d cases of products on %d ranks, %s\n", cases, world_ranks, all == 0 ? "right" : "wrong");
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
