// Runs a training pipeline's iterations, under mpirun: each stage's computing is a timed wait that sleeps, its
// transfers are real. Every schedule in turn, with the whole tensors and with one byte a rank, beside what
// plan/pipeline predicts from the transfers' measured times. The computing is as long as makes the host's transfers of
// a micro-batch across a boundary, there and back, the given share of it.
//
//   mpirun -n 8 pipeline_run --stages 4 --micro-batches 8 --bytes 1M [--roads host,plait] [--layout sharded]
//
// Prints a JSON object a schedule. Exit status 1 where a tensor arrives with wrong contents.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "perf/layer.h"
#include "perf/pipeline_stage.h"
#include "plan/pipeline/variant.h"

namespace {

using namespace plait::perf;
using plait::plan::PipelineEstimate;
using plait::plan::PipelineVariant;

constexpr int transfers_alone = 9;
constexpr double rest_before_transfer = 0.05;  // seconds: the networks' token buckets are full again
constexpr std::size_t most_bytes = std::size_t{1} << 30;

struct Options {
  int stages = 4, micro_batches = 8, repeats = 3;
  double communication = 0.3;
  std::string bytes = "1M", roads = "host", layout = "sharded", schedules;
};

// What a run is made of; the same on all ranks.
struct Setting {
  Options options;
  int ranks = 1;  // of a stage
  std::size_t share_bytes = 1;
  std::vector<Road> roads;
  Layout layout = Layout::sharded;
  std::vector<const PipelineVariant*> variants;
};

const char* name(Road road) { return road == Road::host ? "host" : "plait"; }

struct Times {
  double host_transfer = 0, transfer = 0, one_byte_transfer = 0;  // seconds
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Forward, and twice that backward, half of it for the weights.
plait::plan::PipelineStageCost computing_of(const Setting& setting, const Times& times) {
  const double all = 2 * times.host_transfer / setting.options.communication;
  return {all / 3, all / 3, all / 3};
}

plait::plan::PipelineCase case_of(const Setting& setting, const Times& times) {
  const plait::plan::TransferCost transfer{times.transfer, 0}, one_byte{0, times.one_byte_transfer};
  plait::plan::PipelineCase question{setting.options.stages, setting.options.micro_batches, {}, {}};
  question.costs = plait::plan::even_costs(setting.options.stages, computing_of(setting, times), {transfer, transfer});
  question.one_byte_boundaries.assign(question.costs.boundaries.size(), {one_byte, one_byte});
  return question;
}

// One road's transfers, of whole tensors and of a byte a rank.
struct RoadLinks {
  RoadLinks(const Setting& setting, Road which)
      : road(which), whole(links(setting, which, setting.share_bytes)), one_byte(links(setting, which, 1)) {}

  static StageLinks links(const Setting& setting, Road road, std::size_t share_bytes) {
    const Options& options = setting.options;
    return {road, options.stages, setting.ranks, share_bytes, setting.layout, options.micro_batches};
  }

  Road road;
  StageLinks whole, one_byte;
};

class Runner {
 public:
  explicit Runner(const Setting& setting)
      : setting_(setting), host_(RoadLinks::links(setting, Road::host, setting.share_bytes)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    for (const Road road : setting.roads) roads_.emplace_back(setting, road);
  }

  std::string why() const {
    for (const RoadLinks& road : roads_)
      if (!road.whole.why().empty()) return road.whole.why();
    return "";
  }

  // The number of wrong shares.
  int run() {
    const double host = alone(host_);
    for (RoadLinks& road : roads_) {
      const Times times{host, alone(road.whole), alone(road.one_byte)};
      for (const PipelineVariant* variant : setting_.variants) {
        const auto estimate = plait::plan::estimate_pipeline(*variant, case_of(setting_, times));
        if (!estimate.ok()) {
          if (rank_ == 0) std::fprintf(stderr, "pipeline_run: %s\n", estimate.status().message().c_str());
          return 1;
        }
        measure(*variant, *estimate, times, road);
      }
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong_, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (wrong_ > 0 && rank_ == 0) std::fprintf(stderr, "pipeline_run: %d shares arrived wrong\n", wrong_);
    return wrong_;
  }

 private:
  double alone(StageLinks& links) const { return transfer_alone(links, transfers_alone, rest_before_transfer); }

  double iteration(const PipelineVariant& variant, const PipelineEstimate& estimate, const Times& times,
                   StageLinks& links) {
    double seconds =
        run_iteration(estimate.schedule.stages[static_cast<std::size_t>(links.stage())], computing_of(setting_, times),
                      estimate.schedule.weights_apart, variant.overlap, links, wrong_);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
  }

  void measure(const PipelineVariant& variant, const PipelineEstimate& estimate, const Times& times, RoadLinks& road) {
    std::vector<double> whole, one_byte;
    for (int repeat = 0; repeat < setting_.options.repeats; ++repeat) {
      whole.push_back(iteration(variant, estimate, times, road.whole));
      one_byte.push_back(iteration(variant, estimate, times, road.one_byte));
    }
    if (rank_ != 0) return;
    nlohmann::json row = {{"road", name(road.road)},
                          {"schedule", variant.name},
                          {"measured_s", median(whole)},
                          {"one_byte_measured_s", median(one_byte)}};
    row.update(predicted(estimate, times));
    std::printf("%s\n", row.dump().c_str());
    std::fflush(stdout);
  }

  nlohmann::json predicted(const PipelineEstimate& estimate, const Times& times) const {
    std::vector<int> peaks;
    for (const plait::plan::PipelineStageRun& stage : estimate.run.stages) peaks.push_back(stage.peak_activations);
    return {{"host_transfer_s", times.host_transfer},
            {"transfer_s", times.transfer},
            {"one_byte_transfer_s", times.one_byte_transfer},
            {"forward_s", computing_of(setting_, times).forward},
            {"predicted_s", estimate.run.seconds},
            {"one_byte_predicted_s", estimate.one_byte_seconds},
            {"least_s", estimate.least_seconds},
            {"weight_delays", estimate.weight_delays},
            {"peak_activations", peaks}};
  }

  const Setting& setting_;
  StageLinks host_;
  std::deque<RoadLinks> roads_;
  int rank_ = 0, wrong_ = 0;
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Lists of names; what is wrong with them.
std::string take_roads(const std::string& names, Setting& setting) {
  for (const std::string& one : split(names)) {
    if (one != "host" && one != "plait") return "--roads: expected host, plait or both";
    setting.roads.push_back(one == "host" ? Road::host : Road::plait);
  }
  return "";
}

std::string take_variants(const std::string& names, Setting& setting) {
  for (const std::string& one : split(names.empty() ? plait::plan::join_pipeline_variants(",") : names)) {
    const PipelineVariant* variant = plait::plan::pipeline_variant_named(one);
    if (variant == nullptr) return "--schedules: expected some of " + plait::plan::join_pipeline_variants();
    setting.variants.push_back(variant);
  }
  return "";
}

// What is wrong with the options; nothing where they can be used.
std::string understand(Setting& setting) {
  const Options& options = setting.options;
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto possible =
      plait::plan::pipeline_schedule({.stages = options.stages, .micro_batches = options.micro_batches});
  if (!possible.ok()) return possible.status().message();
  if (options.stages < 2 || size % options.stages != 0)
    return "--stages: expected 2 or more, and as many ranks for each";
  const auto bytes = plait::parse_bytes(options.bytes);
  setting.ranks = size / options.stages;
  if (!bytes.ok() || *bytes < static_cast<std::size_t>(setting.ranks) || *bytes > most_bytes)
    return "--bytes: expected a byte a rank to 1G";
  setting.share_bytes = *bytes / static_cast<std::size_t>(setting.ranks);
  if (std::string wrong = take_roads(options.roads, setting); !wrong.empty()) return wrong;
  if (options.layout != "sharded" && options.layout != "replicated") return "--layout: expected sharded or replicated";
  setting.layout = options.layout == "sharded" ? Layout::sharded : Layout::replicated;
  if (!(options.communication > 0 && options.communication <= 10)) return "--communication: expected up to 10";
  if (options.repeats < 1 || options.repeats > 1000) return "--repeats: expected 1 to 1000";
  return take_variants(options.schedules, setting);
}

int run(const Options& options) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Setting setting;
  setting.options = options;
  std::string wrong = understand(setting);
  std::optional<Runner> runner;
  if (wrong.empty()) wrong = runner.emplace(setting).why();
  if (!wrong.empty()) {
    if (rank == 0) std::fprintf(stderr, "pipeline_run: %s\n", wrong.c_str());
    return 2;
  }
  return runner->run() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Iterations of a training pipeline, by each schedule.");
  app.add_option("--stages", options.stages, "Of the pipeline")->capture_default_str();
  app.add_option("--micro-batches", options.micro_batches, "Of an iteration")->capture_default_str();
  app.add_option("--bytes", options.bytes, "Of a tensor, all shares of it")->capture_default_str();
  app.add_option("--communication", options.communication, "Of the computing, by the host's transfers")
      ->capture_default_str();
  app.add_option("--roads", options.roads, "host: sends and receives; plait: resharding calls; or both")
      ->capture_default_str();
  app.add_option("--layout", options.layout, "On the receiving stage: sharded or replicated")->capture_default_str();
  app.add_option("--schedules", options.schedules, "Default: all");
  app.add_option("--repeats", options.repeats, "The median counts")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  const int status = run(options);
  MPI_Finalize();
  return status;
}
