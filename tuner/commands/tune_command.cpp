// plait tune: the best plans for a machine's communicators, by the cost model, as a tuning table. Output:
// docs/tuning.md.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/units.h"
#include "plan/choose/shape_tuner.h"
#include "plan/choose/table.h"
#include "plan/model/machine_levels.h"
#include "topo/shape.h"
#include "tuner/commands/command.h"
#include "tuner/commands/grid_options.h"
#include "tuner/commands/tune_measured.h"
#include "tuner/measure/job_locations.h"
#include "tuner/measure/session.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_tuned_shapes = 64;

struct TunedOne {
  Collective collective;
  TunedRanges found;
};

// One shape with all collectives.
struct TuneResult {
  std::string shape;
  int ranks = 0;
  std::vector<TunedOne> collectives;
};

Result<TuneResult> tune_shape(const std::string& text, const Machine& machine) {
  const Result<CommunicatorShape> shape = parse_shape(text);
  if (!shape.ok()) return shape.status();
  TuneResult result{text, shape->hierarchy.ranks(), {}};
  if (result.ranks < 2) return {Code::invalid, "shape \"" + text + "\": expected two ranks or more"};
  const Hierarchy hierarchy = hierarchy_on(machine, shape->hierarchy);
  const CandidateContext context{.hierarchy = hierarchy, .machine = machine, .siblings = shape->siblings};
  for (int number = 0; number < planned_collectives; ++number) {
    const auto collective = static_cast<Collective>(number);
    if (!is_tuned(collective)) continue;
    Result<TunedRanges> found = tune_collective(collective, context);
    if (!found.ok()) return found.status();
    result.collectives.push_back({collective, std::move(*found)});
  }
  return result;
}

TuningTable table_of(const Machine& machine, const std::vector<TuneResult>& results) {
  TuningTable table{machine.name, machine.fingerprint, {}};
  for (const TuneResult& result : results) {
    TunedShape& shape = table.shapes.emplace_back();
    shape.shape = result.shape;
    for (const TunedOne& one : result.collectives) shape.collectives.push_back({one.collective, one.found.ranges});
  }
  return table;
}

Json range_json(const TunedRange& range, const TunedRange& flat) {
  return {{"from", range.from},
          {"to", range.to},
          {"plan", range.plan},
          {"seconds_from", range.seconds_from},
          {"seconds_to", range.seconds_to},
          {"flat_plan", flat.plan},
          {"flat_seconds_from", flat.seconds_from},
          {"flat_seconds_to", flat.seconds_to}};
}

Json to_json(const Machine& machine, const std::vector<TuneResult>& results, double elapsed) {
  Json json = {{"machine", machine.name}, {"shapes", Json::array()}};
  for (const TuneResult& result : results) {
    Json collectives = Json::array();
    for (const TunedOne& one : result.collectives) {
      Json ranges = Json::array();
      for (std::size_t i = 0; i < one.found.ranges.size(); ++i)
        ranges.push_back(range_json(one.found.ranges[i], one.found.flat[i]));
      collectives.push_back({{"collective", name(one.collective)}, {"ranges", std::move(ranges)}});
    }
    json["shapes"].push_back({{"shape", result.shape}, {"ranks", result.ranks}, {"collectives", collectives}});
  }
  json["elapsed_seconds"] = elapsed;
  return json;
}

std::string left(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string times_as_fast(double flat, double tuned) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2fx", tuned > 0 ? flat / tuned : 1);
  return text.data();
}

void print_range(const std::string& title, std::size_t widest, const TunedRange& range, const TunedRange& flat) {
  const bool sized = range.from > 0;
  std::cout << left(title, 22) << padded(sized ? format_bytes(range.from) : "", 9)
            << padded(sized ? format_bytes(range.to - 1) : "", 10) << "  " << left(range.plan, widest)
            << padded(format_seconds(range.seconds_from), 10) << padded(format_seconds(range.seconds_to), 10)
            << padded(times_as_fast(flat.seconds_from, range.seconds_from), 9)
            << padded(times_as_fast(flat.seconds_to, range.seconds_to), 9) << '\n';
}

void print_shape(const TuneResult& result) {
  std::size_t widest = 4;
  for (const TunedOne& one : result.collectives)
    for (const TunedRange& range : one.found.ranges) widest = std::max(widest, range.plan.size());
  std::cout << "\nshape " << result.shape << ", " << plural(static_cast<std::uint64_t>(result.ranks), "rank") << '\n'
            << left("collective", 22) << padded("from", 9) << padded("to", 10) << "  " << left("plan", widest)
            << padded("at from", 10) << padded("at to", 10) << "  against flat plans\n";
  for (const TunedOne& one : result.collectives)
    for (std::size_t i = 0; i < one.found.ranges.size(); ++i)
      print_range(i == 0 ? std::string(name(one.collective)) : "", widest, one.found.ranges[i], one.found.flat[i]);
}

// That of the job that this command runs in; empty on other ranks than 0.
std::string shape_of_job(MpiSession& session) {
  const std::vector<Location> locations = gather_locations(session);
  return session.rank() == 0 ? shape_text(Hierarchy::from_locations(locations), 1) : std::string();
}

class TuneCommand : public Command {
 public:
  std::string_view name() const override { return "tune"; }
  std::string_view summary() const override { return "find the best plans for a machine, and write a tuning table"; }

  void add_options(CommandLine line) override {
    line.option("--machine", options_.machine, "default, a100, v100, or a machine file (docs/p2.md)").shows_default();
    Option shape =
        line.option("--shape", shapes_,
                    "of a communicator: nodes, then what each is split into, such as 4x2x8 or 1x8; may be repeated "
                    "(default: that of the job under mpirun, else those of the machine file)");
    shape.repeated();
    line.option("-o,--output", options_.output, "write the table (docs/tuning.md)");
    line.flag("--json", options_.json, "print JSON");
    Option measure =
        line.flag("--measure", measures_, "under mpirun: run the model's best plans and the host, and keep the best");
    measure.excludes(shape);
    line.option("--collectives,--collective", options_.collectives,
                "to measure: \"all\" (the default), or some, such as bcast,allreduce")
        .needs(measure);
    line.option("--min", options_.least, "the smallest size to measure").shows_default().needs(measure);
    line.option("--max", options_.most, "the largest").shows_default().needs(measure);
    line.option("--seconds", options_.seconds, "to measure, about").shows_default().needs(measure);
    line.flag("--quiet", options_.quiet, "no progress while it measures").needs(measure);
  }

  Result<int> run() override {
    if (measures_) return tune_measured(options_);
    if (!launched_by_mpirun()) return tune();
    auto session = MpiSession::start();
    if (!session.ok()) return session.status();
    if (shapes_.empty()) job_shape_ = shape_of_job(*session);
    return session->rank() == 0 ? tune() : 0;
  }

 private:
  // The shapes asked for, in their order and each once.
  Result<std::vector<std::string>> wanted(const Machine& machine) const {
    std::vector<std::string> texts = shapes_;
    if (texts.empty() && !job_shape_.empty()) texts = {job_shape_};
    const auto known = machine.fingerprint.find("shape");
    if (texts.empty() && known != machine.fingerprint.end()) texts = split(known->second, ' ');
    if (texts.empty())
      return {Code::invalid, "expected --shape, such as --shape 4x2x8: neither a job nor the machine file says one"};
    if (texts.size() > most_tuned_shapes)
      return {Code::invalid, "--shape: expected at most " + std::to_string(most_tuned_shapes)};
    std::vector<std::string> once;
    for (const std::string& text : texts) {
      const Result<std::string> usual = usual_shape(text);
      if (!usual.ok()) return usual.status();
      if (std::find(once.begin(), once.end(), *usual) == once.end()) once.push_back(*usual);
    }
    return once;
  }

  Result<int> tune() const {
    const auto machine = load_machine(options_.machine);
    if (!machine.ok()) return machine.status();
    const auto shapes = wanted(*machine);
    if (!shapes.ok()) return shapes.status();
    const auto begin = std::chrono::steady_clock::now();
    std::vector<TuneResult> results;
    for (const std::string& shape : *shapes) {
      auto result = tune_shape(shape, *machine);
      if (!result.ok()) return result.status();
      results.push_back(std::move(*result));
    }
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!options_.output.empty())
      if (Status written = replace_file(options_.output, table_json(table_of(*machine, results))); !written.ok())
        return Status(written.code(), "--output " + written.message());
    if (options_.json) {
      std::cout << to_json(*machine, results, elapsed).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
      return 0;
    }
    std::cout << "machine " << machine->name << ", " << format_seconds(elapsed) << '\n';
    for (const TuneResult& result : results) print_shape(result);
    return 0;
  }

  std::vector<std::string> shapes_;
  std::string job_shape_;
  bool measures_ = false;
  TuneMeasuredOptions options_;  // machine, output and json are for all
};

}  // namespace

std::unique_ptr<Command> tune_command() { return std::make_unique<TuneCommand>(); }

}  // namespace plait::tuner
