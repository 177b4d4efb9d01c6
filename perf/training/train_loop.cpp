// A data-parallel training loop under mpirun: each layer's gradient is reduced by MPI_Iallreduce as soon as the
// backward pass has it, beside the computation of the layers before it.
//
//   train_loop layers TABLE [--computation S] [--bytes-factor F] [--kernel compute|memory|mixed] [--steps N]
//   [--blocking] train_loop network [--widths 256,512,512,64] [--batch N] [--steps N] [--table FILE]
//
// layers: the layers of a table (perf/models), computed by a kernel of their duration. network: a real multi-layer
// perceptron; --table writes the layers that it measured. Prints one JSON object; times are the slowest rank's, medians
// over the steps after the first ones.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perf/training/paced_kernel.h"
#ifdef PLAIT_TRAINING_NETWORK
#include "perf/training/network.h"
#endif
#include "perf/layer.h"
#include "plan/overlap/layers.h"

namespace plait::perf::training {
namespace {

struct Options {
  std::string table, kernel = "compute", table_to_write;
  double computation = 0;  // seconds of the backward pass; 0: as the table says
  double bytes_factor = 1, pace = 0;
  std::vector<int> widths = {256, 512, 512, 64};
  int steps = 20, warm_up = 5, batch = 64;
  bool blocking = false;
};

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// Of one step, the slowest rank's, in seconds.
struct StepTimes {
  double step = 0, backward = 0, computation = 0;
};

StepTimes slowest(const StepTimes& own) {
  double mine[3] = {own.step, own.backward, own.computation}, all[3];
  PMPI_Allreduce(mine, all, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return {all[0], all[1], all[2]};
}

double median_of(const std::vector<StepTimes>& steps, double StepTimes::*value) {
  std::vector<double> values;
  for (const StepTimes& step : steps) values.push_back(step.*value);
  std::ranges::sort(values);
  return values[values.size() / 2];
}

nlohmann::json json_of(const std::vector<StepTimes>& steps, double samples_a_step) {
  const double backward = median_of(steps, &StepTimes::backward),
               computation = median_of(steps, &StepTimes::computation);
  return {{"steps", steps.size()},
          {"samples_per_second", samples_a_step / median_of(steps, &StepTimes::step)},
          {"backward_seconds", backward},
          {"computation_seconds", computation},
          {"exposed_seconds", std::max(0.0, backward - computation)}};
}

// Two blocking reductions, so that the communicator is set up, as a program's broadcast of its parameters would do.
void set_up() {
  std::vector<float> data(65536), sum(65536);
  for (int i = 0; i < 4; ++i)
    MPI_Allreduce(data.data(), sum.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

void reduce(float* data, std::size_t count, bool blocking, MPI_Request* request) {
  const int elements = static_cast<int>(count);
  if (!blocking) {
    MPI_Iallreduce(MPI_IN_PLACE, data, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, request);
    return;
  }
  MPI_Allreduce(MPI_IN_PLACE, data, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

// ---- Tables of layers ----

class TableTraining {
 public:
  TableTraining(LayerTable table, const Options& options)
      : table_(std::move(table)), kernel_(*kernel_named(options.kernel), options.pace), blocking_(options.blocking) {
    for (const Layer& layer : table_.layers) {
      gradients_.emplace_back(layer.bytes / sizeof(float), 1.0f);
      requests_.push_back(MPI_REQUEST_NULL);
    }
  }

  StepTimes step() {
    MPI_Barrier(MPI_COMM_WORLD);
    StepTimes times;
    const double begin = MPI_Wtime();
    for (std::size_t i = 0; i < table_.layers.size(); ++i) {
      const double before = MPI_Wtime();
      kernel_.run(table_.layers[i].seconds);
      times.computation += MPI_Wtime() - before;
      if (!gradients_[i].empty()) reduce(gradients_[i].data(), gradients_[i].size(), blocking_, &requests_[i]);
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    times.step = times.backward = MPI_Wtime() - begin;
    for (std::vector<float>& gradient : gradients_) std::ranges::fill(gradient, 1.0f);
    return times;
  }

  double pace() const { return kernel_.pieces_a_second(); }
  bool right() const {
    const double value = kernel_.result();
    return value == value;
  }

 private:
  LayerTable table_;
  PacedKernel kernel_;
  bool blocking_;
  std::vector<std::vector<float>> gradients_;
  std::vector<MPI_Request> requests_;
};

int train_table(const Options& options) {
  Result<LayerTable> table = read_layers(options.table);
  if (!table.ok()) {
    if (world_rank() == 0) std::fprintf(stderr, "train_loop: %s\n", table.status().message().c_str());
    return 2;
  }
  set_up();
  double seconds = 0;
  for (const Layer& layer : table->layers) seconds += layer.seconds;
  LayerTable used =
      scaled(std::move(*table), options.computation > 0 ? options.computation / seconds : 1, options.bytes_factor);
  for (Layer& layer : used.layers) layer.bytes = (layer.bytes + 3) / 4 * 4;
  TableTraining training(std::move(used), options);
  std::vector<StepTimes> steps;
  for (int step = 0; step < options.warm_up + options.steps; ++step) {
    const StepTimes times = slowest(training.step());
    if (step >= options.warm_up) steps.push_back(times);
  }
  nlohmann::json json = json_of(steps, 1);
  json["pace"] = training.pace();
  if (world_rank() == 0) std::printf("%s\n", json.dump().c_str());
  return training.right() ? 0 : 1;
}

// ---- The network ----

#ifdef PLAIT_TRAINING_NETWORK

class NetworkTraining {
 public:
  explicit NetworkTraining(const Options& options)
      : network_(options.widths, options.batch, 1),
        requests_(network_.layers(), MPI_REQUEST_NULL),
        seconds_(network_.layers()),
        blocking_(options.blocking) {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  StepTimes step(int number) {
    network_.take_batch(static_cast<unsigned>(number * ranks_ + world_rank()));
    MPI_Barrier(MPI_COMM_WORLD);
    StepTimes times;
    const double begin = MPI_Wtime();
    network_.forward();
    loss_ = network_.loss();
    const double backward = MPI_Wtime();
    double computed_until = backward;
    network_.backward([&](std::size_t layer) {
      const double now = MPI_Wtime();
      times.computation += seconds_[layer] = now - computed_until;
      std::vector<float>& gradient = network_.gradient(layer);
      reduce(gradient.data(), gradient.size(), blocking_, &requests_[layer]);
      computed_until = MPI_Wtime();
    });
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    times.backward = MPI_Wtime() - backward;
    network_.update(0.05f / static_cast<float>(ranks_));
    times.step = MPI_Wtime() - begin;
    return times;
  }

  double loss() const { return loss_; }

  // As measured in the last step: its computation was alone where nothing was reduced beside it.
  LayerTable table() {
    LayerTable table{.model = "multi-layer perceptron", .layers = {}};
    for (std::size_t layer = network_.layers(); layer-- > 0;)
      table.layers.push_back({.name = "dense" + std::to_string(layer + 1),
                              .bytes = network_.gradient(layer).size() * sizeof(float),
                              .seconds = seconds_[layer]});
    return table;
  }

 private:
  Network network_;
  std::vector<MPI_Request> requests_;
  std::vector<double> seconds_;
  bool blocking_;
  int ranks_ = 1;
  double loss_ = 0;
};

int train_network(const Options& options) {
  set_up();
  NetworkTraining training(options);
  std::vector<StepTimes> steps;
  for (int step = 0; step < options.warm_up + options.steps; ++step) {
    const StepTimes times = slowest(training.step(step));
    if (step >= options.warm_up) steps.push_back(times);
  }
  double own = training.loss(), loss = 0;
  PMPI_Reduce(&own, &loss, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world_rank() != 0) return 0;
  nlohmann::json json = json_of(steps, options.batch);
  char text[64];
  std::snprintf(text, sizeof text, "%a", loss);  // all of its bits
  json["loss"] = loss;
  json["loss_bits"] = text;
  std::printf("%s\n", json.dump().c_str());
  if (options.table_to_write.empty()) return 0;
  std::FILE* file = std::fopen(options.table_to_write.c_str(), "w");
  const std::string table = layers_json(training.table());
  const bool written = file != nullptr && std::fwrite(table.data(), 1, table.size(), file) == table.size();
  return (file == nullptr || std::fclose(file) == 0) && written ? 0 : 1;
}

#else

int train_network(const Options&) {
  if (world_rank() == 0) std::fprintf(stderr, "train_loop: built without OpenBLAS (libopenblas-serial-dev)\n");
  return 2;
}

#endif

}  // namespace
}  // namespace plait::perf::training

int main(int argc, char** argv) {
  plait::perf::training::Options options;
  CLI::App app("A data-parallel training loop.");
  app.require_subcommand(1);
  CLI::App* layers = app.add_subcommand("layers", "The layers of a table");
  layers->add_option("TABLE", options.table, "A file of perf/models")->required();
  layers->add_option("--computation", options.computation, "Seconds of the backward pass")->check(CLI::PositiveNumber);
  layers->add_option("--bytes-factor", options.bytes_factor, "Times the table's bytes")->check(CLI::PositiveNumber);
  layers->add_option("--pace", options.pace, "Pieces of the kernel a second, as another job printed them")
      ->check(CLI::PositiveNumber);
  layers->add_option("--kernel", options.kernel, "What computes")->check(CLI::IsMember({"compute", "memory", "mixed"}));
  CLI::App* network = app.add_subcommand("network", "A multi-layer perceptron");
  network->add_option("--widths", options.widths, "Input, hidden layers, output")->delimiter(',');
  network->add_option("--batch", options.batch, "Samples of a rank")->check(CLI::PositiveNumber);
  network->add_option("--table", options.table_to_write, "Write the layers as measured");
  for (CLI::App* command : {layers, network}) {
    command->add_option("--steps", options.steps, "That count")->check(CLI::PositiveNumber);
    command->add_option("--warm-up", options.warm_up, "Before them")->check(CLI::NonNegativeNumber);
    command->add_flag("--blocking", options.blocking, "Reduce by MPI_Allreduce");
  }
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  const int status =
      layers->parsed() ? plait::perf::training::train_table(options) : plait::perf::training::train_network(options);
  MPI_Finalize();
  return status;
}
