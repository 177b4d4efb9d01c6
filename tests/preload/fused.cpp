// plait_fused_* on real ranks: random shapes, types and outputs against double precision, every element of poisoned
// outputs; a plan run a thousand times on the same buffers; two plans by turns; wrong lookups and shapes, which all
// ranks are told of and which touch nothing.
//
//   fused [cases] [seed] [repetitions] [options]
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
#include "tests/fused/bags.h"

namespace {

using plait::fused::BagShape;
using plait::fused::RankBags;
using plait::fused::RowType;

constexpr float poison = -3.25e28f;
constexpr std::size_t behind = 64;  // floats that must stay

int world_rank = 0, world_ranks = 1, failures = 0;

void expect(bool right, const std::string& what) {
  if (right) return;
  if (++failures < 10) std::printf("rank %d: wrong: %s\n", world_rank, what.c_str());
}

struct Case {
  BagShape bags;
  std::vector<std::int64_t> tables;  // by rank
  bool shared = false;               // the output is from plait_alloc()
  std::string options, name;
};

using Random = std::mt19937;
std::int64_t draw(Random& random, std::int64_t from, std::int64_t to) {
  return from + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(to - from + 1));
}

Case some_case(Random& random, const std::string& options) {
  Case made;
  made.bags = {.batch = draw(random, 1, 60),
               .dim = draw(random, 1, 140),
               .type = static_cast<RowType>(draw(random, 0, 2)),
               .mean = draw(random, 0, 2) == 0,
               .weighted = false,
               .longest_bag = draw(random, 0, 20),
               .seed = random() % 10000};
  made.bags.weighted = !made.bags.mean && draw(random, 0, 1) == 0;
  for (int rank = 0; rank < world_ranks; ++rank) made.tables.push_back(draw(random, 0, 5));
  made.shared = draw(random, 0, 1) == 0;
  made.options = options;
  if (options.empty())
    made.options = "workers=" + std::to_string(draw(random, 1, 3)) + " slice=" + std::to_string(draw(random, 0, 9000)) +
                   (draw(random, 0, 2) == 0 ? " order=plain" : "");
  made.name = "batch " + std::to_string(made.bags.batch) + ", dim " + std::to_string(made.bags.dim) + ", " +
              std::string(name(made.bags.type)) + ", " + made.options;
  return made;
}

// A plan of a case and all that it works on.
class Plan {
 public:
  explicit Plan(const Case& given) : given_(given) {
    const std::int64_t even = given.bags.batch / world_ranks, more = given.bags.batch % world_ranks;
    rows_.begin = even * world_rank + std::min<std::int64_t>(more, world_rank);
    rows_.end = rows_.begin + even + (world_rank < more ? 1 : 0);
    std::int64_t all_tables = 0;
    for (int rank = 0; rank < world_ranks; ++rank) {
      bags_.push_back(plait::fused::make_bags(given.bags, given.tables[static_cast<std::size_t>(rank)], rank));
      all_tables += bags_.back().tables();
    }
    floats_ = static_cast<std::size_t>((rows_.end - rows_.begin) * all_tables * given.bags.dim);
    const std::size_t bytes = (floats_ + behind) * sizeof(float);
    output_ = static_cast<float*>(given.shared ? plait_alloc(bytes) : std::malloc(bytes));
    const plait_fused_embedding shape = shape_of();
    expect(plait_fused_embedding_create(MPI_COMM_WORLD, &shape, output_, given.options.c_str(), &plan_) == MPI_SUCCESS,
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

  plait_fused_embedding shape_of() const {
    const RankBags& bags = bags_[static_cast<std::size_t>(world_rank)];
    return {.batch = given_.bags.batch,
            .dim = given_.bags.dim,
            .tables = bags.tables(),
            .rows = bags.rows.data(),
            .data = bags.data_list.data(),
            .scales = bags.scales_list.data(),
            .type = static_cast<int>(given_.bags.type),
            .mode = given_.bags.mean ? PLAIT_FUSED_MEAN : PLAIT_FUSED_SUM,
            .weighted = given_.bags.weighted ? 1 : 0};
  }
  RankBags& own() { return bags_[static_cast<std::size_t>(world_rank)]; }
  plait_fused handle() const { return plan_; }
  float* output() const { return output_; }

  void draw(int round) {
    for (int rank = 0; rank < world_ranks; ++rank)
      plait::fused::draw_lookups(given_.bags, rank, round, bags_[static_cast<std::size_t>(rank)]);
  }
  void fill() { std::fill_n(output_, floats_ + behind, poison); }
  bool is_poisoned(std::size_t from) const {
    return std::all_of(output_ + from, output_ + floats_ + behind, [](float value) { return value == poison; });
  }
  int start() {
    const RankBags& bags = own();
    return plait_fused_embedding_start(plan_, bags.indices.data(), static_cast<std::int64_t>(bags.indices.size()),
                                       bags.offsets.data(), bags.weights.data());
  }
  int run() {
    const RankBags& bags = own();
    return plait_fused_embedding_run(plan_, bags.indices.data(), static_cast<std::int64_t>(bags.indices.size()),
                                     bags.offsets.data(), bags.weights.data());
  }
  void check(const std::string& how) const {
    const std::string wrong = plait::fused::wrong_output(given_.bags, bags_, rows_, output_);
    expect(wrong.empty(), given_.name + ", " + how + ": " + wrong);
    expect(is_poisoned(floats_), given_.name + ", " + how + ": something behind the output is written");
  }
  std::vector<float> result() const { return {output_, output_ + floats_}; }

 private:
  Case given_;
  plait::fused::OutputRows rows_{};
  std::vector<RankBags> bags_;
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
    given.bags.batch = 24;
    given.bags.dim = 17;
    given.tables.assign(given.tables.size(), 3);
    Plan plan(given);
    constexpr int sets = 3;
    std::vector<std::vector<float>> expected;
    std::vector<RankBags> lookups;
    for (int set = 0; set < sets; ++set) {
      plan.draw(set);
      plan.fill();
      MPI_Barrier(MPI_COMM_WORLD);
      plan.run();
      plan.check("set " + std::to_string(set));
      expected.push_back(plan.result());
      lookups.push_back(plan.own());
    }
    for (int round = 0; round < repetitions; ++round) {
      const auto set = static_cast<std::size_t>(round % sets);
      plan.own() = lookups[set];
      expect(plan.run() == MPI_SUCCESS, "run");
      expect(std::memcmp(plan.output(), expected[set].data(), expected[set].size() * sizeof(float)) == 0,
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

void try_wrong_lookups(Random& random, const std::string& options) {
  for (const bool shared : {false, true}) {
    Case given = some_case(random, options);
    given.shared = shared;
    given.bags.batch = 32;
    given.bags.longest_bag = 15;
    given.tables.assign(given.tables.size(), 2);
    Plan plan(given);
    const int bad = world_ranks - 1;
    for (int round = 0; round < 4; ++round) {
      plan.draw(round);
      plan.fill();
      if (world_rank == bad && round % 2 == 0) plan.own().indices[3] = round == 0 ? 1'000'000 : -7;
      if (world_rank == bad && round % 2 == 1) plan.own().offsets[5] = -2;
      MPI_Barrier(MPI_COMM_WORLD);
      const std::string text = text_of(plan.run());
      const std::string named = round == 0 ? "indices[3]: 1000000" : round == 2 ? "indices[3]: -7" : "offsets[5]: -2";
      const std::string where = "(on rank " + std::to_string(bad) + ")";
      expect(text.find(named) != std::string::npos && text.find(where) != std::string::npos, "it says: " + text);
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
  plait_fused_embedding shape = plan.shape_of();
  shape.dim = world_rank == 0 ? 0 : shape.dim;
  std::string text = text_of(plait_fused_embedding_create(MPI_COMM_WORLD, &shape, plan.output(), nullptr, &made));
  expect(text.find("dim: 0: expected 1 to") != std::string::npos, "it says: " + text);
  expect(made == PLAIT_FUSED_NULL, "there is a plan");
  shape = plan.shape_of();
  shape.batch += world_rank;
  text = text_of(plait_fused_embedding_create(MPI_COMM_WORLD, &shape, plan.output(), nullptr, &made));
  if (world_ranks > 1)
    expect(text.find("as rank 0 has it (on rank 1)") != std::string::npos && text.find("batch: ") != std::string::npos,
           "it says: " + text);
  else if (made != PLAIT_FUSED_NULL)
    plait_fused_free(&made);
  text = text_of(
      plait_fused_embedding_create(MPI_COMM_WORLD, world_rank == 0 ? nullptr : &shape, plan.output(), nullptr, &made));
  expect(text.find("shape: NULL") != std::string::npos && made == PLAIT_FUSED_NULL, "it says: " + text);
  text = text_of(plait_fused_free(&made));
  expect(text.find("plan: NULL") != std::string::npos, "nothing is freed: " + text);
  text = text_of(plait_fused_wait(PLAIT_FUSED_NULL));
  expect(text.find("plan: NULL") != std::string::npos, "nothing is waited for: " + text);
}

}  // namespace

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 10;
  const auto seed = static_cast<unsigned>(argc > 2 ? std::atoi(argv[2]) : 1);
  // By turns, as the program's MPI may be of either kind.
  int provided = 0;
  MPI_Init_thread(&argc, &argv, seed % 2 == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int repetitions = argc > 3 ? std::atoi(argv[3]) : 1000;
  const std::string options = argc > 4 ? argv[4] : "";
  Random random(seed);
  for (int number = 0; number < cases; ++number) try_case(random, options);
  try_often(random, options, repetitions);
  try_two(random, options);
  try_wrong_lookups(random, options);
  try_wrong_shapes(random);
  int all = 0;
  if (MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS) all = 1;
  if (world_rank == 0)
    std::printf("fused: %d cases on %d ranks, %s\n", cases, world_ranks, all == 0 ? "right" : "wrong");
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
