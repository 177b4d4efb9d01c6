// plait reshard: how a tensor gets from one mesh of ranks to another under another layout, what each way takes, and
// under mpirun what it did take. docs/reshard.md.
#include <charconv>
#include <chrono>
#include <iostream>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/units.h"
#include "plan/reshard/plan.h"
#include "tuner/commands/command.h"
#include "tuner/commands/grid_options.h"
#include "tuner/measure/job_locations.h"
#include "tuner/measure/reshard_measure.h"
#include "tuner/measure/session.h"
#include "tuner/picture/reshard_picture.h"
#include "tuner/text/reshard_report.h"

namespace plait::tuner {
namespace {

using reshard::Scheduler;
using reshard::Strategy;

struct ReshardOptions {
  std::string source_mesh, destination_mesh, source_spec, destination_spec, shape;
  std::string type = "f32", hosts, machine = "default", rate, strategies, schedulers, svg;
  std::uint64_t seed = 1;
  int chunks = 0, source_first = 0, destination_first = -1;
  double seconds = 1;
  bool json = false;
};

struct ReshardQuestion {
  reshard::Task task;
  std::vector<int> host_of;
  std::vector<Strategy> strategies;
  std::vector<Scheduler> schedulers;
  Machine machine;
};

Result<std::size_t> bytes_of_type(const std::string& type) {
  static const std::map<std::string, std::size_t> known = {{"i8", 1},  {"u8", 1},  {"i16", 2}, {"f16", 2}, {"bf16", 2},
                                                           {"i32", 4}, {"f32", 4}, {"i64", 8}, {"f64", 8}};
  const auto found = known.find(type);
  if (found != known.end()) return found->second;
  return {Code::invalid, "--type: \"" + type + "\": expected i8, u8, i16, f16, bf16, i32, f32, i64 or f64"};
}

// "4,4,3": ranks on each host, in rank order.
Result<std::vector<int>> parse_hosts_list(const std::string& text, int ranks) {
  const Status refused(Code::invalid, "--hosts: \"" + text + "\": expected the numbers of ranks on each host, " +
                                          std::to_string(ranks) + " in all, such as 4,4");
  std::vector<int> host_of;
  int host = 0;
  const char *at = text.data(), *const end = at + text.size();
  while (at < end) {
    int count = 0;
    const auto [next, error] = std::from_chars(at, end, count);
    if (error != std::errc() || count < 1 || count > ranks || (next != end && (*next != ',' || next + 1 == end)))
      return refused;
    host_of.insert(host_of.end(), static_cast<std::size_t>(count), host++);
    at = next == end ? end : next + 1;
  }
  if (static_cast<int>(host_of.size()) != ranks) return refused;
  return host_of;
}

// Each row of a mesh of several dimensions is a host, and a mesh of one dimension.
std::vector<int> hosts_by_rows(const reshard::Task& task, int ranks) {
  std::vector<int> host_of(static_cast<std::size_t>(ranks), 0);
  int host = 0;
  for (const reshard::Mesh* mesh : {&task.source, &task.destination}) {
    const std::size_t rows = mesh->dims.size() > 1 ? static_cast<std::size_t>(mesh->dims.front()) : 1;
    const std::size_t row = mesh->ranks.size() / rows;
    for (std::size_t place = 0; place < mesh->ranks.size(); ++place)
      host_of[static_cast<std::size_t>(mesh->ranks[place])] = host + static_cast<int>(place / row);
    host += static_cast<int>(rows);
  }
  // Ranks of both meshes have left gaps in the numbers.
  std::map<int, int> numbers;
  for (int& one : host_of) one = numbers.try_emplace(one, static_cast<int>(numbers.size())).first->second;
  return host_of;
}

template <class Value, class Named>
Result<std::vector<Value>> parse_names(const std::string& list, const std::string& option, int count, Named named) {
  std::vector<Value> values;
  if (list.empty())
    for (int i = 0; i < count; ++i) values.push_back(static_cast<Value>(i));
  std::size_t at = 0;
  while (at < list.size()) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const auto value = named(list.substr(at, end - at));
    if (!value.ok()) return Status(Code::invalid, option + ": " + value.status().message());
    values.push_back(*value);
    at = end + 1;
  }
  return values;
}

// The library says src_mesh, the command line --src-mesh.
Status as_option(const Status& status) {
  std::string text = status.message();
  for (char& letter : text) {
    if (letter == ':') break;
    if (letter == '_') letter = '-';
  }
  return {status.code(), "--" + text};
}

Result<reshard::Mesh> read_mesh(const std::string& text, const char* argument, int first) {
  const auto dims = reshard::parse_dims(text, argument);
  if (!dims.ok()) return dims.status();
  return reshard::consecutive_mesh(*dims, first);
}

Status read_task(const ReshardOptions& options, reshard::Task& task) {
  auto source = read_mesh(options.source_mesh, "src_mesh", options.source_first);
  if (!source.ok()) return as_option(source.status());
  task.source = std::move(*source);
  const int behind = options.source_first + static_cast<int>(task.source.ranks.size());
  auto destination = read_mesh(options.destination_mesh, "dst_mesh",
                               options.destination_first >= 0 ? options.destination_first : behind);
  if (!destination.ok()) return as_option(destination.status());
  task.destination = std::move(*destination);
  auto source_spec = reshard::parse_spec(options.source_spec, "src_spec");
  if (!source_spec.ok()) return as_option(source_spec.status());
  task.source_spec = std::move(*source_spec);
  auto destination_spec = reshard::parse_spec(options.destination_spec, "dst_spec");
  if (!destination_spec.ok()) return as_option(destination_spec.status());
  task.destination_spec = std::move(*destination_spec);
  auto shape = reshard::parse_shape(options.shape, "shape");
  if (!shape.ok()) return as_option(shape.status());
  task.shape = std::move(*shape);
  const auto bytes = bytes_of_type(options.type);
  if (!bytes.ok()) return bytes.status();
  task.element_bytes = *bytes;
  return {};
}

int ranks_of(const reshard::Task& task) {
  int ranks = 0;
  for (const reshard::Mesh* mesh : {&task.source, &task.destination})
    for (const int rank : mesh->ranks) ranks = std::max(ranks, rank + 1);
  return ranks;
}

Status read_machine(const ReshardOptions& options, Machine& machine) {
  auto loaded = load_machine(options.machine);
  if (!loaded.ok()) return loaded.status();
  machine = std::move(*loaded);
  if (options.rate.empty()) return {};
  const auto rate = parse_rate(options.rate);
  if (!rate.ok()) return {Code::invalid, "--rate: " + rate.status().message()};
  machine.levels.front().port_seconds_per_byte = 1 / *rate;
  machine.name += ", " + options.rate;
  return {};
}

// All but where the ranks are.
Result<ReshardQuestion> understand(const ReshardOptions& options) {
  ReshardQuestion question;
  if (Status status = read_task(options, question.task); !status.ok()) return status;
  auto strategies = parse_names<Strategy>(options.strategies, "--strategy", reshard::strategy_count,
                                          [](const std::string& name) { return reshard::strategy_named(name); });
  if (!strategies.ok()) return strategies.status();
  question.strategies = std::move(*strategies);
  auto schedulers = parse_names<Scheduler>(options.schedulers, "--scheduler", reshard::scheduler_count,
                                           [](const std::string& name) { return reshard::scheduler_named(name); });
  if (!schedulers.ok()) return schedulers.status();
  question.schedulers = std::move(*schedulers);
  if (Status status = reshard::check(question.task, ranks_of(question.task)); !status.ok()) return as_option(status);
  if (Status status = read_machine(options, question.machine); !status.ok()) return status;
  return question;
}

Status place(const ReshardOptions& options, MpiSession* session, ReshardQuestion& question) {
  const int ranks = ranks_of(question.task);
  if (session != nullptr) {
    if (session->ranks() < ranks)
      return {Code::invalid, "the meshes have " + std::to_string(ranks) + " ranks, but the job has " +
                                 std::to_string(session->ranks())};
    const Hierarchy hierarchy = Hierarchy::from_locations(gather_locations(*session));
    for (int rank = 0; rank < session->ranks(); ++rank) question.host_of.push_back(hierarchy.node_of(rank));
    return {};
  }
  if (options.hosts.empty()) {
    question.host_of = hosts_by_rows(question.task, ranks);
    return {};
  }
  auto hosts = parse_hosts_list(options.hosts, ranks);
  if (!hosts.ok()) return hosts.status();
  question.host_of = std::move(*hosts);
  return {};
}

std::string title_of(const ReshardOptions& options) {
  return options.source_mesh + " " + options.source_spec + " to " + options.destination_mesh + " " +
         options.destination_spec + ", " + options.shape + " of " + options.type;
}

ReshardSpec measured_spec(const reshard::Task& task, const reshard::Options& options) {
  return {.source_dims = task.source.dims,
          .destination_dims = task.destination.dims,
          .source_ranks = task.source.ranks,
          .destination_ranks = task.destination.ranks,
          .source_spec = text(task.source_spec),
          .destination_spec = text(task.destination_spec),
          .shape = task.shape,
          .element_bytes = task.element_bytes,
          .options = "strategy=" + std::string(name(options.strategy)) +
                     " scheduler=" + std::string(name(options.scheduler)) +
                     " seed=" + std::to_string(options.budget.seed) + " chunks=" + std::to_string(options.chunks)};
}

class ReshardCommand : public Command {
 public:
  std::string_view name() const override { return "reshard"; }
  std::string_view summary() const override {
    return "move a sharded tensor to another mesh and layout: plans, their predicted times and, under mpirun, measured "
           "ones";
  }

  void add_options(CommandLine line) override {
    line.option("--src-mesh", options_.source_mesh, "the source mesh, such as 2x4: ranks 0, 1, ..").required();
    line.option("--dst-mesh", options_.destination_mesh, "the destination mesh: the ranks behind those").required();
    line.option("--src-spec", options_.source_spec, "how the tensor lies there, such as S0RR or S01R").required();
    line.option("--dst-spec", options_.destination_spec, "how it shall lie here").required();
    line.option("--shape", options_.shape, "the tensor's, such as 1024,1024,512").required();
    line.option("--type", options_.type, "of its elements").shows_default();
    line.option("--dst-first", options_.destination_first, "first rank of the destination mesh; 0: as the source's");
    line.option("--hosts", options_.hosts, "ranks on each host, such as 4,4,4,4; else each row of a mesh is a host");
    line.option("--machine", options_.machine, "default, a100, v100, or a machine file (docs/p2.md)").shows_default();
    line.option("--rate", options_.rate, "of a host's network interface, such as 250mbit; instead of the machine's");
    line.option("--strategy", options_.strategies,
                "which of send-recv,local-allgather,global-allgather,broadcast; all");
    line.option("--scheduler", options_.schedulers, "which of naive,load-balance,search; all");
    line.option("--chunks", options_.chunks, "of a broadcast; 0: by the cost model").within(0, 4096);
    line.option("--seed", options_.seed, "of the search").shows_default();
    line.option("--seconds", options_.seconds, "to measure each row for, under mpirun")
        .within(0.0, 3600.0)
        .shows_default();
    line.option("--svg", options_.svg, "a file for the timeline of the hosts, of the last row");
    line.flag("--json", options_.json, "JSON instead of a table");
  }

  Result<int> run() override {
    if (!launched_by_mpirun()) return run(nullptr);
    auto session = MpiSession::start();
    if (!session.ok()) return session.status();
    const Result<int> done = run(&*session);
    if (done.ok()) return done;
    session->say_once("plait reshard: " + done.status().message());
    return done.status().code() == Code::invalid ? 2 : 1;
  }

 private:
  Result<int> run(MpiSession* session) {
    Result<ReshardQuestion> question = understand(options_);
    if (!question.ok()) return question.status();
    if (Status status = place(options_, session, *question); !status.ok()) return status;
    ReshardReport report{.title = title_of(options_),
                         .machine = question->machine.name,
                         .planning_seconds = 0,
                         .rows = {},
                         .host_of = question->host_of,
                         .shown = 0};
    for (const Strategy strategy : question->strategies)
      for (const Scheduler scheduler : question->schedulers)
        if (Status status = add_row(*question, strategy, scheduler, session, report); !status.ok()) return status;
    report.shown = static_cast<int>(report.rows.size()) - 1;
    if (session != nullptr && session->rank() != 0) return 0;
    if (!options_.svg.empty())
      if (Status status = replace_file(options_.svg, reshard_svg(report)); !status.ok()) return status;
    std::cout << (options_.json ? reshard_json(report) : reshard_table(report));
    return 0;
  }

  Status add_row(const ReshardQuestion& question, Strategy strategy, Scheduler scheduler, MpiSession* session,
                 ReshardReport& report) {
    reshard::Options options;
    options.strategy = strategy;
    options.scheduler = scheduler;
    options.budget.seed = options_.seed;
    options.chunks = options_.chunks;
    options.links = reshard::links_of(question.machine);
    const auto begin = std::chrono::steady_clock::now();
    Result<reshard::Plan> plan = reshard::make_plan(question.task, question.host_of, options);
    if (!plan.ok()) return as_option(plan.status());
    report.planning_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ReshardRow row{.plan = std::move(*plan), .measured_seconds = {}};
    if (session != nullptr) {
      const Result<double> seconds = measure_reshard(*session, measured_spec(question.task, options), options_.seconds);
      if (!seconds.ok()) return seconds.status();
      row.measured_seconds = *seconds;
    }
    report.rows.push_back(std::move(row));
    return {};
  }

  ReshardOptions options_;
};

}  // namespace

std::unique_ptr<Command> reshard_command() { return std::make_unique<ReshardCommand>(); }

}  // namespace plait::tuner
