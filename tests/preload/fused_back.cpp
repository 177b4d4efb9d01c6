// plait_fused_embedding_back_* on real ranks: random shapes and types against double precision, every element of every
// table; a plan run a thousand times on the same buffers, with the same bits; both directions by turns; wrong lookups,
// tables and shapes, which all ranks are told of and which touch nothing.
//
//   fused_back [cases] [seed] [repetitions] [options]
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "plait/plait_fused.h"
#include "tests/fused/gradients.h"

namespace {

using plait::fused::BagShape;
using plait::fused::RankBags;
using plait::fused::RowType;

int world_rank = 0, world_ranks = 1, failures = 0;

void expect(bool right, const std::string& what) {
  if (right) return;
  if (++failures < 10) std::printf("rank %d: wrong: %s\n", world_rank, what.c_str());
}

struct BackCase {
  BagShape bags;
  std::vector<std::int64_t> tables;  // by rank
  std::string options, name;
};

using Random = std::mt19937;
std::int64_t draw(Random& random, std::int64_t from, std::int64_t to) {
  return from + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(to - from + 1));
}

BackCase some_case(Random& random, const std::string& options) {
  BackCase made;
  made.bags = {.batch = draw(random, 1, 60),
               .dim = draw(random, 1, 140),
               .type = static_cast<RowType>(draw(random, 0, 1)),
               .mean = draw(random, 0, 2) == 0,
               .weighted = false,
               .longest_bag = draw(random, 0, 20),
               .most_rows = draw(random, 1, 60),
               .seed = random() % 10000};
  made.bags.weighted = !made.bags.mean && draw(random, 0, 1) == 0;
  for (int rank = 0; rank < world_ranks; ++rank) made.tables.push_back(draw(random, 0, 5));
  made.options = options;
  if (options.empty())
    made.options = "workers=" + std::to_string(draw(random, 1, 3)) + " slice=" + std::to_string(draw(random, 0, 9000)) +
                   (draw(random, 0, 2) == 0 ? " order=plain" : "");
  made.name = "batch " + std::to_string(made.bags.batch) + ", dim " + std::to_string(made.bags.dim) + ", " +
              std::string(name(made.bags.type)) + ", " + made.options;
  return made;
}

// A plan of a case and all that it works on.
class BackPlan {
 public:
  explicit BackPlan(const BackCase& given) : given_(given) {
    for (int rank = 0; rank < world_ranks; ++rank)
      bags_.push_back(plait::fused::make_bags(given.bags, given.tables[static_cast<std::size_t>(rank)], rank));
    for (int rank = 0; rank < world_ranks; ++rank) {
      gradients_.push_back(plait::fused::make_gradients(given.bags, bags_, rank));
      gradients_.back().reserve(1);
    }
    tables_ = own().data;
    for (auto& table : tables_) targets_.push_back(table.data());
    const plait_fused_embedding shape = shape_of();
    expect(plait_fused_embedding_back_create(MPI_COMM_WORLD, &shape, targets_.data(), own_gradients(),
                                             given.options.c_str(), &plan_) == MPI_SUCCESS,
           given.name + ": create");
  }
  ~BackPlan() { expect(plait_fused_free(&plan_) == MPI_SUCCESS && plan_ == PLAIT_FUSED_NULL, "free"); }
  BackPlan(const BackPlan&) = delete;
  BackPlan& operator=(const BackPlan&) = delete;

  plait_fused_embedding shape_of() const {
    const RankBags& bags = bags_[static_cast<std::size_t>(world_rank)];
    return {.batch = given_.bags.batch,
            .dim = given_.bags.dim,
            .tables = bags.tables(),
            .rows = bags.rows.data(),
            .data = nullptr,
            .scales = nullptr,
            .type = static_cast<int>(given_.bags.type),
            .mode = given_.bags.mean ? PLAIT_FUSED_MEAN : PLAIT_FUSED_SUM,
            .weighted = given_.bags.weighted ? 1 : 0};
  }
  RankBags& own() { return bags_[static_cast<std::size_t>(world_rank)]; }
  float* own_gradients() { return gradients_[static_cast<std::size_t>(world_rank)].data(); }
  const std::vector<void*>& targets() const { return targets_; }
  const std::vector<std::vector<std::byte>>& tables() const { return tables_; }
  plait_fused handle() const { return plan_; }

  void draw(int round) {
    for (int rank = 0; rank < world_ranks; ++rank) {
      plait::fused::draw_lookups(given_.bags, rank, round, bags_[static_cast<std::size_t>(rank)]);
      const std::vector<float> drawn = plait::fused::make_gradients(given_.bags, bags_, rank, round);
      std::copy(drawn.begin(), drawn.end(), gradients_[static_cast<std::size_t>(rank)].begin());
    }
  }
  // As they were; they stay where they are.
  void reset() {
    for (std::size_t table = 0; table < tables_.size(); ++table)
      std::copy(own().data[table].begin(), own().data[table].end(), tables_[table].begin());
  }
  int start(float factor) {
    const RankBags& bags = own();
    return plait_fused_embedding_back_start(plan_, bags.indices.data(), static_cast<std::int64_t>(bags.indices.size()),
                                            bags.offsets.data(), bags.weights.data(), factor);
  }
  int run(float factor) {
    const RankBags& bags = own();
    return plait_fused_embedding_back_run(plan_, bags.indices.data(), static_cast<std::int64_t>(bags.indices.size()),
                                          bags.offsets.data(), bags.weights.data(), factor);
  }
  void check(float factor, const std::string& how) {
    for (std::size_t table = 0; table < tables_.size(); ++table) {
      const auto expected = plait::fused::expected_table(
          given_.bags, bags_, gradients_,
          {.rank = world_rank, .table = static_cast<std::int64_t>(table), .factor = factor});
      const std::string wrong =
          plait::fused::wrong_table(given_.bags, expected, {0, given_.bags.dim}, tables_[table].data());
      expect(wrong.empty(), given_.name + ", " + how + ", table " + std::to_string(table) + ": " + wrong);
    }
  }

 private:
  BackCase given_;
  std::vector<RankBags> bags_;
  std::vector<std::vector<float>> gradients_;   // of all ranks
  std::vector<std::vector<std::byte>> tables_;  // of this rank
  std::vector<void*> targets_;
  plait_fused plan_ = PLAIT_FUSED_NULL;
};

void try_case(Random& random, const std::string& options) {
  BackPlan plan(some_case(random, options));
  for (int round = 0; round < 3; ++round) {
    plan.draw(round);
    plan.reset();
    constexpr float factor = -0.125f;
    const int error = round < 2 ? plan.run(factor) : plan.start(factor);
    expect(error == MPI_SUCCESS, "run");
    if (round == 2) expect(plait_fused_wait(plan.handle()) == MPI_SUCCESS, "wait");
    plan.check(factor, "round " + std::to_string(round));
  }
}

// Nothing between the runs: a rank may be a run ahead of another.
void try_often(Random& random, const std::string& options, int repetitions) {
  BackCase given = some_case(random, options);
  given.bags.batch = 24;
  given.bags.dim = 17;
  given.tables.assign(given.tables.size(), 3);
  BackPlan plan(given);
  plan.run(1);
  plan.check(1, "first");
  const auto expected = plan.tables();
  for (int round = 0; round < repetitions; ++round) {
    plan.reset();
    expect(plan.run(1) == MPI_SUCCESS, "run");
    expect(plan.tables() == expected, given.name + ", repetition " + std::to_string(round) + " has other bits");
  }
}

// A step of training: forward with the tables as they are, back into them, and forward again, which sees the change.
void try_both_directions(Random& random, const std::string& options) {
  BackCase given = some_case(random, options);
  given.bags.weighted = false;
  given.bags.batch = 4 * world_ranks;
  BackPlan back(given);
  std::int64_t all_tables = 0;
  for (const std::int64_t count : given.tables) all_tables += count;
  std::vector<float> output(static_cast<std::size_t>(4 * all_tables * given.bags.dim) + 1);
  const std::vector<const void*> data(back.targets().begin(), back.targets().end());
  plait_fused_embedding shape = back.shape_of();
  shape.data = data.data();
  plait_fused forward = PLAIT_FUSED_NULL;
  expect(plait_fused_embedding_create(MPI_COMM_WORLD, &shape, output.data(), nullptr, &forward) == MPI_SUCCESS,
         "create forward");
  const RankBags& bags = back.own();
  const auto look_up = [&] {
    expect(plait_fused_embedding_run(forward, bags.indices.data(), static_cast<std::int64_t>(bags.indices.size()),
                                     bags.offsets.data(), nullptr) == MPI_SUCCESS,
           "forward");
    return output;
  };
  const std::vector<float> before = look_up();
  back.run(0);
  expect(look_up() == before, "a factor of 0 changes something");
  back.run(-0.5f);
  back.check(-0.5f, "of both directions");
  expect(plait_fused_embedding_back_run(forward, nullptr, 0, nullptr, nullptr, 1) != MPI_SUCCESS,
         "a plan of one direction runs in the other");
  plait_fused_free(&forward);
}

std::string text_of(int error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (error != MPI_SUCCESS) MPI_Error_string(error, text, &length);
  return text;
}

void try_wrong_lookups(Random& random, const std::string& options) {
  BackCase given = some_case(random, options);
  given.bags.batch = 32;
  given.bags.longest_bag = 15;
  given.tables.assign(given.tables.size(), 2);
  BackPlan plan(given);
  const int bad = world_ranks - 1;
  for (int round = 0; round < 4; ++round) {
    plan.draw(round);
    plan.reset();
    if (world_rank == bad && round % 2 == 0) plan.own().indices[3] = round == 0 ? 1'000'000 : -7;
    if (world_rank == bad && round % 2 == 1) plan.own().offsets[5] = -2;
    const std::string text = text_of(plan.run(1));
    const std::string named = round == 0 ? "indices[3]: 1000000" : round == 2 ? "indices[3]: -7" : "offsets[5]: -2";
    const std::string where = "(on rank " + std::to_string(bad) + ")";
    expect(text.find(named) != std::string::npos && text.find(where) != std::string::npos, "it says: " + text);
    expect(plan.tables() == plan.own().data, "a refused run has touched a table");
  }
  plan.draw(9);
  expect(plan.run(1) == MPI_SUCCESS, "run after refused ones");
  plan.check(1, "after refused runs");
}

void try_wrong_shapes(Random& random) {
  BackCase given = some_case(random, "");
  given.tables.assign(given.tables.size(), 2);
  BackPlan plan(given);
  plait_fused made = reinterpret_cast<plait_fused>(&failures);
  const auto create = [&](const plait_fused_embedding& shape, void* const* data, const float* gradients) {
    return text_of(plait_fused_embedding_back_create(MPI_COMM_WORLD, &shape, data, gradients, nullptr, &made));
  };
  plait_fused_embedding shape = plan.shape_of();
  shape.type = world_rank == 0 ? PLAIT_FUSED_I8 : shape.type;
  std::string text = create(shape, plan.targets().data(), plan.own_gradients());
  expect(text.find("type: 2: expected 0 or 1") != std::string::npos, "it says: " + text);
  expect(made == PLAIT_FUSED_NULL, "there is a plan");
  const std::vector<void*> same(2, plan.targets()[0]);
  text = create(plan.shape_of(), same.data(), plan.own_gradients());
  expect(text.find("data[1]: overlaps data[0]") != std::string::npos, "it says: " + text);
  text = create(plan.shape_of(), nullptr, plan.own_gradients());
  expect(text.find("data: NULL") != std::string::npos, "it says: " + text);
  shape = plan.shape_of();
  shape.batch = world_ranks;
  text = create(shape, plan.targets().data(), nullptr);
  expect(text.find("gradients: NULL") != std::string::npos, "it says: " + text);
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
  try_both_directions(random, options);
  try_wrong_lookups(random, options);
  try_wrong_shapes(random);
  int all = 0;
  if (MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS) all = 1;
  if (world_rank == 0)
    std::printf("fused: %d cases on %d ranks, %s\n", cases, world_ranks, all == 0 ? "right" : "wrong");
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
