#include "tuner/text/placement_advice.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "plan/synthesis/group_model.h"
#include "plan/synthesis/level_state.h"
#include "plan/synthesis/placement.h"
#include "plan/synthesis/search.h"

namespace plait::tuner {
namespace {

// What takes ten seconds with thousands of ranks; check() takes no more dimensions.
constexpr std::size_t most_flows = 1024, most_dimensions = 8;
constexpr double least_gain = 1.2;
constexpr double most_claimed = 10;       // beyond it, the figure depends on a node's memory, which nobody measured
constexpr double simple_may_cost = 1.02;  // a mapping that mpirun knows by name is worth as much

struct Flow {
  std::vector<int> dimensions;  // of the grid that are reduced over
  Collective collective;
  double calls, bytes;  // bytes: of the whole vector
};

struct PlacedJob {
  std::vector<int> system;  // nodes, ranks of each
  std::vector<int> dims;
  std::vector<Flow> flows;
  const Machine* machine;
  Launcher launcher;
};

bool modelled(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::bcast:
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
      return true;
    default:
      return false;
  }
}

// Calls of these have the size of one rank's segment.
bool sized_by_segment(Collective collective) {
  return collective == Collective::allgather || collective == Collective::reduce_scatter_block;
}

// ---- The job ----

std::vector<int> system_of(const std::vector<int>& nodes) {
  std::map<int, int> ranks_on;
  for (const int node : nodes) ++ranks_on[node];
  const auto same = [&](const auto& entry) { return entry.second == ranks_on.begin()->second; };
  if (ranks_on.empty() || !std::ranges::all_of(ranks_on, same)) return {};
  return {static_cast<int>(ranks_on.size()), ranks_on.begin()->second};
}

Flow flow_of(const GridTraffic& traffic, const std::vector<int>& dims) {
  Flow flow{{}, traffic.collective, traffic.calls, traffic.bytes};
  std::int64_t members = 1;
  for (const GridAxis& axis : traffic.axes) {
    members *= axis.size;
    for (const int dimension : dimensions_of(dims, axis)) flow.dimensions.push_back(dimension);
  }
  std::ranges::sort(flow.dimensions);
  if (sized_by_segment(traffic.collective)) flow.bytes *= static_cast<double>(members);
  return flow;
}

Status no_gain(const std::string& because) { return {Code::unsupported, because}; }

// Fails (unsupported) with why no placement can be better, or none can be compared.
Result<PlacedJob> understand(const JobPlacement& placement) {
  PlacedJob job{.system = system_of(placement.nodes),
                .dims = {},
                .flows = {},
                .machine = &placement.machine,
                .launcher = placement.launcher};
  if (placement.nodes.empty()) return no_gain("where the ranks are is not known");
  if (job.system.empty()) return no_gain("the nodes have different numbers of ranks");
  if (job.system[0] == 1) return no_gain("all ranks are on one node");
  if (job.system[1] == 1) return no_gain("each node has one rank");
  std::vector<GridAxis> axes;
  for (const GridTraffic& traffic : placement.traffic)
    axes.insert(axes.end(), traffic.axes.begin(), traffic.axes.end());
  const auto dims = grid_of(std::ssize(placement.nodes), axes);
  if (!dims.has_value()) return no_gain("the communicators are the rows of no one process grid");
  if (dims->size() < 2) return no_gain("no communicator is a row of a process grid");
  job.dims = *dims;
  for (const GridTraffic& traffic : placement.traffic)
    if (modelled(traffic.collective) && !traffic.axes.empty()) job.flows.push_back(flow_of(traffic, job.dims));
  std::erase_if(job.flows, [](const Flow& flow) { return flow.bytes == 0; });
  if (job.flows.empty()) return no_gain("the rows of the grid moved nothing that depends on it");
  if (job.flows.size() > most_flows || job.dims.size() > most_dimensions)
    return no_gain("the grid has more than " + std::to_string(most_dimensions) + " dimensions, or more than " +
                   std::to_string(most_flows) + " kinds of calls");
  if (const Status fits = check({job.system, job.dims, job.flows.front().dimensions}); !fits.ok())
    return no_gain(fits.message());
  return job;
}

// ---- Where the ranks are ----

std::int64_t stride_of(const PlacedJob& job, std::size_t dimension) {
  const auto inner = job.dims.begin() + static_cast<std::ptrdiff_t>(dimension) + 1;
  return std::accumulate(inner, job.dims.end(), std::int64_t{1}, std::multiplies<>());
}

// Which of a dimension's coordinates share a node where all others are 0, as numbers from 0 on; empty when not equally
// many do.
std::vector<int> coordinates_together(const PlacedJob& job, std::size_t dimension, const std::vector<int>& nodes) {
  std::map<int, int> numbers;
  std::vector<int> together, count;
  for (int coordinate = 0; coordinate < job.dims[dimension]; ++coordinate) {
    const int node = nodes[static_cast<std::size_t>(coordinate * stride_of(job, dimension))];
    const int number = numbers.try_emplace(node, std::ssize(numbers)).first->second;
    if (number == std::ssize(count)) count.push_back(0);
    ++count[static_cast<std::size_t>(number)];
    together.push_back(number);
  }
  const bool equal = std::ranges::all_of(count, [&](int one) { return one == count.front(); });
  return equal ? together : std::vector<int>();
}

// The matrix of a placement: two ranks are on one node exactly when each of their coordinates is together. Which of a
// dimension's coordinates those are (0 1 | 2 3, or 0 2 | 1 3) changes no group's shape. Nothing for other placements.
std::optional<ParallelismMatrix> matrix_of(const PlacedJob& job, const std::vector<int>& nodes) {
  ParallelismMatrix matrix;
  std::vector<int> home(nodes.size(), 0);  // the node that the coordinates speak of
  int homes = 1;
  for (std::size_t d = 0; d < job.dims.size(); ++d) {
    const std::vector<int> together = coordinates_together(job, d, nodes);
    if (together.empty()) return std::nullopt;
    const int parts = std::ranges::max(together) + 1;
    matrix.rows.push_back({parts, job.dims[d] / parts});
    homes *= parts;
    if (job.system[0] % homes != 0) return std::nullopt;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank)
      home[rank] = home[rank] * parts +
                   together[rank / static_cast<std::size_t>(stride_of(job, d)) % static_cast<std::size_t>(job.dims[d])];
  }
  std::map<int, int> node_at;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    if (node_at.try_emplace(home[rank], nodes[rank]).first->second != nodes[rank]) return std::nullopt;
  return homes == job.system[0] ? std::optional(matrix) : std::nullopt;
}

std::vector<int> mapped_by_slot(const PlacedJob& job) {
  std::vector<int> nodes(static_cast<std::size_t>(job.system[0]) * static_cast<std::size_t>(job.system[1]));
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) nodes[rank] = static_cast<int>(rank) / job.system[1];
  return nodes;
}

std::vector<int> mapped_by_node(const PlacedJob& job) {
  std::vector<int> nodes = mapped_by_slot(job);
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) nodes[rank] = static_cast<int>(rank) % job.system[0];
  return nodes;
}

bool crosses_nodes(const Flow& flow, const ParallelismMatrix& matrix) {
  return std::ranges::any_of(flow.dimensions, [&](int d) { return matrix.rows[static_cast<std::size_t>(d)][0] > 1; });
}

// ---- What it costs ----

// Seconds of one call.
double call_seconds(const PlacedJob& job, const Flow& flow, const ParallelismMatrix& matrix) {
  const GroupModel model = group_model(*job.machine, {job.system, job.dims, flow.dimensions}, matrix);
  if (model.levels.empty()) return 0;
  const SynthesisTask task = task_of(flow.collective, static_cast<int>(model.levels.size()), 0, false);
  SearchOptions options;
  options.bytes = flow.bytes;
  const std::vector<PricedProgram> best = cheapest_programs(task, model, options, 1);
  return best.empty() ? 0 : best.front().seconds;
}

struct Option {
  ParallelismMatrix matrix;
  std::vector<double> flows_seconds;  // by flow, of all its calls
  double seconds = 0;                 // of all flows
};

std::vector<Option> options_of(const PlacedJob& job) {
  std::vector<Option> options;
  for (const ParallelismMatrix& matrix : parallelism_matrices(job.system, job.dims)) {
    Option option{.matrix = matrix, .flows_seconds = {}};
    for (const Flow& flow : job.flows) {
      option.flows_seconds.push_back(flow.calls * call_seconds(job, flow, matrix));
      option.seconds += option.flows_seconds.back();
    }
    options.push_back(std::move(option));
  }
  return options;
}

// The placement of ranks on these nodes; nullptr when it is none of them.
const Option* find(const PlacedJob& job, const std::vector<Option>& options, const std::vector<int>& nodes) {
  const std::optional<ParallelismMatrix> matrix = matrix_of(job, nodes);
  if (!matrix.has_value()) return nullptr;
  const auto found = std::ranges::find(options, *matrix, &Option::matrix);
  return found != options.end() ? &*found : nullptr;
}

// ---- What is said ----

std::string number(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

// "axis 0 (4 ranks, stride 2) crosses nodes", "axes 0 and 2 (4 x 2 ranks) cross nodes"
std::string crossing(const PlacedJob& job, const Flow& flow) {
  std::string names, sizes;
  for (const int dimension : flow.dimensions) {
    names += (names.empty() ? "" : " and ") + std::to_string(dimension);
    sizes += (sizes.empty() ? "" : " x ") + std::to_string(job.dims[static_cast<std::size_t>(dimension)]);
  }
  if (flow.dimensions.size() > 1) return "axes " + names + " (" + sizes + " ranks) cross nodes";
  const std::int64_t stride = stride_of(job, static_cast<std::size_t>(flow.dimensions.front()));
  return "axis " + names + " (" + sizes + " ranks, stride " + std::to_string(stride) + ") crosses nodes";
}

std::string comma_separated(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}

// The bytes reduced over each dimension, as shares of all: "0:0.7,1:0.3". Those over several count for each in part.
std::string weights(const PlacedJob& job) {
  std::vector<double> bytes(job.dims.size(), 0.0);
  for (const Flow& flow : job.flows)
    for (const int d : flow.dimensions)
      bytes[static_cast<std::size_t>(d)] += flow.calls * flow.bytes / static_cast<double>(flow.dimensions.size());
  const double all = std::accumulate(bytes.begin(), bytes.end(), 0.0);
  std::string text;
  for (std::size_t d = 0; d < bytes.size(); ++d)
    if (bytes[d] >= 0.001 * all)
      text += (text.empty() ? "" : ",") + std::to_string(d) + ":" + number("%.3g", bytes[d] / all);
  return text;
}

// The size of a call on which most bytes travel.
double typical_bytes(const PlacedJob& job) {
  const auto all = [](const Flow& flow) { return flow.calls * flow.bytes; };
  return std::ranges::max(job.flows, {}, all).bytes;
}

std::string rankfile(const PlacedJob& job) {
  return "a rankfile from `plait place --system " + comma_separated(job.system) + " --axes " +
         comma_separated(job.dims) + " --weights " + weights(job) + " --bytes " +
         number("%.0f", std::max(typical_bytes(job), 1.0)) + " --hosts HOST:" + std::to_string(job.system[1]) +
         ",... --rankfile FILE`";
}

struct Way {
  const Option* option;
  std::string words;
};

// The best placement; one that mpirun knows by name where that is as good.
Way best_way(const PlacedJob& job, const std::vector<Option>& options) {
  const Option* best = &*std::ranges::min_element(options, {}, &Option::seconds);
  const std::array<Way, 2> simple = {{
      {find(job, options, mapped_by_slot(job)), "mapping by slot (" + by_slot(job.launcher, job.system[1]) + ")"},
      {find(job, options, mapped_by_node(job)), "mapping by node (" + by_node(job.launcher) + ")"},
  }};
  for (const Way& way : simple)
    if (way.option != nullptr && way.option->seconds <= best->seconds * simple_may_cost) return way;
  return {best, rankfile(job)};
}

std::string faster(double times) {
  if (times > most_claimed) return "more than " + number("%.0f", most_claimed) + "x faster";
  return number("%.1f", times) + "x faster";
}

// The flow that loses most by where the ranks are now.
const Flow* culprit(const PlacedJob& job, const Option& now, const Option& best) {
  const Flow* worst = nullptr;
  double most = 0;
  for (std::size_t f = 0; f < job.flows.size(); ++f) {
    const double lost = now.flows_seconds[f] - best.flows_seconds[f];
    if (lost <= most || !crosses_nodes(job.flows[f], now.matrix)) continue;
    most = lost;
    worst = &job.flows[f];
  }
  return worst;
}

}  // namespace

PlacementAdvice placement_advice(const JobPlacement& placement) {
  const auto silent = [](const std::string& because, double times) {
    return PlacementAdvice{.better = false, .times = times, .sentence = "placement: nothing to gain: " + because};
  };
  const Result<PlacedJob> job = understand(placement);
  if (!job.ok()) return silent(job.status().message(), 1);
  const std::vector<Option> options = options_of(*job);
  const Option* now = find(*job, options, placement.nodes);
  if (now == nullptr)
    return silent("the ranks of the grid are not dealt out to the nodes in equal parts of its axes", 1);
  const Way way = best_way(*job, options);
  const double times = way.option->seconds > 0 ? now->seconds / way.option->seconds : 1;
  const Flow* flow = culprit(*job, *now, *way.option);
  if (flow == nullptr || times < least_gain)
    return silent("no other placement would be " + number("%.1f", least_gain) + " times as fast", times);
  return {.better = true,
          .times = times,
          .sentence = "placement: " + crossing(*job, *flow) + ": " + way.words + " would be " + faster(times)};
}

}  // namespace plait::tuner
