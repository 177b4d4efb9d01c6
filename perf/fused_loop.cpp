// A fused embedding against what it replaces, in turn in one job: the same kernel to its end and then the host's
// all-to-all, or Plait's, with the pass over the result that brings it into the next layer's order; the same in chunks
// of the tables with non-blocking collectives; the computation alone, the communication alone, and what the memory
// gives a plain read. Medians of rounds of the slowest rank's time. One line of JSON.
//
//   mpirun -n N fused_loop [--batch 1024] [--tables 64] [--dim 256] [--pooling 32] [--rows 4096] [--type f32|bf16|i8]
//                          [--chunks 2,4,8] [--rounds 11] [--options "workers=1"] [--private] [--large-pages]
#include <cmath>
#include <cstring>
#include <random>

#include <CLI/CLI.hpp>

#include "fused/embedding/arguments.h"
#include "fused/kernels/pooling.h"
#include "fused/tiles/tiles.h"
#include "perf/fused_timing.h"

namespace {

using namespace fused_timing;
using plait::fused::Bags;
using plait::fused::Range;
using plait::fused::RowType;
using plait::fused::share_of;

struct Settings {
  std::int64_t batch = 1024, tables = 64, dim = 256, pooling = 32, rows = 4096;
  std::string type = "f32", options = "workers=1";
  std::vector<int> chunks = {2, 4, 8};
  int rounds = 11;
  bool private_output = false, large_pages = false;

  RowType row_type() const { return type == "f32" ? RowType::f32 : type == "bf16" ? RowType::bf16 : RowType::i8; }
};

// In large pages where the system has them: rows lie anywhere, and each is a page's address to look up.
struct TableMemory {
  Memory memory;
  std::size_t bytes = 0;
  std::byte* data() const { return memory.get(); }
  std::size_t size() const { return bytes; }
};

class Model {
 public:
  explicit Model(const Settings& settings) : settings_(settings) {
    std::mt19937_64 random(static_cast<std::uint64_t>(world_rank) + 1);
    const std::size_t row_bytes = static_cast<std::size_t>(settings.dim) * plait::fused::bytes_of(settings.row_type());
    const std::size_t bytes = static_cast<std::size_t>(settings.rows) * row_bytes;
    memory_.bytes = static_cast<std::size_t>(settings.tables) * bytes;
    memory_.memory = make_memory(memory_.bytes, settings.large_pages);
    // Small numbers of any type.
    for (std::size_t i = 0; i < memory_.size(); ++i)
      memory_.data()[i] = static_cast<std::byte>(i * 2654435761u >> 28 & 0x3f);
    scales_.assign(static_cast<std::size_t>(settings.rows), 0.5f);
    rows_.assign(static_cast<std::size_t>(settings.tables), settings.rows);
    for (std::int64_t table = 0; table < settings.tables; ++table) {
      data_list_.push_back(memory_.data() + static_cast<std::size_t>(table) * bytes);
      scales_list_.push_back(scales_.data());
    }
    const std::int64_t bags = settings.tables * settings.batch;
    for (std::int64_t bag = 0; bag <= bags; ++bag) offsets_.push_back(bag * settings.pooling);
    for (std::int64_t i = 0; i < bags * settings.pooling; ++i)
      indices_.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(settings.rows)));
    kernel_ = plait::fused::pooling_kernel(settings.row_type(), false);
  }

  plait_fused_embedding shape() const {
    return {.batch = settings_.batch,
            .dim = settings_.dim,
            .tables = settings_.tables,
            .rows = rows_.data(),
            .data = data_list_.data(),
            .scales = scales_list_.data(),
            .type = static_cast<int>(settings_.row_type()),
            .mode = PLAIT_FUSED_SUM,
            .weighted = 0};
  }
  const std::vector<std::int64_t>& indices() const { return indices_; }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  const TableMemory& memory() const { return memory_; }
  std::int64_t count() const { return static_cast<std::int64_t>(indices_.size()); }

  // The same look at the lookups as a fused run takes.
  void check() const {
    plait::fused::EmbeddingProblem problem;
    problem.batch = settings_.batch;
    for (std::size_t table = 0; table < rows_.size(); ++table)
      problem.tables.push_back({.rows = rows_[table], .data = nullptr, .scales = nullptr});
    plait::fused::Complaint complaint;
    if (complains(problem, {.indices = indices_.data(), .count = count(), .offsets = offsets_.data()}, complaint))
      MPI_Abort(MPI_COMM_WORLD, 1);
  }
  void compute(float* results) const {
    check();
    compute({0, settings_.tables}, results);
  }
  // To its end, in the order in which MPI_Alltoall sends: by sample, and in it by table; a table after the other, as a
  // fused run does.
  void compute(const Range& tables, float* results) const {
    constexpr std::int64_t bags_at_once = 8;
    const std::int64_t pitch = tables.length() * settings_.dim;
    for (std::int64_t table = tables.begin; table < tables.end; ++table)
      for (std::int64_t bag = 0; bag < settings_.batch; bag += bags_at_once)
        kernel_({.table = static_cast<const std::byte*>(data_list_[static_cast<std::size_t>(table)]),
                 .scales = scales_.data(),
                 .columns = settings_.dim,
                 .indices = indices_.data(),
                 .weights = nullptr,
                 .offsets = offsets_.data() + table * settings_.batch + bag,
                 .bags = std::min(bags_at_once, settings_.batch - bag),
                 .next_end = offsets_[static_cast<std::size_t>((table + 1) * settings_.batch)],
                 .sums = reinterpret_cast<std::byte*>(results + bag * pitch + (table - tables.begin) * settings_.dim),
                 .pitch = pitch * static_cast<std::ptrdiff_t>(sizeof(float)),
                 .mean = false});
  }

 private:
  Settings settings_;
  TableMemory memory_;
  std::vector<float> scales_;
  std::vector<std::int64_t> rows_, indices_, offsets_;
  std::vector<const void*> data_list_;
  std::vector<const float*> scales_list_;
  plait::fused::PoolingKernel kernel_ = nullptr;
};

// What MPI_Alltoall leaves of some tables, rank after rank, in rows of all ranks' tables.
void shuffle(const Settings& settings, const Range& tables, const float* from, float* to) {
  const std::int64_t samples = settings.batch / world_ranks;
  const std::int64_t run = tables.length() * settings.dim;
  for (std::int64_t rank = 0; rank < world_ranks; ++rank)
    for (std::int64_t sample = 0; sample < samples; ++sample)
      std::memcpy(to + ((sample * world_ranks + rank) * settings.tables + tables.begin) * settings.dim,
                  from + (rank * samples + sample) * run, static_cast<std::size_t>(run) * sizeof(float));
}

// Whether all ranks' `memory` is as `expected` once the way has been gone, all of it written then.
bool leaves(const Way& way, float* memory, const float* expected, std::size_t floats) {
  std::fill_n(memory, floats, -1.0f);
  way.go();
  return on_all(std::memcmp(memory, expected, floats * sizeof(float)) == 0);
}

// Of all ranks at once: bytes a second of one.
double read_rate(const TableMemory& memory, int rounds) {
  std::vector<double> times;
  std::uint64_t kept = 0;
  for (int round = 0; round < rounds; ++round)
    times.push_back(timed([&] { kept += read_all(memory.data(), memory.size()); }));
  MPI_Allreduce(MPI_IN_PLACE, &kept, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);  // so that it is computed
  return static_cast<double>(memory.size()) / median(times);
}

nlohmann::json line_of(const Settings& settings, plait_fused plan) {
  return {{"ranks", world_ranks},
          {"batch", settings.batch},
          {"tables", settings.tables},
          {"dim", settings.dim},
          {"pooling", settings.pooling},
          {"rows", settings.rows},
          {"type", settings.type},
          {"rounds", settings.rounds},
          {"private", settings.private_output},
          {"large_pages", settings.large_pages},
          {"plan", nlohmann::json::parse(plait_fused_describe(plan))}};
}

// Of one rank, and of a plain read of its tables.
void put_rates(const Settings& settings, const Model& model, const Times& times, nlohmann::json& line) {
  const double row_bytes =
      static_cast<double>(settings.dim) * static_cast<double>(plait::fused::bytes_of(settings.row_type()));
  line["kernel_bytes_per_second"] = static_cast<double>(model.count()) * row_bytes /
                                    (median(times.at("kernel").seconds) - median(times.at("check").seconds));
  line["read_bytes_per_second"] = read_rate(model.memory(), settings.rounds);
}

void measure(const Settings& settings) {
  const Model model(settings);
  const auto floats = static_cast<std::size_t>(settings.batch * settings.tables * settings.dim);
  float* results = make_floats(floats, settings.private_output);
  float* received = make_floats(floats, settings.private_output);
  float* ordered = make_floats(floats, settings.private_output);
  float* output = make_floats(floats, settings.private_output);
  const int each = static_cast<int>(floats / static_cast<std::size_t>(world_ranks));
  const plait_fused_embedding shape = model.shape();
  plait_fused plan = PLAIT_FUSED_NULL;
  plait_fused_embedding_create(MPI_COMM_WORLD, &shape, output, settings.options.c_str(), &plan);
  const std::string plain_order = settings.options + " order=plain";
  plait_fused in_plain_order = PLAIT_FUSED_NULL;
  plait_fused_embedding_create(MPI_COMM_WORLD, &shape, output, plain_order.c_str(), &in_plain_order);
  const auto fused = [&](plait_fused by) {
    plait_fused_embedding_run(by, model.indices().data(), model.count(), model.offsets().data(), nullptr);
  };
  const auto exchange = [&](bool by_plait) {
    by(by_plait, [&] { MPI_Alltoall(results, each, MPI_FLOAT, received, each, MPI_FLOAT, MPI_COMM_WORLD); });
  };
  const auto order = [&] { shuffle(settings, {0, settings.tables}, received, ordered); };
  // Some of the tables, whose results lie together.
  const auto in_chunks = [&](int chunks) {
    const auto tables = [&](int chunk) { return share_of(settings.tables, chunks, chunk); };
    const auto place = [&](int chunk) { return tables(chunk).begin * settings.batch * settings.dim; };
    model.check();
    const auto begin = [&](int chunk, MPI_Request& request) {
      model.compute(tables(chunk), results + place(chunk));
      const auto count = static_cast<int>(settings.batch / world_ranks * tables(chunk).length() * settings.dim);
      MPI_Ialltoall(results + place(chunk), count, MPI_FLOAT, received + place(chunk), count, MPI_FLOAT, MPI_COMM_WORLD,
                    &request);
    };
    go_in_chunks(chunks, begin, [&](int chunk) { shuffle(settings, tables(chunk), received + place(chunk), ordered); });
  };
  const Way aware{"fused", [&] { fused(plan); }}, plain{"fused, plain order", [&] { fused(in_plain_order); }};
  const Way by_host{"kernel, host, order", [&] { model.compute(results), exchange(false), order(); }};
  std::vector<Way> chunked;
  add_chunked(chunked, settings.chunks, in_chunks);
  std::vector<Way> ways = {aware,
                           plain,
                           by_host,
                           {"kernel, host", [&] { model.compute(results), exchange(false); }},
                           {"kernel, plait, order", [&] { model.compute(results), exchange(true), order(); }},
                           {"kernel, plait", [&] { model.compute(results), exchange(true); }},
                           {"kernel", [&] { model.compute(results); }},
                           {"host", [&] { exchange(false); }},
                           {"host, order", [&] { exchange(false), order(); }},
                           {"plait, order", [&] { exchange(true), order(); }},
                           {"check", [&] { model.check(); }}};
  ways.insert(ways.end(), chunked.begin(), chunked.end());
  const Times times = time_in_turn(ways, settings.rounds);
  nlohmann::json line = line_of(settings, plan);
  put_times(times, line);
  put_rates(settings, model, times, line);
  bool same = leaves(by_host, ordered, output, floats);
  for (const Way* way : {&aware, &plain}) same = leaves(*way, output, ordered, floats) && same;
  for (const Way& way : chunked) same = leaves(way, ordered, output, floats) && same;
  line["same"] = same;
  print(line);
  plait_fused_free(&in_plain_order);
  plait_fused_free(&plan);
}

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app("fused_loop");
  app.add_option("--batch", settings.batch);
  app.add_option("--tables", settings.tables);
  app.add_option("--dim", settings.dim);
  app.add_option("--pooling", settings.pooling);
  app.add_option("--rows", settings.rows);
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
