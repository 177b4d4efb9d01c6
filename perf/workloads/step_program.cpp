// Plays a step of perf/workloads under mpirun, as a program that knows nothing of Plait, with any MPI: each operation
// is MPI_Ialltoall, MPI_Iallreduce, ... or the start of a persistent one, each computation a wait, as where an
// accelerator computes, or work on the processor.
//
//   mpirun -n 8 [-x LD_PRELOAD=libplait.so] step_program dlrm-a2.json [--compute wait|work] [--test SECONDS]
//   [--iterations N] [--stretch F] [--check] [--persistent]
//
// Prints one JSON object: the seconds of each iteration, their least, median and mean, and the median of what was spent
// in MPI_Wait, means over the ranks. No barrier parts the iterations. Exits with 3 where a result is wrong.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "perf/workloads/step_player.h"

namespace plait::perf::workloads {
namespace {

struct Options {
  std::string file;
  PlayOptions play;
  int iterations = 20, warm_up = 3;
  bool persistent = false;
};

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int refuse(const std::string& why) {
  if (world_rank() == 0) std::fprintf(stderr, "step_program: %s\n", why.c_str());
  return 2;
}

Result<plan::step::Step> read_step(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status(Code::invalid, path + ": cannot be read");
  return plan::step::parse_step(std::string(std::istreambuf_iterator<char>(file), {}));
}

// What a program does before its first step: its parameters are broadcast.
void set_up() {
  std::vector<float> parameters(65536);
  for (int i = 0; i < 4; ++i)
    MPI_Bcast(parameters.data(), static_cast<int>(parameters.size()), MPI_FLOAT, 0, MPI_COMM_WORLD);
}

// The mean over the ranks: the sum over the iterations is then what all of them took.
std::vector<double> over_ranks(std::vector<double> mine) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Allreduce(MPI_IN_PLACE, mine.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (double& value : mine) value /= ranks;
  return mine;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

nlohmann::json json_of(const std::string& name, const std::vector<double>& all, const std::vector<double>& waited) {
  return {{"step", name},
          {"iterations", all},
          {"min", std::ranges::min(all)},
          {"median", median(all)},
          {"mean", std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size())},
          {"waited", median(waited)}};
}

std::uint64_t all_wrong(std::uint64_t mine) {
  std::uint64_t all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

int run(const Options& options) {
  Result<plan::step::Step> step = read_step(options.file);
  if (!step.ok()) return refuse(step.status().message());
  if (options.persistent)
    for (plan::step::Task& task : step->tasks) task.persistent = task.collective.has_value();
  Result<std::unique_ptr<StepPlayer>> player = StepPlayer::of(*step, options.play, MPI_COMM_WORLD);
  if (!player.ok()) return refuse(player.status().message());
  set_up();
  std::vector<double> all, waited;
  for (int i = 0; i < options.warm_up + options.iterations; ++i) {
    const IterationTime time = (*player)->iteration();
    if (i < options.warm_up) continue;
    all.push_back(time.all);
    waited.push_back(time.waited);
  }
  (*player)->finish();
  const nlohmann::json json = json_of(step->name, over_ranks(std::move(all)), over_ranks(std::move(waited)));
  const std::uint64_t wrong = all_wrong((*player)->wrong());
  if (world_rank() != 0) return wrong == 0 ? 0 : 3;
  if (wrong > 0) std::fprintf(stderr, "step_program: %llu wrong results\n", static_cast<unsigned long long>(wrong));
  std::printf("%s\n", json.dump().c_str());
  return wrong == 0 ? 0 : 3;
}

}  // namespace
}  // namespace plait::perf::workloads

int main(int argc, char** argv) {
  using namespace plait::perf::workloads;
  Options options;
  std::string compute = "wait";
  bool check = false;
  CLI::App app("A training step's computation and collectives, as a plain MPI program.");
  app.add_option("STEP", options.file, "A step file (docs/schedule.md)")->required();
  app.add_option("--compute", compute, "wait: the processor is free; work: it computes")
      ->check(CLI::IsMember({"wait", "work"}));
  app.add_option("--test", options.play.computation.test_every,
                 "Seconds between two calls of MPI_Testsome while computing")
      ->check(CLI::Range(0.0, 1e3));
  app.add_option("--iterations", options.iterations, "That are timed")->check(CLI::Range(1, 1'000'000));
  app.add_option("--warm-up", options.warm_up, "Iterations before them")->check(CLI::Range(0, 1'000'000));
  app.add_option("--stretch", options.play.stretch, "Of all computation: so many times as long")
      ->check(CLI::Range(0.0, 1e6));
  app.add_flag("--check", check, "All data are new in each iteration and looked at, not a few elements");
  app.add_flag("--persistent", options.persistent, "All operations are persistent, as those that the step says so of");
  CLI11_PARSE(app, argc, argv);
  options.play.computation.on_processor = compute == "work";
  options.play.check = check ? Check::all_elements : Check::few_elements;
  MPI_Init(&argc, &argv);
  const int status = run(options);
  MPI_Finalize();
  return status;
}
