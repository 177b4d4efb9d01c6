#include "runtime/reshard/arguments.h"

#include <algorithm>
#include <utility>

namespace plait::runtime {
namespace {

Status bad(const char* argument, const std::string& what) {
  return {Code::invalid, std::string(argument) + ": " + what};
}

Status check_dimensions(const char* argument, int ndims) {
  if (ndims >= 1 && ndims <= reshard::most_dimensions) return {};
  return bad(argument,
             std::to_string(ndims) + " dimensions: expected 1 to " + std::to_string(reshard::most_dimensions));
}

struct MeshNames {
  const char *mesh, *spec;
};

Status read_mesh(const MeshArguments& given, const MeshNames& names, reshard::Mesh& mesh, reshard::ShardingSpec& spec) {
  if (given.dims == nullptr) return bad(names.mesh, "no dimensions are given");
  if (Status status = check_dimensions(names.mesh, given.ndims); !status.ok()) return status;
  std::int64_t ranks = 1;
  for (int d = 0; d < given.ndims; ++d) {
    if (given.dims[d] < 1) return bad(names.mesh, "dimension " + std::to_string(given.dims[d]) + " is not positive");
    ranks *= given.dims[d];
    if (ranks > reshard::most_mesh_ranks)
      return bad(names.mesh, "more than " + std::to_string(reshard::most_mesh_ranks) + " ranks");
  }
  mesh = reshard::consecutive_mesh({given.dims, given.dims + given.ndims}, 0);
  if (given.ranks != nullptr) mesh.ranks.assign(given.ranks, given.ranks + ranks);
  if (given.spec == nullptr) return bad(names.spec, "none is given");
  Result<reshard::ShardingSpec> parsed = reshard::parse_spec(given.spec, names.spec);
  if (!parsed.ok()) return parsed.status();
  spec = std::move(*parsed);
  return {};
}

Status read_task(const ReshardArguments& given, int ranks, reshard::Task& task) {
  if (Status status = read_mesh(given.source, {"src_mesh", "src_spec"}, task.source, task.source_spec); !status.ok())
    return status;
  if (Status status = read_mesh(given.destination, {"dst_mesh", "dst_spec"}, task.destination, task.destination_spec);
      !status.ok())
    return status;
  if (Status status = check_dimensions("shape", given.ndims); !status.ok()) return status;
  if (given.shape == nullptr) return bad("shape", "none is given");
  task.shape.assign(given.shape, given.shape + given.ndims);
  if (!given.element.ok()) return given.element;
  task.element_bytes = given.element_bytes;
  return reshard::check(task, ranks);
}

Status read_number(const std::string& word, const std::string& value, std::uint64_t most, std::uint64_t& number) {
  const bool digits = !value.empty() && value.size() < 19 &&
                      std::ranges::all_of(value, [](char letter) { return letter >= '0' && letter <= '9'; });
  if (digits) number = std::stoull(value);
  if (!digits || number > most)
    return bad("options", "\"" + word + "\": expected a number up to " + std::to_string(most));
  return {};
}

Status read_option(const std::string& word, reshard::Options& options) {
  constexpr std::uint64_t most_chunks = 4096, most_seed = 999'999'999'999'999'999;
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  std::uint64_t number = 0;
  if (key == "strategy") {
    const Result<reshard::Strategy> strategy = reshard::strategy_named(value);
    if (!strategy.ok()) return bad("options", strategy.status().message());
    options.strategy = *strategy;
  } else if (key == "scheduler") {
    const Result<reshard::Scheduler> scheduler = reshard::scheduler_named(value);
    if (!scheduler.ok()) return bad("options", scheduler.status().message());
    options.scheduler = *scheduler;
  } else if (key == "seed") {
    if (Status status = read_number(word, value, most_seed, number); !status.ok()) return status;
    options.budget.seed = number;
  } else if (key == "chunks") {
    if (Status status = read_number(word, value, most_chunks, number); !status.ok()) return status;
    options.chunks = static_cast<int>(number);
  } else {
    return bad("options", "\"" + word + "\": expected strategy=, scheduler=, seed= or chunks=");
  }
  return {};
}

}  // namespace

Result<reshard::Options> parse_reshard_options(const std::string& text) {
  reshard::Options options;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find_first_of(" ,", at), text.size());
    if (end > at)
      if (Status status = read_option(text.substr(at, end - at), options); !status.ok()) return status;
    at = end + 1;
  }
  return options;
}

Status read_arguments(const ReshardArguments& arguments, int ranks, ReshardProblem& problem) {
  Result<reshard::Options> options = parse_reshard_options(arguments.options != nullptr ? arguments.options : "");
  if (!options.ok()) return options.status();
  if (!arguments.wants_plan) return bad("plan", "NULL");
  problem.options = *options;
  return read_task(arguments, ranks, problem.task);
}

std::vector<Said> arguments_said(const ReshardProblem& problem) {
  const reshard::Task& task = problem.task;
  const reshard::Options& options = problem.options;
  return {{"src_mesh", list_text(task.source.dims) + "/" + list_text(task.source.ranks)},
          {"src_spec", reshard::text(task.source_spec)},
          {"dst_mesh", list_text(task.destination.dims) + "/" + list_text(task.destination.ranks)},
          {"dst_spec", reshard::text(task.destination_spec)},
          {"shape", list_text(task.shape)},
          {"element", std::to_string(task.element_bytes)},
          {"options", std::string(name(options.strategy)) + std::string(name(options.scheduler)) +
                          std::to_string(options.budget.seed) + "." + std::to_string(options.chunks)}};
}

}  // namespace plait::runtime
