#include "tuner/commands/simulate_fused.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "core/units.h"
#include "fused/simulation/dlrm_pass.h"
#include "plan/model/machine.h"
#include "tuner/commands/grid_options.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;
using fused::DlrmShape;
using fused::DlrmSystem;
using fused::Network;
using fused::PassComparison;
using fused::PassTimes;

constexpr int most_fused_nodes = 1024, most_points = 64;
constexpr std::int64_t most_size = std::int64_t{1} << 20;

struct PassPoint {
  DlrmShape shape;
  PassComparison times;
  double less() const { return 1 - times.fused.total_s / times.by_kernels.total_s; }
};

// ---- What the user wrote ----

Result<std::vector<std::int64_t>> parse_sizes(const std::string& option, const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (const std::string& part : split(text, ',')) {
    std::int64_t size = 0;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (error != std::errc() || rest != part.data() + part.size() || size < 1 || size > most_size)
      return Status(Code::invalid,
                    option + ": \"" + part + "\": expected a number from 1 to " + std::to_string(most_size));
    sizes.push_back(size);
  }
  return sizes;
}

struct TorusSize {
  int columns, rows;
};

Result<TorusSize> parse_torus(const std::string& text) {
  TorusSize size{};
  const char* end = text.data() + text.size();
  const auto [times, first] = std::from_chars(text.data(), end, size.columns);
  if (first == std::errc() && times != end && *times == 'x') {
    const auto [rest, second] = std::from_chars(times + 1, end, size.rows);
    if (second == std::errc() && rest == end && size.columns >= 2 && size.rows >= 2 &&
        size.columns <= most_fused_nodes && size.rows <= most_fused_nodes / size.columns)
      return size;
  }
  return Status(Code::invalid, "--torus \"" + text +
                                   "\": expected columns x rows, such as 8x16, of 2 or more each and " +
                                   std::to_string(most_fused_nodes) + " nodes at most");
}

Status check_number(const char* option, double value, double least, double greatest) {
  if (value >= least && value <= greatest) return {};
  char text[128];
  std::snprintf(text, sizeof text, "%s: %g: expected %g to %g", option, value, least, greatest);
  return {Code::invalid, text};
}

Status check(const FusedSimulationOptions& options) {
  const auto most = static_cast<double>(most_size);
  for (const auto& [option, value, least, greatest] :
       {std::tuple{"--nodes", static_cast<double>(options.nodes), 2.0, static_cast<double>(most_fused_nodes)},
        std::tuple{"--dim", static_cast<double>(options.dim), 1.0, most},
        std::tuple{"--pooling", static_cast<double>(options.pooling), 0.0, most},
        std::tuple{"--layers", static_cast<double>(options.layers), 0.0, 10000.0},
        std::tuple{"--bottom-layers", static_cast<double>(options.bottom_layers), 0.0,
                   static_cast<double>(options.layers)},
        std::tuple{"--width", static_cast<double>(options.width), 1.0, most},
        std::tuple{"--flops", options.flops, 1e6, 1e18}, std::tuple{"--launch", options.launch, 0.0, 1.0}})
    if (Status status = check_number(option, value, least, greatest); !status.ok()) return status;
  return {};
}

Result<DlrmSystem> read_system(const FusedSimulationOptions& options) {
  const Result<Machine> machine = load_machine(options.machine);
  if (!machine.ok()) return machine.status();
  const Result<double> memory = parse_rate(options.memory);
  if (!memory.ok()) return Status(Code::invalid, "--memory: " + memory.status().message());
  if (machine->levels.empty()) return Status(Code::invalid, "--machine: expected one with a level");
  const LinkLevel& level = machine->levels.front();
  const fused::WayCost way = fused::cost_between_nodes(*machine);
  const fused::LinkCost link{.latency_s = level.latency, .seconds_per_byte = way.seconds_per_byte};
  Network network = Network::crossbar(options.nodes, link);
  if (!options.torus.empty()) {
    const Result<TorusSize> size = parse_torus(options.torus);
    if (!size.ok()) return size.status();
    network = Network::torus(size->columns, size->rows, link);
  }
  return DlrmSystem{.network = network,
                    .device = {.seconds_per_byte = 1 / *memory,
                               .seconds_per_operation = 1 / options.flops,
                               .launch_s = options.launch},
                    .overhead_s = way.overhead_s};
}

Result<std::vector<DlrmShape>> read_shapes(const FusedSimulationOptions& options, int nodes) {
  const auto batches = parse_sizes("--batch", options.batches), tables = parse_sizes("--tables", options.tables);
  if (!batches.ok()) return batches.status();
  if (!tables.ok()) return tables.status();
  if (batches->size() * tables->size() > most_points)
    return Status(Code::invalid, "--batch, --tables: expected at most " + std::to_string(most_points) + " pairs");
  std::vector<DlrmShape> shapes;
  for (const std::int64_t batch : *batches) {
    if (batch % nodes != 0)
      return Status(Code::invalid, "--batch: " + std::to_string(batch) + ": expected a multiple of the " +
                                       std::to_string(nodes) + " nodes");
    for (const std::int64_t count : *tables)
      shapes.push_back({.batch = batch,
                        .tables = count,
                        .dim = options.dim,
                        .pooling = options.pooling,
                        .bottom_layers = options.bottom_layers,
                        .top_layers = options.layers - options.bottom_layers,
                        .width = options.width});
  }
  return shapes;
}

// ---- What is printed ----

std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

double mean_less(const std::vector<PassPoint>& points) {
  double sum = 0;
  for (const PassPoint& point : points) sum += point.less();
  return sum / static_cast<double>(points.size());
}

std::string nodes_text(const FusedSimulationOptions& options, int nodes) {
  return std::to_string(nodes) + " nodes, " + (options.torus.empty() ? "full crossbar" : options.torus + " torus");
}

void print(const std::vector<PassPoint>& points, const FusedSimulationOptions& options, int nodes) {
  std::cout << "a pass of training, predicted: " << nodes_text(options, nodes) << "; dim " << options.dim
            << ", pooling " << options.pooling << ", MLP " << options.layers << " x " << options.width << "\n\n"
            << padded("batch", 7) << padded("tables", 8) << padded("pooling", 11) << padded("scattering", 12)
            << padded("all-to-all", 12) << padded("MLP", 10) << padded("all-reduce", 12) << padded("by kernels", 12)
            << padded("fused", 10) << padded("less", 9) << '\n';
  for (const PassPoint& point : points)
    std::cout << padded(std::to_string(point.shape.batch), 7) << padded(std::to_string(point.shape.tables), 8)
              << padded(format_seconds(point.times.pooling_s), 11)
              << padded(format_seconds(point.times.scattering_s), 12)
              << padded(format_seconds(point.times.exchange_s), 12) << padded(format_seconds(point.times.mlp_s), 10)
              << padded(format_seconds(point.times.all_reduce_s), 12)
              << padded(format_seconds(point.times.by_kernels.total_s), 12)
              << padded(format_seconds(point.times.fused.total_s), 10) << padded(percent_text(point.less()), 9) << '\n';
  std::cout << "\non average " << percent_text(mean_less(points)) << " less\n";
}

Json json_of(const PassTimes& times) {
  return {{"forward", times.forward_s}, {"backward", times.backward_s}, {"total", times.total_s}};
}

Json json_of(const std::vector<PassPoint>& points, const FusedSimulationOptions& options, int nodes) {
  Json list = Json::array();
  for (const PassPoint& point : points)
    list.push_back({{"batch", point.shape.batch},
                    {"tables", point.shape.tables},
                    {"slices", point.times.slices},
                    {"pooling_seconds", point.times.pooling_s},
                    {"scattering_seconds", point.times.scattering_s},
                    {"all_to_all_seconds", point.times.exchange_s},
                    {"mlp_seconds", point.times.mlp_s},
                    {"all_reduce_seconds", point.times.all_reduce_s},
                    {"kernel_by_kernel_seconds", json_of(point.times.by_kernels)},
                    {"fused_seconds", json_of(point.times.fused)},
                    {"less", point.less()}});
  return {{"nodes", nodes},
          {"torus", options.torus},
          {"machine", options.machine},
          {"dim", options.dim},
          {"pooling", options.pooling},
          {"layers", options.layers},
          {"bottom_layers", options.bottom_layers},
          {"width", options.width},
          {"memory", options.memory},
          {"flops", options.flops},
          {"launch_seconds", options.launch},
          {"points", std::move(list)},
          {"mean_less", mean_less(points)}};
}

}  // namespace

void add_fused_simulation(CommandLine line, FusedSimulationOptions& options) {
  line.option("--machine", options.machine,
              "default, a100, v100 or a machine file: its nodes' latency, overhead and port")
      .shows_default();
  line.option("--nodes", options.nodes, "of one device each; ports are all that is short between them").shows_default();
  line.option("--torus", options.torus, "such as 8x16: so many nodes; each of a node's four links is as its port");
  line.option("--batch", options.batches, "samples of all nodes together, a list").shows_default();
  line.option("--tables", options.tables, "of a node, a list").shows_default();
  line.option("--dim", options.dim, "columns of a table, in f32").shows_default();
  line.option("--pooling", options.pooling, "rows of a bag").shows_default();
  line.option("--layers", options.layers, "of the MLP, bottom and top").shows_default();
  line.option("--bottom-layers", options.bottom_layers, "of these; beside the all-to-alls").shows_default();
  line.option("--width", options.width, "of a layer").shows_default();
  line.option("--memory", options.memory, "bytes a second at which a device reads rows").shows_default();
  line.option("--flops", options.flops, "operations a second of a layer's product").shows_default();
  line.option("--launch", options.launch, "seconds of a kernel's launch").shows_default();
  line.flag("--json", options.json, "print JSON");
}

Result<int> simulate_fused(const FusedSimulationOptions& options) {
  if (Status sound = check(options); !sound.ok()) return sound;
  const Result<DlrmSystem> system = read_system(options);
  if (!system.ok()) return system.status();
  const int nodes = system->network.nodes();
  const auto shapes = read_shapes(options, nodes);
  if (!shapes.ok()) return shapes.status();
  std::vector<PassPoint> points;
  for (const DlrmShape& shape : *shapes) points.push_back({.shape = shape, .times = simulate_pass(shape, *system)});
  if (options.json)
    std::cout << json_of(points, options, nodes).dump(2) << '\n';
  else
    print(points, options, nodes);
  return 0;
}

}  // namespace plait::tuner
