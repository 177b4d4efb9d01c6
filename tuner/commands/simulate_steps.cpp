#include "tuner/commands/simulate_steps.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/file.h"
#include "core/units.h"
#include "plan/joint/baselines.h"
#include "plan/step/step_file.h"
#include "plan/step/step_options.h"
#include "plan/step/step_scaling.h"
#include "topo/hierarchy.h"
#include "tuner/commands/grid_options.h"
#include "tuner/commands/node_counts.h"
#include "tuner/picture/scale_picture.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t longest_file = std::size_t{16} << 20, most_traces = 16;
constexpr int most_simulated_ranks = 1 << 17, most_rules = 3;
constexpr double searches_a_point = 6;  // five of them with every rail, one with the fastest alone

// A step's seconds by each way.
enum class Way { one_rail, one_rail_lifo, as_issued, lifo, schedule_only, execution_only, joint, bound, count_ };
constexpr auto ways = static_cast<std::size_t>(Way::count_);
struct NamedWay {
  const char* name;
  const char* key;
};
constexpr std::array<NamedWay, ways> named_ways = {{{"fastest rail alone, as issued", "one_rail_as_issued"},
                                                    {"fastest rail alone, last in first out", "one_rail_lifo"},
                                                    {"as issued", "as_issued"},
                                                    {"last in first out", "lifo_ideal_segments"},
                                                    {"schedule only", "schedule_and_segments"},
                                                    {"execution only", "execution_only"},
                                                    {"joint", "joint"},
                                                    {"lower bound", "lower_bound"}}};

struct StepPoint {
  int nodes = 0;
  std::array<double, ways> seconds = {};
  double of(Way way) const { return seconds[static_cast<std::size_t>(way)]; }
};
struct StepResult {
  std::string step;
  std::vector<StepPoint> points;
};

// What the joint plan is held against, in the table and in the picture.
struct Comparison {
  const char* name;
  const char* key;
  Way over;
};
constexpr std::array comparisons = {
    Comparison{"joint over fastest rail, last in first out", "over_one_rail_lifo", Way::one_rail_lifo},
    Comparison{"joint over last in first out", "over_lifo", Way::lifo},
    Comparison{"joint over as issued", "over_as_issued", Way::as_issued}};

Result<plan::step::Step> read_step(const std::string& path) {
  const auto text = read_file(path, longest_file);
  if (!text.ok()) return Status(Code::invalid, "--trace " + text.status().message());
  auto step = plan::step::parse_step(*text);
  if (!step.ok()) return Status(Code::invalid, "--trace \"" + path + "\": " + step.status().message());
  return step;
}

Result<StepPoint> simulate(const plan::step::Step& step, const Machine& machine, int nodes,
                           const StepSimulationOptions& options) {
  const Hierarchy hierarchy = Hierarchy::nodes_of(std::vector<int>(static_cast<std::size_t>(nodes), options.per_node));
  const plan::step::Step scaled = plan::step::on_ranks(step, options.ranks, hierarchy.ranks());
  const plan::step::OptionLimits limits{.depth = options.depth};
  const plan::joint::JointSearchOptions search{.seed = options.seed,
                                               .seconds = options.seconds / searches_a_point,
                                               .schedules = static_cast<long>(options.schedules)};
  const auto priced = plan::step::price_step(scaled, hierarchy, machine, limits);
  if (!priced.ok()) return priced.status();
  const auto on_one = plan::step::price_step(scaled, hierarchy, plan::step::over_fastest_rail(machine), limits);
  if (!on_one.ok()) return on_one.status();
  const plan::joint::Baselines all = plan::joint::baselines(priced->graph, search);
  return StepPoint{
      .nodes = nodes,
      .seconds = {plan::joint::as_issued(on_one->graph, search), plan::joint::last_in_first_out(on_one->graph, search),
                  all.as_issued, all.lifo, all.schedule_and_segments, all.execution_only.seconds, all.joint.seconds,
                  all.joint.bound.seconds()}};
}

// ---- What is printed ----

double speedup(const StepPoint& point, Way over) { return point.of(over) / point.of(Way::joint); }

constexpr std::size_t title_width = 44, cell_width = 11;

void print(const StepResult& result, int per_node) {
  const auto row = [&](std::string title, auto&& cell) {
    title.resize(title_width, ' ');
    for (const StepPoint& point : result.points) title += padded(cell(point), cell_width);
    std::cout << title << '\n';
  };
  std::cout << result.step << ": an iteration, predicted; " << per_node << " ranks a node, weak scaling\n";
  row("nodes", [](const StepPoint& point) { return std::to_string(point.nodes); });
  for (std::size_t way = 0; way < ways; ++way)
    row(named_ways[way].name, [&](const StepPoint& point) { return format_seconds(point.seconds[way]); });
  for (const Comparison& comparison : comparisons)
    row(comparison.name, [&](const StepPoint& point) {
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "%.2fx", speedup(point, comparison.over));
      return std::string(text.data());
    });
  std::cout << '\n';
}

Json json_of(const std::vector<StepResult>& results, const StepSimulationOptions& options, const Machine& machine) {
  Json json = {{"machine", machine.name}, {"ranks_per_node", options.per_node}, {"steps", Json::array()}};
  for (const StepResult& result : results) {
    Json points = Json::array();
    for (const StepPoint& point : result.points) {
      Json one = {{"nodes", point.nodes}};
      for (std::size_t way = 0; way < ways; ++way) one["seconds"][named_ways[way].key] = point.seconds[way];
      for (const Comparison& comparison : comparisons) one[comparison.key] = speedup(point, comparison.over);
      points.push_back(std::move(one));
    }
    json["steps"].push_back({{"step", result.step}, {"points", std::move(points)}});
  }
  return json;
}

ScalePicture picture_of(const std::vector<StepResult>& results, const StepSimulationOptions& options,
                        const Machine& machine) {
  ScalePicture picture{
      .title = "Training steps by joint plans, predicted",
      .subtitle = "machine " + machine.name + ", " + std::to_string(options.per_node) + " ranks a node, weak scaling",
      .axis = "iterations a second over those of last in first out with ideal segments, fastest rail alone",
      .nodes = {},
      .panels = {}};
  for (const StepPoint& point : results.front().points) picture.nodes.push_back(point.nodes);
  for (const StepResult& result : results) {
    ScalePanel& panel = picture.panels.emplace_back();
    panel.title = result.step;
    for (std::size_t way = 0; way < ways; ++way) {
      ScaleCurve& curve = panel.curves.emplace_back(ScaleCurve{named_ways[way].name, {}});
      for (const StepPoint& point : result.points)
        curve.values.push_back(point.of(Way::one_rail_lifo) / point.seconds[way]);
    }
  }
  return picture;
}

Status check(const StepSimulationOptions& options, const std::vector<int>& nodes) {
  if (options.traces.size() > most_traces) return {Code::invalid, "--trace: expected at most 16 files"};
  if (options.ranks < 2 || options.ranks > most_simulated_ranks)
    return {Code::invalid, "--ranks " + std::to_string(options.ranks) + ": expected 2 to " +
                               std::to_string(most_simulated_ranks) + ", those that the steps are written for"};
  if (options.per_node < 1 || options.per_node > most_simulated_ranks / nodes.back())
    return {Code::invalid, "--per-node " + std::to_string(options.per_node) + ": expected 1 to " +
                               std::to_string(most_simulated_ranks / nodes.back()) + " on " +
                               std::to_string(nodes.back()) + " nodes"};
  if (options.depth < 0 || options.depth > most_rules)
    return {Code::invalid,
            "--depth " + std::to_string(options.depth) + ": expected 0 to " + std::to_string(most_rules)};
  if (!(options.seconds > 0 && options.seconds <= 86400))
    return {Code::invalid, "--seconds: expected a time of up to a day"};
  return {};
}

}  // namespace

void add_step_simulation(CommandLine line, StepSimulationOptions& options) {
  line.option("--trace", options.traces, "steps, as for plait schedule; one or several").required();
  line.option("--machine", options.machine, "default, a100, v100 or a machine file").shows_default();
  line.option("--nodes", options.nodes, "16..1024 (doubled each time), or a list").shows_default();
  line.option("--per-node", options.per_node, "ranks of a node").shows_default();
  line.option("--ranks", options.ranks, "that the steps are written for").shows_default();
  line.option("--seconds", options.seconds, "of searching, for each step on each number of nodes").shows_default();
  line.option("--schedules", options.schedules, "a search ends after so many (0: by time alone)").shows_default();
  line.option("--seed", options.seed, "of the searches").shows_default();
  line.option("--depth", options.depth, "rules of a rewriting at most").shows_default();
  line.option("--svg", options.svg, "draw the gain over the number of nodes into this file");
  line.flag("--json", options.json, "print JSON");
}

Result<int> simulate_steps(const StepSimulationOptions& options) {
  const auto nodes = parse_nodes(options.nodes);
  if (!nodes.ok()) return nodes.status();
  if (Status sound = check(options, *nodes); !sound.ok()) return sound;
  const Result<Machine> machine = load_machine(options.machine);
  if (!machine.ok()) return machine.status();
  std::vector<StepResult> results;
  for (const std::string& path : options.traces) {
    const auto step = read_step(path);
    if (!step.ok()) return step.status();
    StepResult& result = results.emplace_back(StepResult{step->name, {}});
    for (const int count : *nodes) {
      auto point = simulate(*step, *machine, count, options);
      if (!point.ok()) return point.status();
      result.points.push_back(*point);
    }
    if (!options.json) print(result, options.per_node);
  }
  if (options.json) std::cout << json_of(results, options, *machine).dump(2) << '\n';
  if (!options.svg.empty())
    if (Status written = replace_file(options.svg, scale_svg(picture_of(results, options, *machine))); !written.ok())
      return Status(written.code(), "--svg " + written.message());
  return 0;
}

}  // namespace plait::tuner
