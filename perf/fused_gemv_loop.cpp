// A fused product and all-reduce against what it replaces, in turn in one job: the same kernel to its end and then the
// host's all-reduce, or Plait's; the same in chunks of the rows with non-blocking collectives; the computation alone,
// the communication alone, and a plain read of the same weights. Medians of rounds of the slowest rank's time, and the
// fastest rounds. One line of JSON.
//
//   mpirun -n N fused_gemv_loop [--rows 16384] [--depth 4096] [--columns 1] [--type f32|bf16|i8]
//                               [--chunks 2,4,8] [--rounds 21] [--options "workers=1"] [--private] [--large-pages]
#include <cmath>
#include <cstring>

#include <CLI/CLI.hpp>

#include "fused/kernels/gemv.h"
#include "fused/tiles/tiles.h"
#include "perf/fused_timing.h"

namespace {

using namespace fused_timing;
using plait::fused::GemvKernel;
using plait::fused::Range;
using plait::fused::RowType;
using plait::fused::share_of;

struct Settings {
  std::int64_t rows = 16384, depth = 4096, columns = 1;
  std::string type = "f32", options = "workers=1";
  std::vector<int> chunks = {2, 4, 8};
  int rounds = 21;
  bool private_output = false, large_pages = false;

  RowType row_type() const { return type == "f32" ? RowType::f32 : type == "bf16" ? RowType::bf16 : RowType::i8; }
  std::size_t weight_bytes() const {
    return static_cast<std::size_t>(rows * depth) * plait::fused::bytes_of(row_type());
  }
  std::size_t floats() const { return static_cast<std::size_t>(rows * columns); }
};

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
  void compute(float* results) const { compute({0, settings_.rows}, results); }
  // Of each vector these rows, one vector's after the other's.
  void compute(const Range& rows, float* results) const {
    const std::size_t row_bytes =
        static_cast<std::size_t>(settings_.depth) * plait::fused::bytes_of(settings_.row_type());
    kernel_({.weights = memory_.get() + static_cast<std::size_t>(rows.begin) * row_bytes,
             .scales = scales_.data() + rows.begin,
             .rows = rows.length(),
             .depth = settings_.depth,
             .inputs = x_.data(),
             .columns = static_cast<int>(settings_.columns),
             .results = reinterpret_cast<std::byte*>(results),
             .pitch = static_cast<std::ptrdiff_t>(rows.length()) * static_cast<std::ptrdiff_t>(sizeof(float))});
  }
  std::uint64_t read() const { return read_all(memory_.get(), settings_.weight_bytes()); }

 private:
  Settings settings_;
  Memory memory_;
  std::vector<float> scales_, x_;
  GemvKernel kernel_;
};

// Sums in other orders.
bool are_close(const float* left, const float* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (std::abs(left[i] - right[i]) > 1e-3f) return false;
  return true;
}

// Some rows of all vectors, where these lie.
void put_rows(const Settings& settings, const Range& rows, const float* from, float* to) {
  for (std::int64_t column = 0; column < settings.columns; ++column)
    std::copy_n(from + column * rows.length(), rows.length(), to + column * settings.rows + rows.begin);
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
  // Chunks of several vectors come in an order of their own.
  float* received = settings.columns > 1 ? make_floats(floats, settings.private_output) : sums;
  float* output = make_floats(floats, settings.private_output);
  const plait_fused_gemv shape = layer.shape();
  plait_fused plan = PLAIT_FUSED_NULL;
  plait_fused_gemv_create(MPI_COMM_WORLD, &shape, output, settings.options.c_str(), &plan);
  const auto reduce = [&](bool by_plait) {
    by(by_plait, [&] { MPI_Allreduce(parts, sums, static_cast<int>(floats), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
  };
  const auto in_chunks = [&](int chunks) {
    const auto rows = [&](int chunk) { return share_of(settings.rows, chunks, chunk); };
    const auto place = [&](int chunk) { return rows(chunk).begin * settings.columns; };
    const auto begin = [&](int chunk, MPI_Request& request) {
      layer.compute(rows(chunk), parts + place(chunk));
      const auto count = static_cast<int>(rows(chunk).length() * settings.columns);
      MPI_Iallreduce(parts + place(chunk), received + place(chunk), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                     &request);
    };
    go_in_chunks(chunks, begin, [&](int chunk) {
      if (received != sums) put_rows(settings, rows(chunk), received + place(chunk), sums);
    });
  };
  std::vector<Way> chunked;
  add_chunked(chunked, settings.chunks, in_chunks);
  std::uint64_t kept = 0;
  std::vector<Way> ways = {{"fused", [&] { plait_fused_gemv_run(plan, layer.x()); }},
                           {"kernel, host", [&] { layer.compute(parts), reduce(false); }},
                           {"kernel, plait", [&] { layer.compute(parts), reduce(true); }},
                           {"kernel", [&] { layer.compute(parts); }},
                           {"host", [&] { reduce(false); }},
                           {"plait", [&] { reduce(true); }},
                           {"read", [&] { kept += layer.read(); }}};
  ways.insert(ways.end(), chunked.begin(), chunked.end());
  const Times times = time_in_turn(ways, settings.rounds);
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
  put_times(times, line);
  line["weight_bytes"] = settings.weight_bytes();
  layer.compute(parts);
  reduce(false);
  bool same = on_all(are_close(output, sums, floats));
  for (const Way& way : chunked) {
    std::fill_n(sums, floats, -1.0f);
    way.go();
    same = on_all(are_close(output, sums, floats)) && same;
  }
  line["same"] = same;
  line["same_bits"] = have_same_bits(output, floats);
  print(line);
  plait_fused_free(&plan);
}

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app("fused_gemv_loop");
  app.add_option("--rows", settings.rows);
  app.add_option("--depth", settings.depth);
  app.add_option("--columns", settings.columns)->check(CLI::Range(1, plait::fused::most_columns));
  app.add_option("--type", settings.type)->check(CLI::IsMember({"f32", "bf16", "i8"}));
  app.add_option("--chunks", settings.chunks)->delimiter(',');
  app.add_option("--rounds", settings.rounds);
  app.add_option("--options", settings.options);
  app.add_flag("--private", settings.private_output);
  app.add_flag("--large-pages", settings.large_pages);
  CLI11_PARSE(app, argc, argv);
  measure(settings);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return job(argc, argv, run); }
