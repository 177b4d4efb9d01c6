// How much of a non-blocking allreduce is hidden behind computation, under mpirun, as the host and as Plait run it. The
// computation is a timed wait without a call of MPI, a quarter longer than the communication alone. Without
// libplait.so, which can be switched, the calls are measured once, as they are: the host's or the component's.
//
//   mpirun -n 8 [-x LD_PRELOAD=libplait.so] overlap_loop [--json] [--seconds S] BYTES...
//
// hidden = (communication + computation - both at once) / communication
#include <dlfcn.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/units.h"

namespace {

constexpr double computation_share = 1.25;  // of the communication
constexpr int fewest_repeats = 5, warm_up_calls = 4;

struct Options {
  std::vector<std::string> sizes;
  double seconds = 2;  // each size and side
  bool json = false;
};

// plait_set_enabled() of libplait.so, where it is preloaded.
using Switch = int (*)(int);
Switch switch_of_plait() { return reinterpret_cast<Switch>(dlsym(RTLD_DEFAULT, "plait_set_enabled")); }

struct Overlap {
  double communication_s = 0, both_s = 0, computation_s = 0;
  double hidden() const { return std::clamp((communication_s + computation_s - both_s) / communication_s, 0.0, 1.0); }
};

void compute(double seconds) {
  const double whole = std::floor(seconds);
  const timespec time{static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Loop {
 public:
  Loop(std::size_t bytes, double seconds)
      : seconds_(seconds), input_(bytes / sizeof(float), 1.0f), output_(bytes / sizeof(float)) {}

  Overlap run(bool accelerated) {
    if (const auto set_enabled = switch_of_plait(); set_enabled != nullptr) set_enabled(accelerated ? 1 : 0);
    for (int i = 0; i < warm_up_calls; ++i) step(0);
    Overlap overlap;
    const double first = step(0);
    const int repeats = std::clamp(static_cast<int>(seconds_ / 3 / first), fewest_repeats, 1000);
    overlap.communication_s = repeat(repeats, 0);
    overlap.computation_s = overlap.communication_s * computation_share;
    overlap.both_s = repeat(repeats, overlap.computation_s);
    // A wait takes longer than asked for: what it really took.
    const double begin = MPI_Wtime();
    compute(overlap.computation_s);
    overlap.computation_s = slowest(MPI_Wtime() - begin);
    return overlap;
  }

 private:
  static double slowest(double mine) {
    double all = 0;
    PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
  }

  // Of the slowest rank.
  double step(double computation_s) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(input_.data(), output_.data(), static_cast<int>(input_.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                   &request);
    if (computation_s > 0) compute(computation_s);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return slowest(MPI_Wtime() - begin);
  }

  double repeat(int times, double computation_s) {
    std::vector<double> taken;
    for (int i = 0; i < times; ++i) taken.push_back(step(computation_s));
    return median(std::move(taken));
  }

  double seconds_;
  std::vector<float> input_, output_;
};

nlohmann::json json_of(const Overlap& overlap) {
  return {{"communication_s", overlap.communication_s}, {"both_s", overlap.both_s}, {"hidden", overlap.hidden()}};
}

constexpr const char* host_side = "host";
constexpr const char* plait_side = "plait";

std::vector<const char*> sides() {
  if (switch_of_plait() == nullptr) return {"as it is"};
  return {host_side, plait_side};
}

int run(const Options& options) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  nlohmann::json rows = nlohmann::json::array();
  for (const std::string& size : options.sizes) {
    const plait::Result<std::size_t> bytes = plait::parse_bytes(size);
    if (!bytes.ok() || *bytes < sizeof(float)) {
      if (rank == 0) std::fprintf(stderr, "overlap_loop: %s: expected a number of bytes from 4 on\n", size.c_str());
      return 2;
    }
    Loop loop(*bytes, options.seconds);
    nlohmann::json row = {{"bytes", *bytes}};
    for (const char* side : sides()) {
      const Overlap overlap = loop.run(side == plait_side);
      row[side] = json_of(overlap);
      if (rank == 0 && !options.json)
        std::printf("%10s  %-8s %10.3f ms, %.0f %% hidden\n", size.c_str(), side, overlap.communication_s * 1e3,
                    overlap.hidden() * 100);
    }
    rows.push_back(std::move(row));
  }
  if (rank == 0 && options.json) std::printf("%s\n", nlohmann::json{{"rows", rows}}.dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("The share of a non-blocking allreduce that is hidden behind computation.");
  app.add_option("BYTES", options.sizes, "Sizes, such as 1M")->required();
  app.add_option("--seconds", options.seconds, "A size and side");
  app.add_flag("--json", options.json, "One JSON object instead of lines");
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  const int status = run(options);
  MPI_Finalize();
  return status;
}
