// plait place: the matrices of a grid by the predicted time of its reductions, and how to place the ranks so. Output:
// docs/p2.md.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/units.h"
#include "tuner/commands/command.h"
#include "tuner/commands/grid_options.h"
#include "tuner/commands/grid_programs.h"
#include "tuner/text/launch_placement.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t most_placed_ranks = 1 << 22;

struct PlaceOptions {
  GridOptions grid;
  std::string weights;
  std::string rankfile;
  std::string hosts;
  std::optional<int> matrix;  // of the list, from 1
  bool map_by = false;
};

// One reduction of the job, and its share of the time.
struct Reduction {
  std::vector<int> axes;
  double weight = 1;
};

// Of one reduction on one matrix; an empty program where a group has one rank.
struct ReductionTimes {
  PricedProgram best;
  double allreduce_seconds = 0;
};

struct PlacedMatrix {
  ParallelismMatrix matrix;
  std::vector<ReductionTimes> reductions;
  double seconds = 0;            // weighted, of the best programs
  double allreduce_seconds = 0;  // weighted, of plain all-reduces
  double speedup() const { return seconds > 0 ? allreduce_seconds / seconds : 1; }
};

struct PlaceTask {
  PlacedGrid grid;
  std::vector<Reduction> reductions;
  std::vector<HostSlots> hosts;  // of --hosts; else made up for --map-by
  int ranks_per_host = 1;
};

// ---- the command line

// "0:0.7"
Result<Reduction> parse_weight(const std::string& word) {
  const Status refused(Code::invalid,
                       "--weights: \"" + word + "\": expected axis:weight with a positive weight, such as 0:0.7");
  int axis = 0;
  double weight = 0;
  const char* end = word.data() + word.size();
  const auto [colon, axis_error] = std::from_chars(word.data(), end, axis);
  if (axis_error != std::errc() || colon == end || *colon != ':') return refused;
  const auto [rest, error] = std::from_chars(colon + 1, end, weight);
  if (error != std::errc() || rest != end || !std::isfinite(weight) || weight <= 0) return refused;
  return Reduction{{axis}, weight};
}

Result<std::vector<Reduction>> parse_weights(const std::string& list, int axes) {
  std::vector<Reduction> reductions;
  for (const std::string& word : split(list, ',')) {
    auto parsed = parse_weight(word);
    if (!parsed.ok()) return parsed.status();
    const int axis = parsed->axes.front();
    if (axis < 0 || axis >= axes) {
      return {Code::invalid, "--weights: axis " + std::to_string(axis) + ": expected 0 to " + std::to_string(axes - 1)};
    }
    const auto same = [&](const Reduction& other) { return other.axes == parsed->axes; };
    if (std::any_of(reductions.begin(), reductions.end(), same)) {
      return {Code::invalid, "--weights: axis " + std::to_string(axis) + " is named twice"};
    }
    reductions.push_back(std::move(*parsed));
  }
  return reductions;
}

// With weights, an axis of --reduce without one is a mistake.
Status check_weighted(const std::vector<int>& reduce, const std::vector<Reduction>& reductions) {
  for (const int axis : reduce) {
    const auto is_axis = [&](const Reduction& reduction) { return reduction.axes.front() == axis; };
    if (std::any_of(reductions.begin(), reductions.end(), is_axis)) continue;
    return {Code::invalid, "--weights: axis " + std::to_string(axis) + " of --reduce has no weight"};
  }
  return {};
}

Status understand_hosts(const PlaceOptions& options, PlaceTask& task) {
  const std::vector<int>& system = task.grid.request.system;
  const auto ranks = std::accumulate(system.begin(), system.end(), std::int64_t{1}, std::multiplies<>());
  const bool places = !options.rankfile.empty() || !options.hosts.empty() || options.map_by;
  if (places && ranks > most_placed_ranks) {
    return {Code::invalid, "--system: " + grouped(static_cast<std::uint64_t>(ranks)) + " ranks; expected at most " +
                               grouped(most_placed_ranks) + " for --rankfile, --hosts and --map-by"};
  }
  if (!options.rankfile.empty() && options.hosts.empty()) {
    return {Code::invalid, "--rankfile: expected --hosts as well"};
  }
  if (!options.hosts.empty()) {
    auto hosts = parse_hosts(options.hosts);
    if (!hosts.ok()) return hosts.status();
    task.hosts = std::move(*hosts);
  } else if (places) {  // without names, each group of the outermost level is a host
    const int slots = static_cast<int>(ranks / system.front());
    for (int host = 0; host < system.front(); ++host) task.hosts.push_back({"node" + std::to_string(host), slots});
  } else {
    return {};
  }
  const auto each = ranks_per_host(system, task.hosts);
  if (each.ok()) task.ranks_per_host = *each;
  return each.status();
}

Result<PlaceTask> understand(const PlaceOptions& options) {
  PlaceTask task;
  GridOptions grid_options = options.grid;
  if (grid_options.reduce.empty()) {
    if (options.weights.empty()) return {Code::invalid, "expected --reduce or --weights"};
    grid_options.reduce = "0";  // the weights name the axes
  }
  auto grid = understand_grid(grid_options);
  if (!grid.ok()) return grid.status();
  task.grid = std::move(*grid);
  task.reductions = {{task.grid.request.reduce, 1}};
  if (!options.weights.empty()) {
    auto weighted = parse_weights(options.weights, static_cast<int>(task.grid.request.axes.size()));
    if (!weighted.ok()) return weighted.status();
    if (!options.grid.reduce.empty()) {
      if (Status status = check_weighted(task.grid.request.reduce, *weighted); !status.ok()) return status;
    }
    task.reductions = std::move(*weighted);
  }
  const int matrices = static_cast<int>(task.grid.matrices.size());
  if (options.matrix && (*options.matrix < 1 || *options.matrix > matrices)) {
    return {Code::invalid,
            "--matrix " + std::to_string(*options.matrix) + ": expected 1 to " + std::to_string(matrices)};
  }
  if (Status status = understand_hosts(options, task); !status.ok()) return status;
  return task;
}

// ---- the predictions

// Groups that span the same levels of the system cost the same.
class TimesBySpan {
 public:
  explicit TimesBySpan(const PlacedGrid& grid) : grid_(grid) {}

  Result<ReductionTimes> times(const ParallelismMatrix& matrix, const std::vector<int>& axes) {
    std::vector<std::pair<int, int>> key;
    for (const GroupLevel& level : group_levels(matrix, axes)) key.emplace_back(level.cardinality, level.system_level);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    const GridGroup group = group_of(grid_, matrix, axes, Collective::allreduce);
    auto best = best_program(grid_, group);
    if (!best.ok()) return best.status();
    const auto plain = plain_allreduce(grid_, group);
    if (!plain.ok()) return plain.status();
    ReductionTimes times{std::move(*best), plain->seconds};
    known_.emplace(std::move(key), times);
    return times;
  }

 private:
  const PlacedGrid& grid_;
  std::map<std::vector<std::pair<int, int>>, ReductionTimes> known_;
};

// Best first; in the order of the matrices where times are equal.
Result<std::vector<PlacedMatrix>> predict(const PlaceTask& task) {
  TimesBySpan spans(task.grid);
  std::vector<PlacedMatrix> placed;
  for (const ParallelismMatrix& matrix : task.grid.matrices) {
    PlacedMatrix entry{matrix, {}, 0, 0};
    for (const Reduction& reduction : task.reductions) {
      auto times = spans.times(matrix, reduction.axes);
      if (!times.ok()) return times.status();
      entry.seconds += reduction.weight * times->best.seconds;
      entry.allreduce_seconds += reduction.weight * times->allreduce_seconds;
      entry.reductions.push_back(std::move(*times));
    }
    placed.push_back(std::move(entry));
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const PlacedMatrix& one, const PlacedMatrix& other) { return one.seconds < other.seconds; });
  return placed;
}

// ---- the output

std::string fixed(double value, int decimals) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, decimals);
  return end.ec == std::errc() ? std::string(text, end.ptr) : "inf";
}

std::string program_text(const ReductionTimes& times) {
  if (times.best.program.instructions.empty()) return "nothing to do";
  return text(times.best.program) + " x" + std::to_string(times.best.chunks);
}

std::string reductions_text(const std::vector<Reduction>& reductions) {
  std::string result;
  for (const Reduction& reduction : reductions) {
    result += (result.empty() ? "over axes " : " and ") + text(reduction.axes);
    if (reductions.size() > 1 || reduction.weight != 1) {
      char weight[32];
      std::snprintf(weight, sizeof weight, " x %g", reduction.weight);
      result += weight;
    }
  }
  return result;
}

void print_table(const PlaceTask& task, const std::vector<PlacedMatrix>& placed) {
  std::cout << "system " << text(task.grid.request.system) << ", axes " << text(task.grid.request.axes)
            << ", allreduce " << reductions_text(task.reductions) << ", "
            << format_bytes(static_cast<std::size_t>(task.grid.bytes)) << ", machine " << task.grid.machine.name
            << "\n\n";
  std::size_t width = 6;
  for (const PlacedMatrix& entry : placed) width = std::max(width, text(entry.matrix).size());
  std::string heading = "matrix";
  heading.resize(width, ' ');
  std::cout << "   #  " << heading << "        best   allreduce   speedup  program\n";
  for (std::size_t index = 0; index < placed.size(); ++index) {
    const PlacedMatrix& entry = placed[index];
    std::string matrix = text(entry.matrix);
    matrix.resize(width, ' ');
    std::string programs;
    for (const ReductionTimes& times : entry.reductions)
      programs += (programs.empty() ? "" : " | ") + program_text(times);
    std::cout << padded(std::to_string(index + 1), 4) << "  " << matrix << padded(format_seconds(entry.seconds), 12)
              << padded(format_seconds(entry.allreduce_seconds), 12) << padded(fixed(entry.speedup(), 2) + 'x', 10)
              << "  " << programs << '\n';
  }
}

Json times_json(const ReductionTimes& times, const Reduction& reduction) {
  Json algorithms = Json::array();
  for (const auto& instruction : times.best.program.instructions) algorithms.push_back(instruction.algorithm->name);
  return {{"axes", reduction.axes},
          {"weight", reduction.weight},
          {"text", text_without_algorithms(times.best.program)},
          {"algorithms", std::move(algorithms)},
          {"chunks", times.best.chunks},
          {"seconds", times.best.seconds},
          {"allreduce_seconds", times.allreduce_seconds}};
}

Json table_json(const PlaceTask& task, const std::vector<PlacedMatrix>& placed) {
  Json json = grid_json(task.grid);
  json.erase("reduce");  // each reduction names its axes
  json["matrices"] = Json::array();
  for (const PlacedMatrix& entry : placed) {
    Json reductions = Json::array();
    for (std::size_t index = 0; index < entry.reductions.size(); ++index) {
      reductions.push_back(times_json(entry.reductions[index], task.reductions[index]));
    }
    json["matrices"].push_back({{"matrix", entry.matrix.rows},
                                {"seconds", entry.seconds},
                                {"allreduce_seconds", entry.allreduce_seconds},
                                {"speedup", entry.speedup()},
                                {"reductions", std::move(reductions)}});
  }
  return json;
}

// How a launcher places the ranks as one matrix wants them.
struct Launch {
  ParallelismMatrix matrix;
  std::vector<int> devices;  // of each rank
  LaunchOptions options;
};

void print_launch(const PlaceTask& task, const Launch& launch) {
  std::cout << "\nplacing " << text(launch.matrix) << " on " << plural(task.hosts.size(), "host") << " of "
            << plural(static_cast<std::uint64_t>(task.ranks_per_host), "rank") << ":\n";
  if (!launch.options.mpirun.empty()) {
    std::cout << "mpirun " << launch.options.mpirun << "\nsrun " << launch.options.slurm << '\n';
    return;
  }
  std::cout << "mpirun: no --map-by does it; a rankfile is needed (--rankfile FILE --hosts ...)\n"
            << "srun --distribution=arbitrary";
  if (!launch.options.cpu_bind.empty()) std::cout << " --cpu-bind=map_cpu:" << launch.options.cpu_bind;
  std::cout << ", with SLURM_HOSTFILE naming a file of these lines:\n";
  for (const std::string& host : host_of_ranks(launch.devices, task.hosts, task.ranks_per_host)) {
    std::cout << host << '\n';
  }
}

Json launch_json(const PlaceTask& task, const Launch& launch) {
  const auto or_null = [](const std::string& option) { return option.empty() ? Json() : Json(option); };
  return {{"matrix", launch.matrix.rows},
          {"mpirun", or_null(launch.options.mpirun)},
          {"slurm", launch.options.slurm.empty() ? "--distribution=arbitrary" : launch.options.slurm},
          {"cpu_bind", or_null(launch.options.cpu_bind)},
          {"hosts", host_of_ranks(launch.devices, task.hosts, task.ranks_per_host)}};
}

class PlaceCommand : public Command {
 public:
  std::string_view name() const override { return "place"; }
  std::string_view summary() const override {
    return "order the placements of a grid by the predicted time of its reductions";
  }

  void add_options(CommandLine line) override {
    add_grid_options(line, options_.grid);
    line.option("--reduce", options_.grid.reduce, "the axes to reduce over at once, such as 0 or 0,2");
    line.option("--weights", options_.weights, "several reductions, one an axis, such as 0:0.7,1:0.3");
    line.option("--matrix", options_.matrix, "of the list, for --rankfile and --map-by; default: 1, the best");
    line.option("--rankfile", options_.rankfile, "write an Open MPI rankfile that places the ranks so");
    line.option("--hosts", options_.hosts, "the hosts and their slots, such as a:16,b:16");
    line.flag("--map-by", options_.map_by, "print the options of mpirun and srun that place the ranks so");
  }

  Result<int> run() override {
    const auto task = understand(options_);
    if (!task.ok()) return task.status();
    const auto placed = predict(*task);
    if (!placed.ok()) return placed.status();
    std::optional<Launch> launch;
    if (!task->hosts.empty())
      launch = launch_of(*task, (*placed)[static_cast<std::size_t>(options_.matrix.value_or(1) - 1)]);
    if (!options_.rankfile.empty()) {
      const Status written =
          replace_file(options_.rankfile, rankfile(launch->devices, task->hosts, task->ranks_per_host));
      if (!written.ok()) return Status(written.code(), "--rankfile " + written.message());
    }
    if (options_.grid.json) return print_json(*task, *placed, launch);
    print_table(*task, *placed);
    if (options_.map_by) print_launch(*task, *launch);
    return 0;
  }

 private:
  static Launch launch_of(const PlaceTask& task, const PlacedMatrix& placed) {
    Launch launch{placed.matrix, devices_of_grid(task.grid.request.system, task.grid.request.axes, placed.matrix), {}};
    launch.options = launch_options(launch.devices, task.ranks_per_host);
    return launch;
  }

  int print_json(const PlaceTask& task, const std::vector<PlacedMatrix>& placed,
                 const std::optional<Launch>& launch) const {
    Json json = table_json(task, placed);
    if (options_.map_by) json["placement"] = launch_json(task, *launch);
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    return 0;
  }

  PlaceOptions options_;
};

}  // namespace

std::unique_ptr<Command> place_command() { return std::make_unique<PlaceCommand>(); }

}  // namespace plait::tuner
