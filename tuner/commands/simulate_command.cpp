// plait simulate train: a measured contention model on more nodes than there are, by start-up and moved bytes (LIBRA
// section V-D; docs/overlap.md). plait simulate steps: simulate_steps.h.
// plait simulate fused: simulate_fused.h. plait simulate collective: simulate_collective.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/file.h"
#include "core/units.h"
#include "plan/overlap/overlap_planner.h"
#include "tuner/commands/command.h"
#include "tuner/commands/node_counts.h"
#include "tuner/commands/overlap_plan.h"
#include "tuner/commands/simulate_collective.h"
#include "tuner/commands/simulate_fused.h"
#include "tuner/commands/simulate_steps.h"
#include "tuner/picture/scale_picture.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_models = 16;

struct Options {
  std::vector<std::string> layers;
  std::string contention, nodes = "16..2048", reduction = "ring", machine, shares, svg;
  double computation = 0, bytes_factor = 1, forward = 0.5, latency = 0;
  int groups = 10, chunks = 150;
  bool json = false;
};

// One model on so many nodes.
struct ScalePoint {
  int nodes = 0;
  OverlapComparison comparison;
};
struct ScaleResult {
  LayerTable table;
  std::vector<ScalePoint> points;
};

std::vector<const OverlapSolution*> solutions(const OverlapComparison& comparison) {
  std::vector<const OverlapSolution*> all = {&comparison.libra};
  for (const auto* list : {&comparison.variants, &comparison.baselines})
    for (const OverlapSolution& solution : *list) all.push_back(&solution);
  return all;
}

// Which of the shares it was differs from one number of nodes to the next.
std::string curve_name(const OverlapSolution& solution) {
  const std::string share = solution.share.substr(0, solution.share.find(','));
  return share == "chosen a group" ? solution.method : solution.method + ", " + share + " share";
}

// The quickest baseline among those whose share is of that kind.
const OverlapSolution& best_baseline(const OverlapComparison& comparison, std::string_view share) {
  const OverlapSolution* best = nullptr;
  for (const OverlapSolution& solution : comparison.baselines)
    if (solution.share.starts_with(share) && (!best || solution.time.seconds < best->time.seconds)) best = &solution;
  return *best;
}

class SimulateCommand : public Command {
 public:
  std::string_view name() const override { return "simulate"; }
  std::string_view summary() const override {
    return "what is to be expected on more nodes: train, by LIBRA's reductions; steps, by joint plans; fused, with "
           "fused operators; collective, in SimGrid, beside other MPIs' algorithms";
  }

  void add_options(CommandLine line) override {
    line.require_subcommand();
    CommandLine train = line.subcommand("train", "data-parallel training, by LIBRA and by others' ways");
    train.option("--layers", options_.layers, "what a step computes and reduces; one model or several").required();
    train.option("--contention", options_.contention, "what plait overlap measure wrote").required();
    train.option("--nodes", options_.nodes, "16..2048 (doubled each time), or a list").shows_default();
    train
        .option("--reduction", options_.reduction,
                "start-up and moved bytes: ring (by formula, as the paper) or plan (of the best plan for so many "
                "nodes)")
        .shows_default();
    train.option("--machine", options_.machine, "as for plait overlap plan");
    train.option("--shares", options_.shares, "threads x duty that may be taken (default: the contention file's)");
    train.option("--computation", options_.computation, "scale the layers' seconds to so many in all");
    train.option("--bytes-factor", options_.bytes_factor, "scale the layers' bytes").shows_default();
    train.option("--forward", options_.forward, "forward computation, in multiples of the backward one")
        .shows_default();
    train.option("--latency", options_.latency, "seconds of one message (default: the contention file's)");
    train.option("--groups", options_.groups, "at most so many groups (K)").shows_default();
    train.option("--chunks", options_.chunks, "parts of the computation (Z)").shows_default();
    train.option("--svg", options_.svg, "draw the throughput of a node over the number of nodes");
    train.flag("--json", options_.json, "print JSON");
    steps_line_ =
        line.subcommand("steps", "steps of computation and collectives, planned together and by others' ways");
    add_step_simulation(*steps_line_, steps_);
    fused_line_ = line.subcommand("fused", "a pass of a recommendation model, with and without fused operators");
    add_fused_simulation(*fused_line_, fused_);
    collective_line_ =
        line.subcommand("collective", "collectives in SimGrid, by Plait's plans and by other MPIs' algorithms");
    add_collective_simulation(*collective_line_, collective_);
  }

  Result<int> run() override {
    if (steps_line_->was_given()) return simulate_steps(steps_);
    if (fused_line_->was_given()) return simulate_fused(fused_);
    if (collective_line_->was_given()) return simulate_collective(collective_);
    const auto counts = parse_nodes(options_.nodes);
    if (!counts.ok()) return counts.status();
    if (options_.layers.size() > most_models) return {Code::invalid, "--layers: expected at most 16 models"};
    const auto positive = [](double value) { return std::isfinite(value) && value >= 0; };
    if (!positive(options_.forward)) return {Code::invalid, "--forward: expected a number, 0 or more"};
    if (!positive(options_.latency)) return {Code::invalid, "--latency: expected a number of seconds, 0 or more"};
    auto contention = contention_for(options_.contention, options_.machine);
    if (!contention.ok()) return contention.status();
    if (options_.latency > 0) contention->latency = options_.latency;
    std::vector<ScaleResult> results;
    for (const std::string& path : options_.layers) {
      auto result = simulate(path, *contention, *counts);
      if (!result.ok()) return result.status();
      results.push_back(std::move(*result));
    }
    if (!options_.svg.empty())
      if (Status written = replace_file(options_.svg, scale_svg(picture(results, *contention))); !written.ok())
        return Status(written.code(), "--svg " + written.message());
    if (options_.json)
      std::cout << to_json(results).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    else
      for (const ScaleResult& result : results) print(result);
    return 0;
  }

 private:
  Result<ScaleResult> simulate(const std::string& path, const Contention& contention,
                               const std::vector<int>& counts) const {
    auto table = scaled_layers(path, options_.computation, options_.bytes_factor);
    if (!table.ok()) return table.status();
    const BackwardPass pass = backward_pass(*table);
    const GroupSearchOptions search{options_.groups, options_.chunks};
    if (const Status checked = check_search(search, pass.bytes.size()); !checked.ok()) return checked;
    const auto shares = options_.shares.empty() ? known_shares(contention) : parse_shares(options_.shares);
    if (!shares.ok()) return shares.status();
    double bytes = 0;
    for (const double size : pass.bytes) bytes += size;
    ScaleResult result{std::move(*table), {}};
    for (const int nodes : counts) {
      const auto reduction = reduction_costs({options_.reduction, nodes, options_.machine, bytes}, contention);
      if (!reduction.ok()) return reduction.status();
      const double agreement = options_.reduction == "plan" ? agreement_seconds(contention, *reduction) : 0;
      const auto model = overlap_model(contention, *shares, *reduction, agreement);
      if (!model.ok()) return model.status();
      const double startup = (*reduction)(pass.bytes.front()).startup;
      result.points.push_back({nodes, compare_overlap(pass, *model, search, startup)});
    }
    return result;
  }

  // A step of one node alone over a step of it among others: 1 is linear scaling.
  double throughput(const ScaleResult& result, const OverlapSolution& solution) const {
    const double computes = backward_pass(result.table).total(), forward = options_.forward * computes;
    return (forward + computes) / (forward + solution.time.seconds);
  }

  double speedup(const ScaleResult& result, const ScalePoint& point, const OverlapSolution& over) const {
    return throughput(result, point.comparison.libra) / throughput(result, over);
  }

  std::string row(const std::string& title, const ScaleResult& result, const char* format,
                  const std::function<double(const ScalePoint& point)>& value) const {
    std::string text = title;
    text.resize(std::max<std::size_t>(text.size(), 38), ' ');
    for (const ScalePoint& point : result.points) {
      std::array<char, 32> cell{};
      std::snprintf(cell.data(), cell.size(), format, value(point));
      text += cell.data();
    }
    return text + '\n';
  }

  void print(const ScaleResult& result) const {
    std::cout << result.table.model << ": throughput of a node; 1 is that of one node alone\n"
              << row("nodes", result, "%8.0f", [](const ScalePoint& point) { return point.nodes; });
    const auto ways = solutions(result.points.front().comparison);
    for (std::size_t i = 0; i < ways.size(); ++i)
      std::cout << row(curve_name(*ways[i]), result, "%8.3f",
                       [&](const ScalePoint& point) { return throughput(result, *solutions(point.comparison)[i]); });
    for (const auto& [share, title] : {std::pair{"best", "LIBRA over the best, with one share"},
                                       std::pair{"a library's", "LIBRA over the best, a library's share"}})
      std::cout << row(title, result, "%7.2fx", [&, of = share](const ScalePoint& point) {
        return speedup(result, point, best_baseline(point.comparison, of));
      });
    std::cout << '\n';
  }

  Json to_json(const std::vector<ScaleResult>& results) const {
    Json json = {{"reduction", options_.reduction}, {"models", Json::array()}};
    for (const ScaleResult& result : results) {
      Json points = Json::array();
      for (const ScalePoint& point : result.points) {
        Json ways = Json::array();
        for (const OverlapSolution* solution : solutions(point.comparison))
          ways.push_back({{"method", solution->method},
                          {"share", solution->share},
                          {"groups", solution->groups.size()},
                          {"backward_seconds", solution->time.seconds},
                          {"throughput", throughput(result, *solution)}});
        points.push_back(
            {{"nodes", point.nodes},
             {"over_best_share", speedup(result, point, best_baseline(point.comparison, "best"))},
             {"over_library_share", speedup(result, point, best_baseline(point.comparison, "a library's"))},
             {"solutions", std::move(ways)}});
      }
      json["models"].push_back({{"model", result.table.model}, {"points", std::move(points)}});
    }
    return json;
  }

  ScalePicture picture(const std::vector<ScaleResult>& results, const Contention& contention) const {
    ScalePicture picture{.title = "Data-parallel training, predicted",
                         .subtitle = "contention of " + contention.system + ", kernel " + contention.kernel +
                                     "; reductions: " + options_.reduction,
                         .axis = "throughput of a node; 1 is that of one node alone",
                         .nodes = {},
                         .panels = {}};
    for (const ScalePoint& point : results.front().points) picture.nodes.push_back(point.nodes);
    for (const ScaleResult& result : results) {
      ScalePanel& panel = picture.panels.emplace_back();
      panel.title = result.table.model;
      for (const OverlapSolution* solution : solutions(result.points.front().comparison))
        panel.curves.push_back({curve_name(*solution), {}});
      for (const ScalePoint& point : result.points)
        for (std::size_t i = 0; i < panel.curves.size(); ++i)
          panel.curves[i].values.push_back(throughput(result, *solutions(point.comparison)[i]));
    }
    return picture;
  }

  Options options_;
  StepSimulationOptions steps_;
  FusedSimulationOptions fused_;
  CollectiveSimulationOptions collective_;
  std::optional<CommandLine> steps_line_, fused_line_, collective_line_;
};

}  // namespace

std::unique_ptr<Command> simulate_command() { return std::make_unique<SimulateCommand>(); }

}  // namespace plait::tuner
