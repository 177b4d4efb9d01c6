// How fast collectives on a device are, beside what its copy engines allow. See README.md.
//
// The bound of a call: all bytes that it must bring from the devices and take to them, over the rate at which all ranks
// together copy so many bytes in that direction when they do nothing else; the slower direction counts. And the bound
// of one that needs no copies, where all ranks share a device: all bytes that it must read there and write, over the
// rate at which all ranks together copy within it.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/device/cuda.h"
#include "tests/device/device_program.h"

namespace plait::test {
namespace {

constexpr int exit_without_device = 77;
constexpr std::size_t engine_bytes = std::size_t{32} << 20, slow_engine_bytes = std::size_t{1} << 20;

Cuda cuda;
struct Options {
  const char* driver = "libcuda.so.1";
  const char* json = nullptr;
  double seconds = 20;
  std::size_t least = 8, most = std::size_t{64} << 20;
  bool several = false;
};

std::size_t bytes_of(const char* text) {
  char* end = nullptr;
  const auto number = static_cast<std::size_t>(std::strtoull(text, &end, 10));
  return number << (*end == 'G' ? 30 : *end == 'M' ? 20 : *end == 'K' ? 10 : 0);
}

Options read(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--devices") options.several = true;
    if (i + 1 == argc) break;
    if (name == "--driver") options.driver = argv[++i];
    if (name == "--json") options.json = argv[++i];
    if (name == "--seconds") options.seconds = std::atof(argv[++i]);
    if (name == "--least") options.least = bytes_of(argv[++i]);
    if (name == "--most") options.most = bytes_of(argv[++i]);
  }
  return options;
}

// The slowest rank's seconds for one of several calls back to back.
template <class Call>
double time_of(int times, Call&& call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < times; ++i) call();
  double mine = (MPI_Wtime() - begin) / times, slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

// Of five such times the one in the middle. Long calls are made fewer times.
template <class Call>
double median_of(double seconds, Call&& call) {
  const double once = time_of(2, call);
  const int times = std::clamp(static_cast<int>(seconds / 6 / std::max(once, 1e-7)), 1, 1000);
  std::vector<double> all;
  for (int i = 0; i < 5; ++i) all.push_back(time_of(times, call));
  std::sort(all.begin(), all.end());
  return all[2];
}

// Bytes a second, of all ranks together; both directions by themselves.
struct Engines {
  double from_device = 0, to_device = 0, within = 0;
};

Engines measure_engines() {
  void* there = cuda.allocate(engine_bytes);
  void* here = cuda.allocate_pinned(engine_bytes);
  // What takes some milliseconds is long enough; of a slow engine's copies (the fake driver's) long ones take seconds.
  constexpr double long_s = 0.01;
  const double once = time_of(1, [&] { cuda.copy(here, there, slow_engine_bytes); });
  const std::size_t bytes = once > long_s ? slow_engine_bytes : engine_bytes;
  const auto rate = [&](void* to, const void* from) {
    return static_cast<double>(bytes) * ranks / median_of(0.5, [&] { cuda.copy(to, from, bytes); });
  };
  void* beside = cuda.allocate(engine_bytes);
  const Engines engines{rate(here, there), rate(there, here), rate(beside, there)};
  cuda.release(beside);
  cuda.release(there);
  cuda.release_pinned(here);
  return engines;
}

struct Row {
  const char* collective;
  std::size_t bytes;
  double seconds, bound, bound_within;
};

// How often a call's bytes cross in each direction, over all ranks; and how often they are copied where none do, each
// byte that is only read or written counted as half.
struct Load {
  double from_device, to_device, within;
};

class Table {
 public:
  explicit Table(const Options& options) : options_(options), engines_(measure_engines()) {}

  template <class Call>
  void add(const char* collective, std::size_t bytes, const Load& load, Call&& call) {
    const double seconds = median_of(options_.seconds / 60, call);
    const auto size = static_cast<double>(bytes);
    const double bound =
        std::max(size * load.from_device / engines_.from_device, size * load.to_device / engines_.to_device);
    const double bound_within = size * load.within / engines_.within;
    rows_.push_back({collective, bytes, seconds, bound, bound_within});
    if (rank == 0) {
      std::printf("%-12s %12zu B %12.1f us %8.0f %% %8.0f %%\n", collective, bytes, seconds * 1e6,
                  100 * bound / seconds, 100 * bound_within / seconds);
      std::fflush(stdout);
    }
  }

  void head() const {
    if (rank != 0) return;
    std::printf("%d ranks; all ranks together copy %.2f GB/s from the device, %.2f GB/s to it, %.2f GB/s within it\n",
                ranks, engines_.from_device / 1e9, engines_.to_device / 1e9, engines_.within / 1e9);
    std::printf("%-12s %14s %15s %10s %10s\n", "collective", "bytes", "time", "of bound", "within");
  }

  bool write() const {
    if (options_.json == nullptr || rank != 0) return true;
    std::FILE* file = std::fopen(options_.json, "we");
    if (file == nullptr) return false;
    std::fprintf(file, "{\"ranks\": %d, \"from_device\": %.4g, \"to_device\": %.4g, \"within\": %.4g, \"rows\": [",
                 ranks, engines_.from_device, engines_.to_device, engines_.within);
    for (std::size_t i = 0; i < rows_.size(); ++i)
      std::fprintf(file,
                   "%s\n  {\"collective\": \"%s\", \"bytes\": %zu, \"seconds\": %.4g, \"bound\": %.4g, "
                   "\"bound_within\": %.4g}",
                   i == 0 ? "" : ",", rows_[i].collective, rows_[i].bytes, rows_[i].seconds, rows_[i].bound,
                   rows_[i].bound_within);
    std::fprintf(file, "\n]}\n");
    return std::fclose(file) == 0;
  }

 private:
  Options options_;
  Engines engines_;
  std::vector<Row> rows_;
};

void measure(Table& table, std::size_t bytes) {
  auto* send = static_cast<std::byte*>(cuda.allocate(bytes));
  auto* receive = static_cast<std::byte*>(cuda.allocate(bytes));
  const double all = ranks;
  const int floats = static_cast<int>(bytes / sizeof(float));
  const int part = static_cast<int>(bytes / sizeof(float) / static_cast<std::size_t>(ranks));
  table.add("allreduce", bytes, {all, all, all},
            [&] { MPI_Allreduce(send, receive, floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
  table.add("bcast", bytes, {1, all - 1, all - 1}, [&] { MPI_Bcast(send, floats, MPI_FLOAT, 0, MPI_COMM_WORLD); });
  table.add("reduce", bytes, {all, 1, (all + 1) / 2},
            [&] { MPI_Reduce(send, receive, floats, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); });
  if (part > 0) {
    table.add("allgather", bytes, {1, all, all},
              [&] { MPI_Allgather(send, part, MPI_FLOAT, receive, part, MPI_FLOAT, MPI_COMM_WORLD); });
    table.add("alltoall", bytes, {all, all, all},
              [&] { MPI_Alltoall(send, part, MPI_FLOAT, receive, part, MPI_FLOAT, MPI_COMM_WORLD); });
  }
  cuda.release(send);
  cuda.release(receive);
}

int run(int argc, char** argv) {
  const Options options = read(argc, argv);
  const char* why = "";
  if (!cuda.open(options.driver, options.several ? rank : 0, why)) {
    if (rank == 0) std::printf("device_rates: not run: %s\n", why);
    return exit_without_device;
  }
  Table table(options);
  table.head();
  for (std::size_t bytes = options.least; bytes <= options.most; bytes = bytes == 8 ? 4096 : bytes * 4)
    measure(table, bytes);
  if (!table.write()) return 1;
  if (rank == 0) std::printf("device_rates: done\n");
  return 0;
}

}  // namespace
}  // namespace plait::test

int main(int argc, char** argv) { return plait::test::run_job(argc, argv, plait::test::run); }
