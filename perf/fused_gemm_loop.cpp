// A fused product of matrices against what it replaces, in turn in one job: the same kernels to their end and the
// collective behind or before them, the host's or Plait's; the same in chunks with non-blocking collectives; the
// computation alone, by the library's kernel on whole matrices and tile by tile, and the communication alone. Medians
// of rounds of the slowest rank's time, and the fastest rounds. One line of JSON.
//
//   mpirun -n N fused_gemm_loop [--operator reduce_scatter|all_gather|dispatch|combine] [--rows 4096] [--depth 2048]
//                               [--columns 2048] [--experts 4] [--choices 2] [--skew 0] [--chunks 2,4,8] [--rounds 11]
//                               [--options "workers=1"] [--private]
//
// Rows are those of all ranks together, or all ranks' tokens; experts are a rank's.
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>

#include <CLI/CLI.hpp>

#include "fused/kernels/gemm.h"
#include "fused/kernels/weighted_sum.h"
#include "fused/moe/routing.h"
#include "fused/tiles/blocks.h"
#include "perf/fused_timing.h"

namespace {

using namespace fused_timing;
using plait::fused::block_shape;
using plait::fused::blocks_of;
using plait::fused::BlockShape;
using plait::fused::elements_of;
using plait::fused::Gemm;
using plait::fused::GemmTile;
using plait::fused::Range;
using plait::fused::Routing;
using plait::fused::share_of;

struct Settings {
  std::string kind = "reduce_scatter";
  std::int64_t rows = 4096, depth = 2048, columns = 2048, experts = 4, choices = 2;
  double skew = 0;
  std::vector<int> chunks = {2, 4, 8};
  int rounds = 11;
  std::string options = "workers=1";
  bool private_output = false;
};

// Small numbers, which f32 has room for.
void fill(float* memory, std::size_t count, std::size_t seed) {
  for (std::size_t i = 0; i < count; ++i)
    memory[i] = static_cast<float>(static_cast<std::int8_t>((i + seed) * 2654435761u >> 24)) / 256;
}

// What of a matrix some block of rows and columns is.
void multiply_in_blocks(const Gemm& gemm, const GemmTile& whole, const BlockShape& shape) {
  for (std::int64_t column = 0; column < blocks_of(whole.columns, shape.columns); ++column)
    for (std::int64_t row = 0; row < blocks_of(whole.rows, shape.rows); ++row) {
      const Range rows = elements_of({row, row + 1}, {0, whole.rows}, shape.rows);
      const Range columns = elements_of({column, column + 1}, {0, whole.columns}, shape.columns);
      GemmTile tile = whole;
      tile.a += rows.begin * whole.a_pitch;
      tile.b += columns.begin;
      tile.c += rows.begin * whole.c_pitch + columns.begin;
      tile.rows = rows.length();
      tile.columns = columns.length();
      gemm(tile);
    }
}

// An operator, and what it replaces. What the ways leave is in `result` and `output`.
class Layer {
 public:
  explicit Layer(const Settings& settings) : settings_(settings), gemm_(Gemm::find("auto", 1)) {}
  virtual ~Layer() { plait_fused_free(&plan_); }
  virtual void fused() = 0;
  // To its end; with blocks: as the tiles of the operator.
  virtual void compute(bool in_blocks) = 0;
  virtual void exchange() = 0;
  virtual void in_turn() = 0;
  virtual void in_chunks(int chunks) = 0;
  virtual double flops() const = 0;  // of this rank

  // Whether the way leaves in `result` what the operator has left in the output.
  bool same_by(const Way& way) {
    std::fill_n(result_, floats_, 0.0f);
    way.go();
    return on_all(same());
  }
  plait_fused plan() const { return plan_; }
  std::string kernel() const { return std::string(gemm_.name()); }

 protected:
  bool same() const {
    for (std::size_t i = 0; i < floats_; ++i)
      if (std::abs(result_[i] - output_[i]) > 1e-4f * (1 + std::abs(result_[i]))) return false;
    return true;
  }
  void make_output(std::int64_t rows) {
    floats_ = static_cast<std::size_t>(rows * settings_.columns);
    output_ = make_floats(floats_, settings_.private_output);
    result_ = make_floats(floats_, settings_.private_output);
  }
  float* make(std::int64_t rows, std::int64_t columns) const {
    return make_floats(static_cast<std::size_t>(rows * columns), settings_.private_output);
  }
  float* draw(std::int64_t rows, std::int64_t columns, std::size_t seed) const {
    float* made = make(rows, columns);
    fill(made, static_cast<std::size_t>(rows * columns), seed + static_cast<std::size_t>(world_rank) * 7919);
    return made;
  }
  GemmTile product(const float* a, std::int64_t rows, const float* b, float* c) const {
    return {.a = a,
            .a_pitch = settings_.depth,
            .b = b,
            .b_pitch = settings_.columns,
            .c = c,
            .c_pitch = settings_.columns,
            .rows = rows,
            .columns = settings_.columns,
            .depth = settings_.depth};
  }
  double flops_of(std::int64_t rows) const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(settings_.depth) *
           static_cast<double>(settings_.columns);
  }

  Settings settings_;
  Gemm gemm_;
  plait_fused plan_ = PLAIT_FUSED_NULL;
  std::size_t floats_ = 0;
  float *output_ = nullptr, *result_ = nullptr;
};

// ---- With a reduce-scatter behind ----

class ReduceScatter final : public Layer {
 public:
  explicit ReduceScatter(const Settings& settings)
      : Layer(settings),
        own_rows_(settings.rows / world_ranks),
        x_(draw(settings.rows, settings.depth, 1)),
        weights_(draw(settings.depth, settings.columns, 2)),
        parts_(make(settings.rows, settings.columns)) {
    make_output(own_rows_);
    const plait_fused_gemm shape = {.rows = settings.rows,
                                    .depth = settings.depth,
                                    .columns = settings.columns,
                                    .type = PLAIT_FUSED_F32,
                                    .data = weights_};
    plait_fused_gemm_reduce_scatter_create(MPI_COMM_WORLD, &shape, output_, settings.options.c_str(), &plan_);
  }
  void fused() override { plait_fused_gemm_reduce_scatter_run(plan_, x_); }
  void compute(bool in_blocks) override {
    if (!in_blocks) return gemm_(product(x_, settings_.rows, weights_, parts_));
    const BlockShape shape = block_shape({.rows = own_rows_, .columns = settings_.columns});
    for (int owner = 0; owner < world_ranks; ++owner)
      multiply_in_blocks(gemm_,
                         product(x_ + owner * own_rows_ * settings_.depth, own_rows_, weights_,
                                 parts_ + owner * own_rows_ * settings_.columns),
                         shape);
  }
  void exchange() override {
    MPI_Reduce_scatter_block(parts_, result_, static_cast<int>(floats_), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void in_turn() override { compute(false), exchange(); }
  // Some of the rows of each owner, one after the other in a chunk.
  void in_chunks(int chunks) override {
    const auto begin = [&](int chunk, MPI_Request& request) {
      const Range rows = share_of(own_rows_, chunks, chunk);
      float* parts = parts_ + rows.begin * world_ranks * settings_.columns;
      for (int owner = 0; owner < world_ranks; ++owner)
        gemm_(product(x_ + (owner * own_rows_ + rows.begin) * settings_.depth, rows.length(), weights_,
                      parts + owner * rows.length() * settings_.columns));
      MPI_Ireduce_scatter_block(parts, result_ + rows.begin * settings_.columns,
                                static_cast<int>(rows.length() * settings_.columns), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                &request);
    };
    go_in_chunks(chunks, begin, [](int) {});
  }
  double flops() const override { return flops_of(settings_.rows); }

 private:
  std::int64_t own_rows_;
  float *x_, *weights_, *parts_;
};

// ---- With an all-gather before ----

class AllGather final : public Layer {
 public:
  explicit AllGather(const Settings& settings)
      : Layer(settings),
        own_rows_(settings.rows / world_ranks),
        x_(draw(own_rows_, settings.depth, 1)),
        gathered_(make(settings.rows, settings.depth)),
        weights_(draw(settings.depth, settings.columns, 2)) {
    make_output(settings.rows);
    const plait_fused_gemm shape = {.rows = settings.rows,
                                    .depth = settings.depth,
                                    .columns = settings.columns,
                                    .type = PLAIT_FUSED_F32,
                                    .data = weights_};
    plait_fused_all_gather_gemm_create(MPI_COMM_WORLD, &shape, output_, settings.options.c_str(), &plan_);
  }
  void fused() override { plait_fused_all_gather_gemm_run(plan_, x_); }
  void compute(bool in_blocks) override {
    if (!in_blocks) return gemm_(product(gathered_, settings_.rows, weights_, result_));
    const BlockShape shape = block_shape({.rows = own_rows_, .columns = settings_.columns});
    for (int source = 0; source < world_ranks; ++source) multiply_rows(source, {0, own_rows_}, gathered_, &shape);
  }
  void exchange() override {
    const int count = static_cast<int>(own_rows_ * settings_.depth);
    MPI_Allgather(x_, count, MPI_FLOAT, gathered_, count, MPI_FLOAT, MPI_COMM_WORLD);
  }
  void in_turn() override { exchange(), compute(false); }
  // Some of the rows of each rank, one rank's after the other's in a chunk.
  void in_chunks(int chunks) override {
    const auto begin = [&](int chunk, MPI_Request& request) {
      const Range rows = share_of(own_rows_, chunks, chunk);
      const int count = static_cast<int>(rows.length() * settings_.depth);
      MPI_Iallgather(x_ + rows.begin * settings_.depth, count, MPI_FLOAT,
                     gathered_ + rows.begin * world_ranks * settings_.depth, count, MPI_FLOAT, MPI_COMM_WORLD,
                     &request);
    };
    go_in_chunks(chunks, begin, [&](int chunk) {
      const Range rows = share_of(own_rows_, chunks, chunk);
      for (int source = 0; source < world_ranks; ++source)
        gemm_(product(gathered_ + (rows.begin * world_ranks + source * rows.length()) * settings_.depth, rows.length(),
                      weights_, result_ + (source * own_rows_ + rows.begin) * settings_.columns));
    });
  }
  double flops() const override { return flops_of(settings_.rows); }

 private:
  void multiply_rows(int source, const Range& rows, const float* from, const BlockShape* shape) {
    const std::int64_t first = source * own_rows_ + rows.begin;
    const GemmTile tile =
        product(from + first * settings_.depth, rows.length(), weights_, result_ + first * settings_.columns);
    shape != nullptr ? multiply_in_blocks(gemm_, tile, *shape) : gemm_(tile);
  }

  std::int64_t own_rows_;
  float *x_, *gathered_, *weights_;
};

// ---- Experts ----

// What both halves have: who has chosen whom, and the rows that pass between each pair of ranks.
class Experts : public Layer {
 protected:
  explicit Experts(const Settings& settings) : Layer(settings), tokens_(settings.rows / world_ranks) {
    choose();
    capacity_ = 1;
    std::vector<std::int64_t> first_experts;
    for (int rank = 0; rank <= world_ranks; ++rank) first_experts.push_back(rank * settings.experts);
    routing_ = Routing({.entries = entries(), .capacity = entries(), .first_experts = first_experts});
    exchange_counts();
    for (int rank = 0; rank < world_ranks; ++rank)
      capacity_ = std::max({capacity_, routing_.rows(rank), came(rank)[settings.experts]});
    MPI_Allreduce(MPI_IN_PLACE, &capacity_, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    for (std::int64_t expert = 0; expert < settings.experts; ++expert)
      weights_.push_back(draw(settings.depth, settings.columns, 2 + static_cast<std::size_t>(expert)));
    list_.assign(weights_.begin(), weights_.end());
    block_ = block_shape({.rows = capacity_, .columns = settings.columns});
  }

  std::int64_t entries() const { return tokens_ * settings_.choices; }
  // The experts of a token are different ones; the first are chosen more often where there is a skew: expert e with a
  // weight of 1 / (e + 1)^skew.
  void choose() {
    std::mt19937_64 random(static_cast<std::uint64_t>(world_rank) + 1);
    std::vector<double> weights;
    for (std::int64_t expert = 0; expert < settings_.experts * world_ranks; ++expert)
      weights.push_back(std::pow(static_cast<double>(expert + 1), -settings_.skew));
    for (std::int64_t token = 0; token < tokens_; ++token) {
      std::vector<double> left = weights;
      for (std::int64_t choice = 0; choice < settings_.choices; ++choice) {
        std::discrete_distribution<std::int32_t> one(left.begin(), left.end());
        chosen_.push_back(one(random));
        left[static_cast<std::size_t>(chosen_.back())] = 0;
        factors_.push_back(1.0f / static_cast<float>(settings_.choices));
      }
    }
  }
  // As a program must, in each run.
  void exchange_counts() {
    plait::fused::Complaint complaint;
    if (routing_.sort(chosen_.data(), complaint)) MPI_Abort(MPI_COMM_WORLD, 1);
    const auto experts = static_cast<std::size_t>(settings_.experts);
    std::vector<std::int64_t> counts(experts * static_cast<std::size_t>(world_ranks));
    MPI_Alltoall(routing_.counts(0), static_cast<int>(experts), MPI_INT64_T, counts.data(), static_cast<int>(experts),
                 MPI_INT64_T, MPI_COMM_WORLD);
    came_.assign((experts + 1) * static_cast<std::size_t>(world_ranks), 0);
    for (std::size_t source = 0; source < static_cast<std::size_t>(world_ranks); ++source)
      for (std::size_t expert = 0; expert < experts; ++expert)
        came_[source * (experts + 1) + expert + 1] =
            came_[source * (experts + 1) + expert] + counts[source * experts + expert];
  }
  // By expert of this rank, where its rows begin among a source's; and where they end.
  const std::int64_t* came(int source) const { return came_.data() + source * (settings_.experts + 1); }
  std::int64_t all_rows() const {
    std::int64_t rows = 0;
    for (int source = 0; source < world_ranks; ++source) rows += came(source)[settings_.experts];
    return rows;
  }

  // Of some of the rows of a source, which lie at `from`, and their results at `to`.
  void multiply(int source, const Range& some, const float* from, float* to, bool in_blocks) {
    for (std::int64_t expert = 0; expert < settings_.experts; ++expert) {
      const Range rows{std::max(some.begin, came(source)[expert]), std::min(some.end, came(source)[expert + 1])};
      if (rows.length() <= 0) continue;
      const std::int64_t first = rows.begin - some.begin;
      const GemmTile tile = product(from + first * settings_.depth, rows.length(),
                                    weights_[static_cast<std::size_t>(expert)], to + first * settings_.columns);
      in_blocks ? multiply_in_blocks(gemm_, tile, block_) : gemm_(tile);
    }
  }

  // Rows that a part of the whole passes: from this rank's tokens, and to its experts.
  struct Passing {
    std::vector<int> out, out_at, in, in_at;
  };
  Range part(std::int64_t rows, int chunks, int chunk) const { return share_of(rows, chunks, chunk); }
  // In elements of a row; displacements by pair, `capacity` rows apart.
  Passing passing(int chunks, int chunk, std::int64_t row) const {
    Passing made;
    for (int rank = 0; rank < world_ranks; ++rank) {
      const Range out = part(routing_.rows(rank), chunks, chunk),
                  in = part(came(rank)[settings_.experts], chunks, chunk);
      made.out.push_back(static_cast<int>(out.length() * row));
      made.out_at.push_back(static_cast<int>((rank * capacity_ + out.begin) * row));
      made.in.push_back(static_cast<int>(in.length() * row));
      made.in_at.push_back(static_cast<int>((rank * capacity_ + in.begin) * row));
    }
    return made;
  }

  plait_fused_moe shape() const {
    return {.tokens = tokens_,
            .choices = settings_.choices,
            .experts = settings_.experts,
            .depth = settings_.depth,
            .columns = settings_.columns,
            .capacity = capacity_,
            .type = PLAIT_FUSED_F32,
            .data = list_.data()};
  }

  std::int64_t tokens_, capacity_ = 1;
  std::vector<std::int32_t> chosen_;
  std::vector<float> factors_;
  std::vector<std::int64_t> came_;
  Routing routing_;
  std::vector<float*> weights_;
  std::vector<const void*> list_;
  BlockShape block_;
};

class Dispatch final : public Experts {
 public:
  explicit Dispatch(const Settings& settings)
      : Experts(settings),
        x_(draw(tokens_, settings.depth, 1)),
        sent_(make(world_ranks * capacity_, settings.depth)),
        received_(make(world_ranks * capacity_, settings.depth)),
        counts_(static_cast<std::size_t>(world_ranks * settings.experts)) {
    make_output(world_ranks * capacity_);
    const plait_fused_moe shape = this->shape();
    plait_fused_moe_dispatch_create(MPI_COMM_WORLD, &shape, output_, counts_.data(), settings.options.c_str(), &plan_);
  }
  void fused() override { plait_fused_moe_dispatch_run(plan_, x_, chosen_.data()); }
  void compute(bool in_blocks) override {
    for (int source = 0; source < world_ranks; ++source) multiply_part(source, 1, 0, in_blocks);
  }
  void exchange() override {
    exchange_counts();
    pack();
    const Passing all = passing(1, 0, settings_.depth);
    MPI_Alltoallv(sent_, all.out.data(), all.out_at.data(), MPI_FLOAT, received_, all.in.data(), all.in_at.data(),
                  MPI_FLOAT, MPI_COMM_WORLD);
  }
  void in_turn() override { exchange(), compute(false); }
  void in_chunks(int chunks) override {
    exchange_counts();
    pack();
    std::vector<Passing> parts;
    for (int chunk = 0; chunk < chunks; ++chunk) parts.push_back(passing(chunks, chunk, settings_.depth));
    const auto begin = [&](int chunk, MPI_Request& request) {
      const Passing& part = parts[static_cast<std::size_t>(chunk)];
      MPI_Ialltoallv(sent_, part.out.data(), part.out_at.data(), MPI_FLOAT, received_, part.in.data(),
                     part.in_at.data(), MPI_FLOAT, MPI_COMM_WORLD, &request);
    };
    go_in_chunks(chunks, begin, [&](int chunk) {
      for (int source = 0; source < world_ranks; ++source) multiply_part(source, chunks, chunk, false);
    });
  }
  double flops() const override { return flops_of(all_rows()); }

 private:
  void pack() {
    const auto bytes = static_cast<std::size_t>(settings_.depth) * sizeof(float);
    for (int owner = 0; owner < world_ranks; ++owner)
      for (std::int64_t row = 0; row < routing_.rows(owner); ++row)
        std::memcpy(sent_ + (owner * capacity_ + row) * settings_.depth,
                    x_ + routing_.entry(owner, row) / settings_.choices * settings_.depth, bytes);
  }
  void multiply_part(int source, int chunks, int chunk, bool in_blocks) {
    const Range rows = part(came(source)[settings_.experts], chunks, chunk);
    const std::int64_t first = source * capacity_ + rows.begin;
    multiply(source, rows, received_ + first * settings_.depth, result_ + first * settings_.columns, in_blocks);
  }

  float *x_, *sent_, *received_;
  std::vector<std::int64_t> counts_;
};

class Combine final : public Experts {
 public:
  explicit Combine(const Settings& settings)
      : Experts(settings),
        x_(draw(world_ranks * capacity_, settings.depth, 1)),
        sent_(make(world_ranks * capacity_, settings.columns)),
        received_(make(world_ranks * capacity_, settings.columns)),
        sum_(plait::fused::weighted_sum()) {
    make_output(tokens_);
    const plait_fused_moe shape = this->shape();
    plait_fused_moe_combine_create(MPI_COMM_WORLD, &shape, output_, settings.options.c_str(), &plan_);
  }
  void fused() override { plait_fused_moe_combine_run(plan_, x_, chosen_.data(), factors_.data()); }
  void compute(bool in_blocks) override {
    for (int source = 0; source < world_ranks; ++source) multiply_part(source, 1, 0, in_blocks);
    add();
  }
  void exchange() override {
    exchange_counts();
    pass();
  }
  void in_turn() override {
    exchange_counts();
    for (int source = 0; source < world_ranks; ++source) multiply_part(source, 1, 0, false);
    pass();
    add();
  }
  void in_chunks(int chunks) override {
    exchange_counts();
    std::vector<Passing> parts;
    for (int chunk = 0; chunk < chunks; ++chunk) parts.push_back(passing(chunks, chunk, settings_.columns));
    const auto begin = [&](int chunk, MPI_Request& request) {
      for (int source = 0; source < world_ranks; ++source) multiply_part(source, chunks, chunk, false);
      const Passing& part = parts[static_cast<std::size_t>(chunk)];
      MPI_Ialltoallv(sent_, part.in.data(), part.in_at.data(), MPI_FLOAT, received_, part.out.data(),
                     part.out_at.data(), MPI_FLOAT, MPI_COMM_WORLD, &request);
    };
    go_in_chunks(chunks, begin, [](int) {});
    add();
  }
  double flops() const override { return flops_of(all_rows()); }

 private:
  void pass() {
    const Passing all = passing(1, 0, settings_.columns);
    MPI_Alltoallv(sent_, all.in.data(), all.in_at.data(), MPI_FLOAT, received_, all.out.data(), all.out_at.data(),
                  MPI_FLOAT, MPI_COMM_WORLD);
  }
  void multiply_part(int source, int chunks, int chunk, bool in_blocks) {
    const Range rows = part(came(source)[settings_.experts], chunks, chunk);
    const std::int64_t first = source * capacity_ + rows.begin;
    multiply(source, rows, x_ + first * settings_.depth, sent_ + first * settings_.columns, in_blocks);
  }
  void add() {
    std::vector<const float*> rows(static_cast<std::size_t>(settings_.choices));
    for (std::int64_t token = 0; token < tokens_; ++token) {
      for (std::int64_t choice = 0; choice < settings_.choices; ++choice) {
        const Routing::Place place = routing_.place(token * settings_.choices + choice);
        rows[static_cast<std::size_t>(choice)] = received_ + (place.owner * capacity_ + place.row) * settings_.columns;
      }
      sum_({.rows = rows.data(),
            .weights = factors_.data() + token * settings_.choices,
            .count = static_cast<int>(settings_.choices),
            .columns = settings_.columns,
            .sum = result_ + token * settings_.columns});
    }
  }

  float *x_, *sent_, *received_;
  plait::fused::WeightedSum sum_;
};

// ---- The job ----

std::unique_ptr<Layer> make_layer(const Settings& settings) {
  if (settings.kind == "all_gather") return std::make_unique<AllGather>(settings);
  if (settings.kind == "dispatch") return std::make_unique<Dispatch>(settings);
  if (settings.kind == "combine") return std::make_unique<Combine>(settings);
  return std::make_unique<ReduceScatter>(settings);
}

void measure(const Settings& settings) {
  const std::unique_ptr<Layer> layer = make_layer(settings);
  std::vector<Way> ways = {{"fused", [&] { layer->fused(); }},
                           {"kernel", [&] { layer->compute(false); }},
                           {"tiles", [&] { layer->compute(true); }}};
  for (const bool plait : {false, true}) {
    const std::string whose = plait ? "plait" : "host";
    ways.push_back({whose, [&, plait] { by(plait, [&] { layer->exchange(); }); }});
    ways.push_back({"in turn, " + whose, [&, plait] { by(plait, [&] { layer->in_turn(); }); }});
  }
  std::vector<Way> chunked;
  add_chunked(chunked, settings.chunks, [&](int chunks) { layer->in_chunks(chunks); });
  ways.insert(ways.end(), chunked.begin(), chunked.end());
  const Times times = time_in_turn(ways, settings.rounds);
  layer->fused();
  bool same = layer->same_by({"in turn", [&] { layer->in_turn(); }});
  for (const Way& way : chunked) same = layer->same_by(way) && same;
  double flops = layer->flops();
  MPI_Allreduce(MPI_IN_PLACE, &flops, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  nlohmann::json line = {{"operator", settings.kind},
                         {"ranks", world_ranks},
                         {"rows", settings.rows},
                         {"depth", settings.depth},
                         {"columns", settings.columns},
                         {"experts", settings.experts},
                         {"choices", settings.choices},
                         {"skew", settings.skew},
                         {"rounds", settings.rounds},
                         {"private", settings.private_output},
                         {"kernel", layer->kernel()},
                         {"flops", flops},
                         {"plan", nlohmann::json::parse(plait_fused_describe(layer->plan()))}};
  put_times(times, line);
  line["same"] = same;
  print(line);
}

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app("fused_gemm_loop");
  app.add_option("--operator", settings.kind)
      ->check(CLI::IsMember({"reduce_scatter", "all_gather", "dispatch", "combine"}));
  app.add_option("--rows", settings.rows);
  app.add_option("--depth", settings.depth);
  app.add_option("--columns", settings.columns);
  app.add_option("--experts", settings.experts);
  app.add_option("--choices", settings.choices);
  app.add_option("--skew", settings.skew);
  app.add_option("--chunks", settings.chunks)->delimiter(',');
  app.add_option("--rounds", settings.rounds);
  app.add_option("--options", settings.options);
  app.add_flag("--private", settings.private_output);
  CLI11_PARSE(app, argc, argv);
  settings.rows = settings.rows / world_ranks * world_ranks;
  measure(settings);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return job(argc, argv, run); }
