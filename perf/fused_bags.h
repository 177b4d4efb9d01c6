// What the programs of fused embeddings share: tables, lookups and the kernel alone.
#pragma once

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "fused/embedding/arguments.h"
#include "fused/kernels/pooling.h"
#include "fused/tiles/tiles.h"
#include "perf/fused_timing.h"

namespace fused_timing {

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

// Of all ranks at once: bytes a second of one.
inline double read_rate(const TableMemory& memory, int rounds) {
  std::vector<double> times;
  std::uint64_t kept = 0;
  for (int round = 0; round < rounds; ++round)
    times.push_back(timed([&] { kept += read_all(memory.data(), memory.size()); }));
  MPI_Allreduce(MPI_IN_PLACE, &kept, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);  // so that it is computed
  return static_cast<double>(memory.size()) / median(times);
}

inline nlohmann::json line_of(const Settings& settings, plait_fused plan) {
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
inline void put_rates(const Settings& settings, const Model& model, const Times& times, nlohmann::json& line) {
  const double row_bytes =
      static_cast<double>(settings.dim) * static_cast<double>(plait::fused::bytes_of(settings.row_type()));
  line["kernel_bytes_per_second"] = static_cast<double>(model.count()) * row_bytes /
                                    (median(times.at("kernel").seconds) - median(times.at("check").seconds));
  line["read_bytes_per_second"] = read_rate(model.memory(), settings.rounds);
}

inline void add_options(Settings& settings, const std::vector<std::string>& types, CLI::App& app) {
  app.add_option("--batch", settings.batch);
  app.add_option("--tables", settings.tables);
  app.add_option("--dim", settings.dim);
  app.add_option("--pooling", settings.pooling);
  app.add_option("--rows", settings.rows);
  app.add_option("--type", settings.type)->check(CLI::IsMember(types));
  app.add_option("--chunks", settings.chunks)->delimiter(',');
  app.add_option("--rounds", settings.rounds);
  app.add_option("--options", settings.options);
  app.add_flag("--private", settings.private_output);
  app.add_flag("--large-pages", settings.large_pages);
}

}  // namespace fused_timing
