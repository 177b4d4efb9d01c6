// A fused product and all-reduce against what it replaces, in turn in one job: the same kernel to its end and then the
// host's all-reduce, or Plait's; the computation alone, the communication alone, and a plain read of the same weights.
// Medians of rounds of the slowest rank's time, and the fastest rounds. One line of JSON.
//
//   mpirun -n N fused_gemv_loop [--rows 16384] [--depth 4096] [--columns 1] [--type f32|bf16|i8] [--rounds 21]
//                               [--options "workers=1"] [--private] [--large-pages]
#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fused/kernels/gemv.h"
#include "plait/plait_fused.h"

namespace {

using plait::fused::GemvKernel;
using plait::fused::RowType;

struct Settings {
  std::int64_t rows = 16384, depth = 4096, columns = 1;
  std::string type = "f32", options = "workers=1";
  int rounds = 21;
  bool private_output = false, large_pages = false;

  RowType row_type() const { return type == "f32" ? RowType::f32 : type == "bf16" ? RowType::bf16 : RowType::i8; }
  std::size_t weight_bytes() const {
    return static_cast<std::size_t>(rows * depth) * plait::fused::bytes_of(row_type());
  }
  std::size_t floats() const { return static_cast<std::size_t>(rows * columns); }
};

int world_rank = 0, world_ranks = 1;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The slowest rank's.
double timed(const std::function<void()>& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now();
  work();
  double mine = now() - begin, slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

double median(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using WeightMemory = std::unique_ptr<std::byte, FreeMemory>;

WeightMemory make_memory(std::size_t bytes, bool large_pages) {
  constexpr std::size_t large_page = std::size_t{2} << 20;
  const std::size_t whole = (bytes + large_page - 1) / large_page * large_page;
  WeightMemory made(static_cast<std::byte*>(std::aligned_alloc(large_page, whole)));
  if (large_pages) madvise(made.get(), whole, MADV_HUGEPAGE);
  return made;
}

// Between -1/2 and 1/2; whole numbers of a byte where the type is one.
void put_weight(RowType type, std::size_t number, std::byte* to) {
  const auto byte = static_cast<std::int8_t>(number * 2654435761u >> 24);
  const float value = static_cast<float>(byte) / 256;
  std::uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  const auto half = static_cast<std::uint16_t>(word >> 16);
  if (type == RowType::f32) std::memcpy(to, &word, sizeof word);
  if (type == RowType::bf16) std::memcpy(to, &half, sizeof half);
  if (type == RowType::i8) *to = static_cast<std::byte>(byte);
}

class Layer {
 public:
  explicit Layer(const Settings& settings)
      : settings_(settings),
        memory_(make_memory(settings.weight_bytes(), settings.large_pages)),
        scales_(static_cast<std::size_t>(settings.rows), 1.0f / 256),
        kernel_(plait::fused::gemv_kernel(settings.row_type())) {
    const auto elements = static_cast<std::size_t>(settings.rows * settings.depth);
    const std::size_t bytes = plait::fused::bytes_of(settings.row_type());
    for (std::size_t i = 0; i < elements; ++i)
      put_weight(settings.row_type(), i + static_cast<std::size_t>(world_rank), memory_.get() + i * bytes);
    for (std::int64_t i = 0; i < settings.depth * settings.columns; ++i)
      x_.push_back(static_cast<float>(i % 97 - 48) / 64);
  }

  plait_fused_gemv shape() const {
    return {.rows = settings_.rows,
            .depth = settings_.depth,
            .columns = settings_.columns,
            .type = static_cast<int>(settings_.row_type()),
            .data = memory_.get(),
            .scales = scales_.data()};
  }
  const float* x() const { return x_.data(); }
  void compute(float* results) const {
    kernel_({.weights = memory_.get(),
             .scales = scales_.data(),
             .rows = settings_.rows,
             .depth = settings_.depth,
             .inputs = x_.data(),
             .columns = static_cast<int>(settings_.columns),
             .results = reinterpret_cast<std::byte*>(results),
             .pitch = static_cast<std::ptrdiff_t>(settings_.rows) * static_cast<std::ptrdiff_t>(sizeof(float))});
  }
  // What a plain read of all weights gives, so that it is computed.
  std::uint64_t read() const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(memory_.get());
    const std::size_t count = settings_.weight_bytes() / sizeof(std::uint64_t) / 8 * 8;
    std::uint64_t sum[8] = {};
    for (std::size_t i = 0; i < count; i += 8)
      for (std::size_t lane = 0; lane < 8; ++lane) sum[lane] += words[i + lane];
    return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
  }

 private:
  Settings settings_;
  WeightMemory memory_;
  std::vector<float> scales_, x_;
  GemvKernel kernel_;
};

float* make_floats(std::size_t count, bool is_private) {
  const std::size_t bytes = count * sizeof(float);
  auto* made =
      static_cast<float*>(is_private ? std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096) : plait_alloc(bytes));
  std::fill_n(made, count, 0.0f);
  return made;
}

// Sums in other orders.
bool are_close(const float* left, const float* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (std::abs(left[i] - right[i]) > 1e-3f) return false;
  return true;
}

bool on_all(bool mine) {
  int all = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

// All ranks' bits are rank 0's.
bool have_same_bits(const float* output, std::size_t count) {
  std::vector<float> first(output, output + count);
  MPI_Bcast(first.data(), static_cast<int>(count), MPI_FLOAT, 0, MPI_COMM_WORLD);
  return on_all(std::memcmp(first.data(), output, count * sizeof(float)) == 0);
}

void measure(const Settings& settings) {
  const Layer layer(settings);
  const std::size_t floats = settings.floats();
  float* parts = make_floats(floats, settings.private_output);
  float* sums = make_floats(floats, settings.private_output);
  float* output = make_floats(floats, settings.private_output);
  const plait_fused_gemv shape = layer.shape();
  plait_fused plan = PLAIT_FUSED_NULL;
  plait_fused_gemv_create(MPI_COMM_WORLD, &shape, output, settings.options.c_str(), &plan);
  const auto reduce = [&](bool by_plait) {
    const int before = plait_set_enabled(by_plait ? 1 : 0);
    MPI_Allreduce(parts, sums, static_cast<int>(floats), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    plait_set_enabled(before);
  };
  std::uint64_t kept = 0;
  const std::vector<std::pair<std::string, std::function<void()>>> ways = {
      {"fused", [&] { plait_fused_gemv_run(plan, layer.x()); }},
      {"kernel, host", [&] { layer.compute(parts), reduce(false); }},
      {"kernel, plait", [&] { layer.compute(parts), reduce(true); }},
      {"kernel", [&] { layer.compute(parts); }},
      {"host", [&] { reduce(false); }},
      {"plait", [&] { reduce(true); }},
      {"read", [&] { kept += layer.read(); }}};
  std::map<std::string, std::vector<double>> times;
  for (int warm_up = 0; warm_up < 2; ++warm_up)
    for (const auto& way : ways) way.second();
  for (int round = 0; round < settings.rounds; ++round)
    for (const auto& [name, way] : ways) times[name].push_back(timed(way));
  nlohmann::json line = {{"ranks", world_ranks},
                         {"rows", settings.rows},
                         {"depth", settings.depth},
                         {"columns", settings.columns},
                         {"type", settings.type},
                         {"rounds", settings.rounds},
                         {"private", settings.private_output},
                         {"large_pages", settings.large_pages},
                         {"read", kept},
                         {"plan", nlohmann::json::parse(plait_fused_describe(plan))}};
  for (const auto& [name, all] : times) {
    line["seconds"][name] = median(all);
    line["fastest_seconds"][name] = *std::ranges::min_element(all);
  }
  line["weight_bytes"] = settings.weight_bytes();
  line["same"] = on_all(are_close(output, sums, floats));
  line["same_bits"] = have_same_bits(output, floats);
  if (world_rank == 0) std::printf("%s\n", line.dump().c_str());
  plait_fused_free(&plan);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
  Settings settings;
  CLI::App app("fused_gemv_loop");
  app.add_option("--rows", settings.rows);
  app.add_option("--depth", settings.depth);
  app.add_option("--columns", settings.columns)->check(CLI::Range(1, plait::fused::most_columns));
  app.add_option("--type", settings.type)->check(CLI::IsMember({"f32", "bf16", "i8"}));
  app.add_option("--rounds", settings.rounds);
  app.add_option("--options", settings.options);
  app.add_flag("--private", settings.private_output);
  app.add_flag("--large-pages", settings.large_pages);
  CLI11_PARSE(app, argc, argv);
  measure(settings);
  MPI_Finalize();
}
