// Fused operators on devices: whether their results are those that the processors have, and how long they take beside
// the same kernels with a collective behind them. See README.md.
//
// Kernel: a plan of this rank alone, which computes all of it into memory of its own. In turn: that, and then the
// collective over all ranks, of memory of the devices. What brings the all-to-all's results into the order of the
// output, or adds them, is left out there, which favours it.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "plait/plait_fused.h"
#include "tests/device/cuda.h"
#include "tests/device/device_program.h"

namespace plait::test {
namespace {

constexpr int exit_without_device = 77;

Cuda cuda;
bool wrong = false;

struct Options {
  const char* driver = "libcuda.so.1";
  const char* json = nullptr;
  std::int64_t scale = 16;  // of the sizes
  int rounds = 11;
  bool several = false;
};

Options read(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--short") options.scale = 1, options.rounds = 3;
    if (name == "--devices") options.several = true;
    if (i + 1 == argc) break;
    if (name == "--driver") options.driver = argv[++i];
    if (name == "--json") options.json = argv[++i];
  }
  return options;
}

void expect(bool right, const std::string& what) {
  if (right) return;
  wrong = true;
  std::printf("device_fused: rank %d: wrong: %s\n", rank, what.c_str());
}

// Numbers here, and the same on the device.
template <class T>
class Both {
 public:
  explicit Both(std::vector<T> numbers)
      : here_(std::move(numbers)), there_(static_cast<T*>(cuda.allocate(std::max<std::size_t>(bytes(), 1)))) {
    cuda.copy(there_, here_.data(), bytes());
  }
  explicit Both(std::int64_t count) : Both(std::vector<T>(static_cast<std::size_t>(count))) {}
  ~Both() { cuda.release(there_); }
  Both(const Both&) = delete;
  Both& operator=(const Both&) = delete;

  T* on(bool device) { return device ? there_ : here_.data(); }
  // What the device has of it is what is here.
  bool is_alike() {
    std::vector<T> back(here_.size());
    cuda.copy(back.data(), there_, bytes());
    return back == here_;
  }

 private:
  std::size_t bytes() const { return here_.size() * sizeof(T); }
  std::vector<T> here_;
  T* there_;
};

// Small integers, so that all sums are exact.
Both<float> drawn(std::int64_t count, int seed) {
  std::vector<float> made(static_cast<std::size_t>(count));
  auto state = static_cast<std::uint32_t>(seed * 7919 + rank * 104729 + 1);
  for (float& one : made) one = static_cast<float>((state = state * 1664525u + 1013904223u) >> 29) - 4;
  return Both<float>(std::move(made));
}

// A plan, freed at its end.
class Plan {
 public:
  template <class Create>
  explicit Plan(Create&& create) {
    expect(create(&plan_) == MPI_SUCCESS, "a plan is not made");
  }
  ~Plan() {
    if (plan_ != PLAIT_FUSED_NULL) plait_fused_free(&plan_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  plait_fused get() const { return plan_; }
  bool is_on_devices() const {
    return plan_ != PLAIT_FUSED_NULL && std::strstr(plait_fused_describe(plan_), "\"on\": \"devices\"") != nullptr;
  }

 private:
  plait_fused plan_ = PLAIT_FUSED_NULL;
};

// The slowest rank's seconds, in the middle of some.
double median_of(int rounds, const std::function<void()>& work) {
  std::vector<double> all;
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    work();
    double mine = MPI_Wtime() - begin, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    all.push_back(slowest);
  }
  std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
  return all[static_cast<std::size_t>(rounds / 2)];
}

struct Row {
  std::string name, shape;
  double fused, kernel, collective, in_turn;
};

// One operator: all that is timed of it.
struct Ways {
  std::function<void()> fused, kernel, collective;
};

class Table {
 public:
  explicit Table(const Options& options) : options_(options) {}
  void add(const std::string& name, const std::string& shape, const Ways& ways) {
    for (const auto* way : {&ways.fused, &ways.kernel, &ways.collective}) (*way)();
    const Row row{name,
                  shape,
                  median_of(options_.rounds, ways.fused),
                  median_of(options_.rounds, ways.kernel),
                  median_of(options_.rounds, ways.collective),
                  median_of(options_.rounds, [&] { ways.kernel(), ways.collective(); })};
    rows_.push_back(row);
    if (rank == 0)
      std::printf("%-20s %-20s fused %9.1f us, kernel %9.1f, collective %9.1f, in turn %9.1f: %.0f %% less\n",
                  name.c_str(), shape.c_str(), row.fused * 1e6, row.kernel * 1e6, row.collective * 1e6,
                  row.in_turn * 1e6, 100 * (1 - row.fused / row.in_turn));
  }
  bool write() const {
    if (options_.json == nullptr || rank != 0) return true;
    std::FILE* file = std::fopen(options_.json, "we");
    if (file == nullptr) return false;
    std::fprintf(file, "{\"ranks\": %d, \"rows\": [", ranks);
    for (std::size_t i = 0; i < rows_.size(); ++i)
      std::fprintf(file,
                   "%s\n  {\"operator\": \"%s\", \"shape\": \"%s\", \"fused\": %.4g, \"kernel\": %.4g, "
                   "\"collective\": %.4g, \"in_turn\": %.4g}",
                   i == 0 ? "" : ",", rows_[i].name.c_str(), rows_[i].shape.c_str(), rows_[i].fused, rows_[i].kernel,
                   rows_[i].collective, rows_[i].in_turn);
    std::fprintf(file, "\n]}\n");
    return std::fclose(file) == 0;
  }

 private:
  Options options_;
  std::vector<Row> rows_;
};

// Whether the device's result is the processor's; both have been run.
void compare(const Plan& plan, Both<float>& output, const std::string& name) {
  expect(plan.is_on_devices(), name + " does not run on the devices");
  expect(output.is_alike(), name + ": not what the processor computes");
}

// ---- The operators ----

void embedding(Table& table, std::int64_t scale) {
  const std::int64_t batch = 64 * ranks, tables = 4 * scale, dim = 64, rows = 1000 * scale, pooling = 32;
  const std::int64_t share = batch / ranks, count = tables * batch * pooling;
  Both<float> cells = drawn(tables * rows * dim, 1), output(share * ranks * tables * dim), own(batch * tables * dim),
              moved(batch * tables * dim);
  std::vector<std::int64_t> indices, offsets;
  for (std::int64_t at = 0; at < count; ++at) indices.push_back((at * 7919 + rank * 31) % rows);
  for (std::int64_t bag = 0; bag <= tables * batch; ++bag) offsets.push_back(bag * pooling);
  Both<std::int64_t> looked_up(std::move(indices)), bags(std::move(offsets));
  const std::vector<std::int64_t> all_rows(static_cast<std::size_t>(tables), rows);
  const auto create = [&](MPI_Comm comm, bool device, float* to) {
    return [&, comm, device, to](plait_fused* plan) {
      std::vector<const void*> places;
      for (std::int64_t at = 0; at < tables; ++at) places.push_back(cells.on(device) + at * rows * dim);
      const plait_fused_embedding shape{.batch = batch,
                                        .dim = dim,
                                        .tables = tables,
                                        .rows = all_rows.data(),
                                        .data = places.data(),
                                        .scales = nullptr,
                                        .type = PLAIT_FUSED_F32,
                                        .mode = PLAIT_FUSED_SUM,
                                        .weighted = 0};
      return plait_fused_embedding_create(comm, &shape, to, nullptr, plan);
    };
  };
  const auto run = [&](const Plan& plan, bool device) {
    plait_fused_embedding_run(plan.get(), looked_up.on(device), count, bags.on(device), nullptr);
  };
  const Plan there(create(MPI_COMM_WORLD, true, output.on(true))), alone(create(MPI_COMM_SELF, true, own.on(true)));
  {
    const Plan here(create(MPI_COMM_WORLD, false, output.on(false)));
    run(here, false);
    run(there, true);
    compare(there, output, "embedding");
  }
  const int piece = static_cast<int>(share * tables * dim);
  table.add("embedding", std::to_string(batch) + " x " + std::to_string(tables),
            {[&] { run(there, true); }, [&] { run(alone, true); },
             [&] { MPI_Alltoall(own.on(true), piece, MPI_FLOAT, moved.on(true), piece, MPI_FLOAT, MPI_COMM_WORLD); }});
}

void gemv(Table& table, std::int64_t scale) {
  const std::int64_t rows = 512 * scale, depth = 256 * scale;
  Both<float> weights = drawn(rows * depth, 2), x = drawn(depth, 3), output(rows), own(rows);
  const auto create = [&](MPI_Comm comm, bool device, float* to) {
    return [&, comm, device, to](plait_fused* plan) {
      const plait_fused_gemv shape{.rows = rows,
                                   .depth = depth,
                                   .columns = 1,
                                   .type = PLAIT_FUSED_F32,
                                   .data = weights.on(device),
                                   .scales = nullptr};
      return plait_fused_gemv_create(comm, &shape, to, nullptr, plan);
    };
  };
  const Plan there(create(MPI_COMM_WORLD, true, output.on(true))), alone(create(MPI_COMM_SELF, true, own.on(true)));
  {
    const Plan here(create(MPI_COMM_WORLD, false, output.on(false)));
    plait_fused_gemv_run(here.get(), x.on(false));
    plait_fused_gemv_run(there.get(), x.on(true));
    compare(there, output, "gemv");
  }
  table.add(
      "gemv", std::to_string(rows) + " x " + std::to_string(depth),
      {[&] { plait_fused_gemv_run(there.get(), x.on(true)); }, [&] { plait_fused_gemv_run(alone.get(), x.on(true)); },
       [&] { MPI_Allreduce(MPI_IN_PLACE, own.on(true), static_cast<int>(rows), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }});
}

void gemm_reduce_scatter(Table& table, std::int64_t scale) {
  const std::int64_t share = 64 * scale, rows = share * ranks, depth = 64 * scale, columns = 64 * scale;
  Both<float> weights = drawn(depth * columns, 4), x = drawn(rows * depth, 5), output(share * columns),
              own(rows * columns), sum(share * columns);
  const auto create = [&](MPI_Comm comm, bool device, float* to) {
    return [&, comm, device, to](plait_fused* plan) {
      const plait_fused_gemm shape{
          .rows = rows, .depth = depth, .columns = columns, .type = PLAIT_FUSED_F32, .data = weights.on(device)};
      return plait_fused_gemm_reduce_scatter_create(comm, &shape, to, nullptr, plan);
    };
  };
  const Plan there(create(MPI_COMM_WORLD, true, output.on(true))), alone(create(MPI_COMM_SELF, true, own.on(true)));
  {
    const Plan here(create(MPI_COMM_WORLD, false, output.on(false)));
    plait_fused_gemm_reduce_scatter_run(here.get(), x.on(false));
    plait_fused_gemm_reduce_scatter_run(there.get(), x.on(true));
    compare(there, output, "gemm_reduce_scatter");
  }
  table.add("gemm_reduce_scatter",
            std::to_string(rows) + " x " + std::to_string(depth) + " x " + std::to_string(columns),
            {[&] { plait_fused_gemm_reduce_scatter_run(there.get(), x.on(true)); },
             [&] { plait_fused_gemm_reduce_scatter_run(alone.get(), x.on(true)); },
             [&] {
               MPI_Reduce_scatter_block(own.on(true), sum.on(true), static_cast<int>(share * columns), MPI_FLOAT,
                                        MPI_SUM, MPI_COMM_WORLD);
             }});
}

void all_gather_gemm(Table& table, std::int64_t scale) {
  const std::int64_t share = 64 * scale, rows = share * ranks, depth = 64 * scale, columns = 64 * scale;
  Both<float> weights = drawn(depth * columns, 8), x = drawn(share * depth, 9), output(rows * columns),
              gathered(rows * depth), own(rows * columns);
  const auto create = [&](MPI_Comm comm, bool device, float* to) {
    return [&, comm, device, to](plait_fused* plan) {
      const plait_fused_gemm shape{
          .rows = rows, .depth = depth, .columns = columns, .type = PLAIT_FUSED_F32, .data = weights.on(device)};
      return plait_fused_all_gather_gemm_create(comm, &shape, to, nullptr, plan);
    };
  };
  const Plan there(create(MPI_COMM_WORLD, true, output.on(true))), alone(create(MPI_COMM_SELF, true, own.on(true)));
  {
    const Plan here(create(MPI_COMM_WORLD, false, output.on(false)));
    plait_fused_all_gather_gemm_run(here.get(), x.on(false));
    plait_fused_all_gather_gemm_run(there.get(), x.on(true));
    compare(there, output, "all_gather_gemm");
  }
  const int piece = static_cast<int>(share * depth);
  table.add(
      "all_gather_gemm", std::to_string(rows) + " x " + std::to_string(depth) + " x " + std::to_string(columns),
      {[&] { plait_fused_all_gather_gemm_run(there.get(), x.on(true)); },
       [&] { plait_fused_all_gather_gemm_run(alone.get(), gathered.on(true)); },
       [&] { MPI_Allgather(x.on(true), piece, MPI_FLOAT, gathered.on(true), piece, MPI_FLOAT, MPI_COMM_WORLD); }});
}

// Each rank has an expert, and as many tokens for each.
void moe_combine(Table& table, std::int64_t scale) {
  const std::int64_t capacity = 64 * scale, tokens = capacity * ranks, depth = 64 * scale, columns = 64 * scale;
  Both<float> weights = drawn(depth * columns, 6), x = drawn(tokens * depth, 7), output(tokens * columns),
              own(tokens * columns), moved(tokens * columns);
  std::vector<std::int32_t> chosen;
  for (std::int64_t token = 0; token < tokens; ++token) chosen.push_back(static_cast<std::int32_t>(token % ranks));
  const std::vector<float> factors(static_cast<std::size_t>(tokens), 1);
  const auto create = [&](bool device) {
    return [&, device](plait_fused* plan) {
      const void* place = weights.on(device);
      const plait_fused_moe shape{.tokens = tokens,
                                  .choices = 1,
                                  .experts = 1,
                                  .depth = depth,
                                  .columns = columns,
                                  .capacity = capacity,
                                  .type = PLAIT_FUSED_F32,
                                  .data = &place};
      return plait_fused_moe_combine_create(MPI_COMM_WORLD, &shape, output.on(device), nullptr, plan);
    };
  };
  const auto run = [&](const Plan& plan, bool device) {
    plait_fused_moe_combine_run(plan.get(), x.on(device), chosen.data(), factors.data());
  };
  const Plan there(create(true));
  const Plan alone([&](plait_fused* plan) {
    const plait_fused_gemm shape{
        .rows = tokens, .depth = depth, .columns = columns, .type = PLAIT_FUSED_F32, .data = weights.on(true)};
    return plait_fused_gemm_reduce_scatter_create(MPI_COMM_SELF, &shape, own.on(true), nullptr, plan);
  });
  {
    const Plan here(create(false));
    run(here, false);
    run(there, true);
    compare(there, output, "moe_combine");
  }
  const int piece = static_cast<int>(capacity * columns);
  table.add("moe_combine", std::to_string(tokens) + " x " + std::to_string(depth) + " x " + std::to_string(columns),
            {[&] { run(there, true); }, [&] { plait_fused_gemm_reduce_scatter_run(alone.get(), x.on(true)); },
             [&] { MPI_Alltoall(own.on(true), piece, MPI_FLOAT, moved.on(true), piece, MPI_FLOAT, MPI_COMM_WORLD); }});
}

int run(int argc, char** argv) {
  const Options options = read(argc, argv);
  const char* why = "";
  if (!cuda.open(options.driver, options.several ? rank : 0, why)) {
    if (rank == 0) std::printf("device_fused: not run: %s\n", why);
    return exit_without_device;
  }
  Table table(options);
  embedding(table, options.scale);
  gemv(table, options.scale);
  gemm_reduce_scatter(table, options.scale);
  all_gather_gemm(table, options.scale);
  moe_combine(table, options.scale);
  int mine = wrong ? 1 : 0, any = 0;
  MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (any != 0 || !table.write()) return 1;
  if (rank == 0) std::printf("device_fused: right\n");
  return 0;
}

}  // namespace
}  // namespace plait::test

int main(int argc, char** argv) { return plait::test::run_job(argc, argv, plait::test::run); }
