// What the jobs that try fused operators on real ranks have in common: cases drawn from a seed, every element of
// poisoned outputs, a plan run a thousand times on the same buffers, two plans by turns, refused runs.
//
// A Kind is an operator and its cases:
//   Case                          with what JobCase has; Data: what one rank has
//   some_case(random)             any; small_case(random): one for many repetitions. On all ranks the same
//   make_data(given, rank), draw(given, rank, round, data), floats(given): of this rank's output
//   create(given, data, output, plan), start(plan, data), run(plan, data)
//   use(data, other): the inputs of a run are others; what a plan is made of stays
//   wrong(given, all, output)     what is wrong with the output; nothing: ""
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plait/plait_fused.h"

namespace fused_job {

inline constexpr float poison = -3.25e28f;
inline constexpr std::size_t behind = 64;  // floats that must stay

inline int world_rank = 0, world_ranks = 1, failures = 0;

inline void expect(bool right, const std::string& what) {
  if (right) return;
  if (++failures < 10) std::printf("rank %d: wrong: %s\n", world_rank, what.c_str());
}

using Random = std::mt19937;
inline std::int64_t draw(Random& random, std::int64_t from, std::int64_t to) {
  return from + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(to - from + 1));
}

struct JobCase {
  bool shared = false;  // the output is from plait_alloc()
  std::string options, name;
};

inline void draw_job_case(Random& random, JobCase& given) {
  given.shared = draw(random, 0, 1) == 0;
  given.options = "workers=" + std::to_string(draw(random, 1, 3)) + " slice=" + std::to_string(draw(random, 0, 9000)) +
                  (draw(random, 0, 2) == 0 ? " order=plain" : "");
}

inline std::string text_of(int error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (error != MPI_SUCCESS) MPI_Error_string(error, text, &length);
  return text;
}

// A plan of a case and all that it works on.
template <class Kind>
class Plan {
 public:
  using Case = typename Kind::Case;
  using Data = typename Kind::Data;

  explicit Plan(const Case& given) : given_(given), floats_(Kind::floats(given)) {
    for (int rank = 0; rank < world_ranks; ++rank) all_.push_back(Kind::make_data(given, rank));
    const std::size_t bytes = (floats_ + behind) * sizeof(float);
    output_ = static_cast<float*>(given.shared ? plait_alloc(bytes) : std::malloc(bytes));
    expect(Kind::create(given, own(), output_, &plan_) == MPI_SUCCESS, given.name + ": create");
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

  const Case& given() const { return given_; }
  plait_fused handle() const { return plan_; }
  float* output() const { return output_; }
  Data& own() { return all_[static_cast<std::size_t>(world_rank)]; }
  const Data& own() const { return all_[static_cast<std::size_t>(world_rank)]; }

  void draw(int round) {
    for (int rank = 0; rank < world_ranks; ++rank)
      Kind::draw(given_, rank, round, all_[static_cast<std::size_t>(rank)]);
  }
  void fill() { std::fill_n(output_, floats_ + behind, poison); }
  bool is_poisoned(std::size_t from) const {
    return std::all_of(output_ + from, output_ + floats_ + behind, [](float value) { return value == poison; });
  }
  // Other inputs, and a poisoned output on all ranks.
  void renew(int round) {
    draw(round);
    fill();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int start() { return Kind::start(plan_, own()); }
  int run() { return Kind::run(plan_, own()); }
  void check(const std::string& how) const {
    const std::string wrong = Kind::wrong(given_, all_, output_);
    expect(wrong.empty(), given_.name + ", " + how + ": " + wrong);
    expect(is_poisoned(floats_), given_.name + ", " + how + ": something behind the output is written");
  }
  std::vector<float> result() const { return {output_, output_ + floats_}; }
  bool is_result(const std::vector<float>& result) const {
    return std::memcmp(output_, result.data(), result.size() * sizeof(float)) == 0;
  }

 private:
  Case given_;
  std::vector<Data> all_;
  std::size_t floats_ = 0;
  float* output_ = nullptr;
  plait_fused plan_ = PLAIT_FUSED_NULL;
};

struct Settings {
  int cases, seed, repetitions;
  std::string options;  // of all plans; empty: drawn
};

template <class Case>
Case with_options(Case given, const Settings& settings) {
  if (!settings.options.empty()) given.options = settings.options;
  given.name += ", " + given.options;
  return given;
}

template <class Kind>
void try_case(Random& random, const Settings& settings) {
  Plan<Kind> plan(with_options(Kind::some_case(random), settings));
  for (int round = 0; round < 3; ++round) {
    plan.renew(round);
    const int error = round < 2 ? plan.run() : plan.start();
    expect(error == MPI_SUCCESS, "run");
    if (round == 2) expect(plait_fused_wait(plan.handle()) == MPI_SUCCESS, "wait");
    plan.check("round " + std::to_string(round));
  }
}

// Nothing between the runs: a rank may be a run ahead of another.
template <class Kind>
void try_often(Random& random, const Settings& settings) {
  for (const bool shared : {false, true}) {
    auto given = with_options(Kind::small_case(random), settings);
    given.shared = shared;
    Plan<Kind> plan(given);
    constexpr int sets = 3;
    std::vector<std::vector<float>> expected;
    std::vector<typename Kind::Data> data;
    for (int set = 0; set < sets; ++set) {
      plan.renew(set);
      plan.run();
      plan.check("set " + std::to_string(set));
      expected.push_back(plan.result());
      data.push_back(plan.own());
    }
    for (int round = 0; round < settings.repetitions; ++round) {
      const auto set = static_cast<std::size_t>(round % sets);
      Kind::use(plan.own(), data[set]);
      plan.fill();
      expect(plan.run() == MPI_SUCCESS, "run");
      expect(plan.is_result(expected[set]), given.name + ", repetition " + std::to_string(round));
    }
  }
}

template <class Kind>
void try_two(Random& random, const Settings& settings) {
  Plan<Kind> one(with_options(Kind::some_case(random), settings));
  Plan<Kind> other(with_options(Kind::some_case(random), settings));
  for (int round = 0; round < 5; ++round) {
    one.renew(round);
    other.renew(round);
    one.start();
    other.start();
    plait_fused_wait(one.handle());
    plait_fused_wait(other.handle());
    one.check("of two");
    other.check("of two");
  }
}

// The last rank gives what `run_wrong` does: all are told `text` and its rank, and no output is touched; then a run is
// right.
template <class Kind, class RunWrong>
void try_refused(Random& random, const Settings& settings, const RunWrong& run_wrong, const std::string& text) {
  for (const bool shared : {false, true}) {
    auto given = with_options(Kind::small_case(random), settings);
    given.shared = shared;
    Plan<Kind> plan(given);
    const int bad = world_ranks - 1;
    for (int round = 0; round < 3; ++round) {
      plan.renew(round);
      const std::string told = text_of(world_rank == bad ? run_wrong(plan) : plan.run());
      const std::string where = "(on rank " + std::to_string(bad) + ")";
      expect(told.find(text) != std::string::npos && told.find(where) != std::string::npos, "it says: " + told);
      expect(plan.is_poisoned(0), "a refused run has touched an output");
      MPI_Barrier(MPI_COMM_WORLD);
    }
    plan.renew(9);
    expect(plan.run() == MPI_SUCCESS, "run after refused ones");
    plan.check("after refused runs");
  }
}

template <class Kind>
void try_operator(Random& random, const Settings& settings) {
  for (int number = 0; number < settings.cases; ++number) try_case<Kind>(random, settings);
  try_often<Kind>(random, settings);
  try_two<Kind>(random, settings);
}

// PROGRAM [cases] [seed] [repetitions] [options]; returns the process's exit code.
template <class Try>
int job(int argc, char** argv, const char* what, const Try& try_all) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const auto number = [&](int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; };
  const Settings settings{number(1, 10), number(2, 1), number(3, 1000), argc > 4 ? argv[4] : ""};
  Random random(static_cast<unsigned>(settings.seed));
  try_all(random, settings);
  int all = 0;
  if (MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS) all = 1;
  if (world_rank == 0)
    std::printf("fused: %d cases of %s on %d ranks, %s\n", settings.cases, what, world_ranks,
                all == 0 ? "right" : "wrong");
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}

}  // namespace fused_job
