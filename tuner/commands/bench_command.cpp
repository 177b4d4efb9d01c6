// plait bench: host and Plait in turn in one job, for any set of collectives and sizes. Output: docs/bench.md.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/units.h"
#include "topo/rails.h"
#include "tuner/commands/command.h"
#include "tuner/measure/bench_measure.h"
#include "tuner/measure/job_locations.h"
#include "tuner/measure/limit_measure.h"
#include "tuner/measure/session.h"
#include "tuner/text/bench_report.h"
#include "tuner/text/job_shape.h"
#include "tuner/text/limit_report.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

enum Exit : int { success = 0, wrong_result = 1, bad_input = 2, too_slow = 3 };

constexpr double longest_seconds = 86400;
constexpr std::size_t most_limit_bytes = std::size_t{64} << 20;  // larger moves are as fast

// As the user wrote them.
struct Options {
  std::string collectives = "all";
  std::string sizes = "8,1K,64K,1M";
  std::string rate;
  std::string format = "table";
  double seconds = 1;
  int root = 0;
  std::optional<int> nodes;
  std::optional<double> min_ratio, min_share;
  std::string buffers = "private";
  bool json = false;
  bool limits = false;
};

// As they are understood.
struct Task {
  BenchHeading heading;
  std::vector<CallSpec> calls;
  BenchFormat format = BenchFormat::table;
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  for (std::size_t comma; (comma = list.find(',', begin)) != std::string::npos; begin = comma + 1) {
    words.push_back(list.substr(begin, comma - begin));
  }
  words.push_back(list.substr(begin));
  return words;
}

Result<std::vector<Collective>> parse_collectives(const std::string& list) {
  std::vector<Collective> all, chosen;
  std::string names;
  for (int index = 0; index < collective_count; ++index) {
    const auto collective = static_cast<Collective>(index);
    if (on_neighbors(collective)) continue;  // they need a topology: perf/halo_calls
    all.push_back(collective);
    if (!names.empty()) names += ", ";
    names += name(all.back());
  }
  if (list == "all") return all;
  for (const std::string& word : split(list)) {
    const auto known = collective_named(word);
    if (!known || on_neighbors(*known))
      return {Code::invalid, "--collectives: \"" + word + "\": expected all, or some of " + names};
    if (std::find(chosen.begin(), chosen.end(), *known) == chosen.end()) chosen.push_back(*known);
  }
  return chosen;
}

Result<std::vector<std::size_t>> parse_sizes(const std::string& list) {
  std::vector<std::size_t> sizes;
  for (const std::string& word : split(list)) {
    const auto bytes = parse_bytes(word);
    if (!bytes.ok()) return {Code::invalid, "--sizes: " + bytes.status().message()};
    if (*bytes == 0) return {Code::invalid, "--sizes: \"" + word + "\": expected at least one byte"};
    sizes.push_back(*bytes);
  }
  return sizes;
}

// Sizes that are rounded to the same are measured once.
Result<std::vector<CallSpec>> list_calls(const Options& options, BufferKind buffers, int ranks) {
  const auto collectives = parse_collectives(options.collectives);
  if (!collectives.ok()) return collectives.status();
  const auto sizes = parse_sizes(options.sizes);
  if (!sizes.ok()) return sizes.status();
  std::vector<CallSpec> calls;
  for (const Collective collective : *collectives) {
    for (const std::size_t wanted : *sizes) {
      const auto bytes = measurable_bytes(collective, wanted, ranks);
      if (!bytes.ok()) return {Code::invalid, "--sizes: " + bytes.status().message()};
      const auto same = [&](const CallSpec& call) { return call.collective == collective && call.bytes == *bytes; };
      if (std::any_of(calls.begin(), calls.end(), same)) continue;
      calls.push_back({.collective = collective, .bytes = *bytes, .root = options.root, .buffers = buffers});
    }
  }
  return calls;
}

Status check_numbers(const Options& options, int ranks) {
  const auto refuse = [](std::string message) { return Status(Code::invalid, std::move(message)); };
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (ranks < 2) return refuse("it compares collectives of two or more ranks; expected mpirun -n 2 or more");
  if (!positive(options.seconds) || options.seconds > longest_seconds) {
    return refuse("--seconds: expected a positive number, at most 86400");
  }
  if (options.root < 0 || options.root >= ranks) {
    return refuse("--root " + std::to_string(options.root) + ": expected a rank, 0 to " + std::to_string(ranks - 1));
  }
  if (!positive(options.min_ratio.value_or(1))) return refuse("--min-ratio: expected a positive number");
  if (!positive(options.min_share.value_or(1))) return refuse("--min-share: expected a positive number");
  if (options.min_share && options.rate.empty()) return refuse("--min-share: expected --rate as well");
  return {};
}

Result<BenchFormat> chosen_format(const Options& options) {
  if (options.json || options.format == "json") return BenchFormat::json;
  if (options.format == "markdown") return BenchFormat::markdown;
  if (options.format == "table") return BenchFormat::table;
  if (options.format == "lines") return BenchFormat::lines;
  return {Code::invalid, "--format \"" + options.format + "\": expected table, markdown or json, or lines"};
}

Result<BufferKind> chosen_buffers(const Options& options) {
  if (options.buffers == "private") return BufferKind::ordinary;
  if (options.buffers == "shared") return BufferKind::shared;
  return {Code::invalid, "--buffers \"" + options.buffers + "\": expected private or shared"};
}

// "250mbit,100mbit": of one rail each.
Result<std::vector<double>> rates_of(std::string_view text) {
  std::vector<double> rates;
  while (true) {
    const std::size_t comma = text.find(',');
    const Result<double> rate = parse_rate(text.substr(0, comma));
    if (!rate.ok()) return rate.status();
    rates.push_back(*rate);
    if (comma == std::string_view::npos) return rates;
    text.remove_prefix(comma + 1);
  }
}

// That Plait uses, on the node that has the most; 1 where none is known, and messages go by the host's own way.
int rails_in_use(MpiSession& session) {
  std::vector<Rail> rails = discover_rails();
  static_cast<void>(choose_rails(rails, load_config_from_process().config.rails));
  const std::array mine = {static_cast<double>(std::ranges::count_if(rails, &Rail::used))};
  return std::max(1, static_cast<int>(session.maxima(mine)[0]));
}

// The same on all ranks.
Result<Task> understand(const Options& options, MpiSession& session) {
  Task task;
  if (const Status checked = check_numbers(options, session.ranks()); !checked.ok()) return checked;
  const auto format = chosen_format(options);
  if (!format.ok()) return format.status();
  task.format = *format;
  const auto buffers = chosen_buffers(options);
  if (!buffers.ok()) return buffers.status();
  task.heading.buffers = *buffers;
  auto calls = list_calls(options, *buffers, session.ranks());
  if (!calls.ok()) return calls.status();
  task.calls = std::move(*calls);
  if (!options.rate.empty()) {
    auto rates = rates_of(options.rate);
    if (!rates.ok()) return {Code::invalid, "--rate: " + rates.status().message()};
    if (rates->size() == 1) rates->resize(static_cast<std::size_t>(rails_in_use(session)), rates->front());
    task.heading.rate_bytes_per_second = std::accumulate(rates->begin(), rates->end(), 0.0);
    task.heading.rails = static_cast<int>(rates->size());
  }
  auto job = options.nodes ? equal_nodes(session.ranks(), *options.nodes) : shape_of(gather_locations(session));
  if (!job.ok()) return job.status();
  task.heading.job = std::move(*job);
  task.heading.root = options.root;
  if (options.limits && task.heading.job.nodes() > 1) {
    return {Code::invalid, "--limits: expected all ranks on one node"};
  }
  if (options.min_share && task.heading.job.nodes() < 2) {
    return {Code::invalid,
            "--min-share: expected ranks on two or more nodes (--nodes says how many where they cannot be "
            "told apart)"};
  }
  return task;
}

class BenchRun {
 public:
  BenchRun(MpiSession& session, const Options& options, Task task)
      : session_(session), options_(options), task_(std::move(task)) {}

  Status run() {
    if (Status ready = warm_up(session_); !ready.ok()) return ready;
    if (options_.limits) return report_limits();
    measure_bounds();
    if (task_.format != BenchFormat::json) print(bench_heading_text(task_.heading, task_.format));
    for (const CallSpec& call : task_.calls) {
      show_progress(call);
      auto row = measure_row(call);
      if (!row.ok()) return row.status();
      if (task_.format != BenchFormat::json) print(bench_row_text(task_.heading, *row, task_.format));
      rows_.push_back(std::move(*row));
    }
    if (task_.format == BenchFormat::json) print(bench_json(task_.heading, rows_).dump(2) + '\n');
    return {};
  }

  // What is slower than was asked for, as one line; empty when nothing is.
  std::string shortfall() const {
    std::string text;
    const auto note = [&](const BenchRow& row, const char* what, double value, double least) {
      char numbers[64];
      std::snprintf(numbers, sizeof numbers, " has a %s of %.3f, below %.3f", what, value, least);
      text += (text.empty() ? "" : "; ") + bench_row_name(row) + numbers;
    };
    for (const BenchRow& row : rows_) {
      if (options_.min_ratio && row.ratio() < *options_.min_ratio) note(row, "ratio", row.ratio(), *options_.min_ratio);
      const auto share = row.bound_share();
      if (options_.min_share && share && *share < *options_.min_share) {
        note(row, "share of the NIC bound", *share, *options_.min_share);
      }
    }
    return text;
  }

 private:
  Status report_limits() {
    const auto limits = measure_limits(session_, {.seconds = std::min(options_.seconds / 100, 0.1)});
    if (!limits.ok()) return limits.status();
    const bool json = task_.format == BenchFormat::json || task_.format == BenchFormat::lines;
    print(json ? limits_json(*limits).dump(2) + '\n' : limits_text(*limits, task_.format == BenchFormat::markdown));
    return {};
  }

  // On one node the memory bounds what is measured; where the ranks may not share any there is no bound.
  void measure_bounds() {
    if (task_.heading.job.nodes() > 1 || session_.ranks() < 2) return;
    LimitOptions options = {.seconds = std::min(options_.seconds / 50, 0.01), .only_what_bounds = true};
    options.largest_bytes = 0;
    for (const CallSpec& call : task_.calls) options.largest_bytes = std::max(options.largest_bytes, call.bytes);
    options.largest_bytes = std::clamp<std::size_t>(options.largest_bytes, 4096, most_limit_bytes);
    auto limits = measure_limits(session_, options);
    if (limits.ok()) task_.heading.limits = std::move(*limits);
  }

  Result<BenchRow> measure_row(const CallSpec& call) {
    const double moved = nic_bytes(task_.heading.job, call.collective, call.bytes, call.root);
    auto measured = measure(session_, call, {.seconds = options_.seconds, .nic_bytes = moved});
    if (!measured.ok()) return measured.status();
    BenchRow row{call.collective, call.bytes, std::move(*measured), {}};
    if (task_.heading.rate_bytes_per_second && moved > 0) {
      row.bound_seconds = moved / *task_.heading.rate_bytes_per_second;
    }
    if (task_.heading.limits) {
      row.bound_seconds = limit_seconds(*task_.heading.limits, call.collective, call.bytes, call.buffers);
    }
    return row;
  }

  void print(const std::string& text) const {
    if (session_.rank() == 0) std::cout << text << std::flush;
  }

  // The rows of a table are its progress; a JSON document comes only at the end.
  void show_progress(const CallSpec& call) const {
    if (session_.rank() != 0 || task_.format != BenchFormat::json || isatty(STDERR_FILENO) == 0) return;
    std::cerr << "plait bench: " << rows_.size() + 1 << " of " << task_.calls.size() << ": "
              << bench_row_name({call.collective, call.bytes, {}, {}}) << std::endl;
  }

  MpiSession& session_;
  const Options& options_;
  Task task_;
  std::vector<BenchRow> rows_;
};

class BenchCommand : public Command {
 public:
  std::string_view name() const override { return "bench"; }
  std::string_view summary() const override {
    return "under mpirun: measure collectives as the host MPI and as Plait run them, in turn";
  }

  void add_options(CommandLine line) override {
    line.option("--collectives", options_.collectives, "\"all\" (the default), or some, such as bcast,allreduce");
    line.option("--sizes", options_.sizes, "bytes, such as 8,1K,1M (docs/bench.md says of what)").shows_default();
    line.option("--seconds", options_.seconds, "to spend on each collective and size").shows_default();
    line.option("--root", options_.root, "the root of bcast, reduce, gather and scatter").shows_default();
    line.option(
        "--rate", options_.rate,
        "of each of a node's rails, such as 250mbit or 12GB, or one a rail, such as 250mbit,100mbit: prints the "
        "share of their bound");
    line.option("--nodes", options_.nodes, "equal nodes of consecutive ranks; default: as they are found");
    line.option("--buffers", options_.buffers, "private (of malloc) or shared (of MPI_Alloc_mem)").shows_default();
    line.flag("--limits", options_.limits, "only measure what the memory of one node lets a collective do");
    line.option("--min-ratio", options_.min_ratio, "exit 3 when host time over Plait time is less anywhere");
    line.option("--min-share", options_.min_share, "exit 3 when the share of the NIC bound is less anywhere");
    Option format = line.option("--format", options_.format, "table, markdown, json, or lines (of JSON, as measured)")
                        .shows_default();
    line.flag("--json", options_.json, "the same as --format json").excludes(format);
  }

  Result<int> run() override {
    if (!launched_by_mpirun()) return {Code::invalid, "expected a job of two or more ranks: mpirun -n 2 plait bench"};
    auto session = MpiSession::start();
    if (!session.ok()) return session.status();
    auto task = understand(options_, *session);
    if (!task.ok()) return say(*session, task.status().message(), bad_input);
    BenchRun bench(*session, options_, std::move(*task));
    const Status done = bench.run();
    if (!done.ok()) return say(*session, done.message(), wrong_result);
    const std::string shortfall = bench.shortfall();
    return shortfall.empty() ? int{success} : say(*session, shortfall, too_slow);
  }

 private:
  static int say(MpiSession& session, const std::string& message, Exit code) {
    session.say_once("plait bench: " + message);
    return code;
  }

  Options options_;
};

}  // namespace

std::unique_ptr<Command> bench_command() { return std::make_unique<BenchCommand>(); }

}  // namespace plait::tuner
