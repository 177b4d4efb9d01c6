// plait pipeline: what an iteration of a training pipeline takes by each of its schedules, how far transfers are hidden
// behind computing, and what that costs in memory. Output: docs/pipeline.md.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/units.h"
#include "plan/pipeline/variant.h"
#include "tuner/commands/command.h"
#include "tuner/commands/grid_options.h"
#include "tuner/picture/pipeline_picture.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_bytes = std::size_t{1} << 40;

struct Shown {
  const PipelineVariant* variant = nullptr;
  PipelineEstimate estimate;
};

struct Answer {
  PipelineCase question;
  std::string transfers;  // how long they take, and why
  std::vector<Shown> rows;
  std::size_t chosen = 0;
};

double blocking_seconds(const Answer& answer) { return answer.rows.front().estimate.run.seconds; }
double share(double part, double whole) { return whole > 0 ? part / whole : 1; }
double seconds_of(const TransferCost& cost) { return cost.occupied + cost.latency; }

std::string number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string left(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

// "10.0 ms", or the range of different stages.
std::string range_text(const std::vector<double>& seconds) {
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  return *least == *most ? format_seconds(*least) : format_seconds(*least) + " to " + format_seconds(*most);
}

template <class Get>
std::vector<double> by_stage(const PipelineCosts& costs, Get get) {
  std::vector<double> values;
  for (const PipelineStageCost& stage : costs.stages) values.push_back(get(stage));
  return values;
}
std::vector<double> forward_of(const PipelineCosts& costs) {
  return by_stage(costs, [](const PipelineStageCost& stage) { return stage.forward; });
}
std::vector<double> backward_of(const PipelineCosts& costs) {
  return by_stage(costs, [](const PipelineStageCost& stage) { return stage.backward + stage.weight; });
}
std::vector<double> weight_of(const PipelineCosts& costs) {
  return by_stage(costs, [](const PipelineStageCost& stage) { return stage.weight; });
}

std::string case_text(const Answer& answer) {
  return plural(static_cast<std::uint64_t>(answer.question.stages), "stage") + ", " +
         std::to_string(answer.question.micro_batches) +
         (answer.question.micro_batches == 1 ? " micro-batch" : " micro-batches");
}

std::string times_text(const Answer& answer) {
  const PipelineCosts& costs = answer.question.costs;
  return "forward " + range_text(forward_of(costs)) + ", backward " + range_text(backward_of(costs)) + " (weights " +
         range_text(weight_of(costs)) + " of it), " + answer.transfers;
}

std::vector<int> peaks(const PipelineRun& run, int PipelineStageRun::*of) {
  std::vector<int> values;
  for (const PipelineStageRun& stage : run.stages) values.push_back(stage.*of);
  return values;
}

// "4 3 2 1"; of long lists the ends.
std::string list_text(const std::vector<int>& numbers) {
  constexpr std::size_t most = 8;
  std::string line;
  for (std::size_t index = 0; index < numbers.size(); ++index) {
    if (numbers.size() > most && index == most / 2) {
      line += " ..";
      index = numbers.size() - most / 2;
    }
    line += (line.empty() ? "" : " ") + std::to_string(numbers[index]);
  }
  return line;
}

void print_table(const Answer& answer) {
  std::cout << case_text(answer) << ": " << times_text(answer) << "\n\n"
            << left("schedule", 20) << padded("iteration", 11) << padded("idle", 9) << padded("one byte", 11)
            << padded("of it", 9) << padded("faster", 8) << "  activations\n";
  for (const Shown& row : answer.rows) {
    const PipelineEstimate& estimate = row.estimate;
    std::cout << left(std::string(row.variant->name), 20) << padded(format_seconds(estimate.run.seconds), 11)
              << padded(number("%.1f %%", 100 * estimate.run.idle), 9)
              << padded(format_seconds(estimate.one_byte_seconds), 11)
              << padded(number("%.1f %%", 100 * share(estimate.one_byte_seconds, estimate.run.seconds)), 9)
              << padded(number("%.2fx", share(blocking_seconds(answer), estimate.run.seconds)), 8) << "  "
              << list_text(peaks(estimate.run, &PipelineStageRun::peak_activations)) << '\n';
  }
}

void print(const Answer& answer, bool tasks) {
  print_table(answer);
  const Shown& chosen = answer.rows[answer.chosen];
  std::cout << '\n'
            << chosen.variant->name << ": no order of its tasks takes less than "
            << format_seconds(chosen.estimate.least_seconds);
  if (!chosen.estimate.weight_delays.empty())
    std::cout << "; weights delayed by " << list_text(chosen.estimate.weight_delays) << " micro-batches";
  std::cout << '\n';
  if (!tasks) return;
  for (std::size_t stage = 0; stage < chosen.estimate.schedule.stages.size(); ++stage) {
    std::cout << "stage " << stage << ':';
    for (const PipelineTask& task : chosen.estimate.schedule.stages[stage]) std::cout << ' ' << text(task);
    std::cout << '\n';
  }
}

Json to_json(const Answer& answer, const Shown& row) {
  const PipelineEstimate& estimate = row.estimate;
  return {{"schedule", row.variant->name},
          {"overlap", row.variant->overlap},
          {"seconds", estimate.run.seconds},
          {"idle", estimate.run.idle},
          {"one_byte_seconds", estimate.one_byte_seconds},
          {"of_one_byte", share(estimate.one_byte_seconds, estimate.run.seconds)},
          {"faster", share(blocking_seconds(answer), estimate.run.seconds)},
          {"least_seconds", estimate.least_seconds},
          {"weight_delays", estimate.weight_delays},
          {"peak_activations", peaks(estimate.run, &PipelineStageRun::peak_activations)},
          {"peak_inputs", peaks(estimate.run, &PipelineStageRun::peak_inputs)}};
}

Json tasks_json(const PipelineSchedule& schedule) {
  Json stages = Json::array();
  for (const PipelineTasks& tasks : schedule.stages) {
    Json& stage = stages.emplace_back(Json::array());
    for (const PipelineTask& task : tasks) stage.push_back(text(task));
  }
  return stages;
}

Json to_json(const Answer& answer) {
  const PipelineCase& question = answer.question;
  Json rows = Json::array();
  for (const Shown& row : answer.rows) rows.push_back(to_json(answer, row));
  const auto transfer = [](const std::vector<PipelineBoundary>& boundaries) {
    return boundaries.empty() ? 0 : seconds_of(boundaries.front().activation);
  };
  const Shown& chosen = answer.rows[answer.chosen];
  return {{"stages", question.stages},
          {"micro_batches", question.micro_batches},
          {"forward_seconds", forward_of(question.costs)},
          {"backward_seconds", backward_of(question.costs)},
          {"weight_seconds", weight_of(question.costs)},
          {"transfer_seconds", transfer(question.costs.boundaries)},
          {"one_byte_transfer_seconds", transfer(question.one_byte_boundaries)},
          {"schedules", std::move(rows)},
          {"tasks", {{"schedule", chosen.variant->name}, {"stages", tasks_json(chosen.estimate.schedule)}}}};
}

TimelinePicture picture(const Answer& answer) {
  const Shown& chosen = answer.rows[answer.chosen];
  const PipelineEstimate& estimate = chosen.estimate;
  TimelinePicture picture;
  picture.title = std::string(chosen.variant->name) + ": " + case_text(answer);
  picture.plan = times_text(answer);
  picture.subtitle = "iteration " + format_seconds(estimate.run.seconds) + ", idle " +
                     number("%.1f %%", 100 * estimate.run.idle) + ", " +
                     number("%.2f", share(blocking_seconds(answer), estimate.run.seconds)) + " times as fast as " +
                     std::string(answer.rows.front().variant->name);
  picture.legend = pipeline_legend(estimate);
  picture.limit = estimate.one_byte_seconds;
  picture.limit_text = "one byte per transfer: " + format_seconds(estimate.one_byte_seconds);
  picture.panels = {pipeline_panel(estimate)};
  return picture;
}

class PipelineCommand : public Command {
 public:
  std::string_view name() const override { return "pipeline"; }
  std::string_view summary() const override { return "compare schedules of a training pipeline, with its transfers"; }

  void add_options(CommandLine line) override {
    line.option("--stages", stages_, "of the pipeline, each on hosts of its own").required();
    line.option("--micro-batches", micro_batches_, "of one iteration").required();
    line.option("--forward", forward_, "seconds a micro-batch; one number, or one a stage")
        .separated_by(',')
        .shows_default();
    line.option("--backward", backward_, "likewise, all of it (default: twice the forward time)").separated_by(',');
    line.option("--weight", weight_, "the part of it that makes gradients of weights (default: half)")
        .separated_by(',');
    const Option share =
        line.option("--communication", communication_,
                    "the transfers of a micro-batch across a boundary, there and back, as a share of a stage's "
                    "computing")
            .shows_default();
    line.option("--bytes", bytes_, "of a transfer, such as 8M: its time is that of the machine").excludes(share);
    line.option("--machine", machine_, "default, a100, v100, or a machine file (docs/p2.md); for --bytes")
        .shows_default();
    line.option("--schedule", schedule_, "to draw and to list: " + join_pipeline_variants()).shows_default();
    line.flag("--tasks", tasks_, "list each stage's tasks");
    line.option("--svg", svg_, "draw that schedule's iteration into this file");
    line.flag("--json", json_, "print JSON");
  }

  Result<int> run() override {
    Answer answer;
    if (Status status = understand(answer); !status.ok()) return status;
    for (const PipelineVariant& variant : pipeline_variants) {
      auto estimate = estimate_pipeline(variant, answer.question);
      if (!estimate.ok()) return estimate.status();
      if (variant.name == schedule_) answer.chosen = answer.rows.size();
      answer.rows.push_back({&variant, std::move(*estimate)});
    }
    if (!svg_.empty())
      if (Status written = replace_file(svg_, timeline_svg(picture(answer))); !written.ok())
        return Status(written.code(), "--svg " + written.message());
    if (json_)
      std::cout << to_json(answer).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    else
      print(answer, tasks_);
    return 0;
  }

 private:
  Status understand(Answer& answer) const {
    if (pipeline_variant_named(schedule_) == nullptr)
      return {Code::invalid, "--schedule \"" + schedule_ + "\": expected one of " + join_pipeline_variants()};
    const auto schedule = pipeline_schedule({.stages = stages_, .micro_batches = micro_batches_});
    if (!schedule.ok()) return {Code::invalid, "--stages, --micro-batches: " + schedule.status().message()};
    if (!svg_.empty() && stages_ * micro_batches_ > most_drawn_batches)
      return {Code::invalid,
              "--svg: expected at most " + std::to_string(most_drawn_batches) + " stages times micro-batches"};
    answer.question.stages = stages_;
    answer.question.micro_batches = micro_batches_;
    if (Status status = take_times(answer.question.costs); !status.ok()) return status;
    return bytes_.empty() ? take_share(answer) : take_bytes(answer);
  }

  // One number a stage, of `given` or else of what `usual` says.
  template <class Usual>
  Result<std::vector<double>> times(const char* option, const std::vector<double>& given, Usual usual) const {
    const auto stages = static_cast<std::size_t>(stages_);
    if (given.size() > 1 && given.size() != stages)
      return {Code::invalid, std::string(option) + ": expected one number, or one for each stage"};
    std::vector<double> values;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      values.push_back(given.empty() ? usual(stage) : given[given.size() == 1 ? 0 : stage]);
      if (!(values.back() >= 0 && values.back() <= most_pipeline_task_seconds))
        return {Code::invalid, std::string(option) + ": expected 0 to 1000 seconds"};
    }
    return values;
  }

  Status take_times(PipelineCosts& costs) const {
    const auto forward = times("--forward", forward_, [](std::size_t) { return 0.0; });
    if (!forward.ok()) return forward.status();
    const auto backward = times("--backward", backward_, [&](std::size_t stage) { return 2 * (*forward)[stage]; });
    if (!backward.ok()) return backward.status();
    const auto weight = times("--weight", weight_, [&](std::size_t stage) { return (*backward)[stage] / 2; });
    if (!weight.ok()) return weight.status();
    for (std::size_t stage = 0; stage < forward->size(); ++stage) {
      if ((*weight)[stage] > (*backward)[stage]) return {Code::invalid, "--weight: expected a part of --backward"};
      costs.stages.push_back({(*forward)[stage], (*backward)[stage] - (*weight)[stage], (*weight)[stage]});
    }
    return {};
  }

  Status take_share(Answer& answer) const {
    if (!(communication_ >= 0 && communication_ <= 100))
      return {Code::invalid, "--communication: expected a share from 0 to 100"};
    PipelineCosts& costs = answer.question.costs;
    const double computing = std::accumulate(
        costs.stages.begin(), costs.stages.end(), 0.0,
        [](double sum, const PipelineStageCost& stage) { return sum + stage.forward + stage.backward + stage.weight; });
    const double seconds = communication_ * computing / stages_ / 2;
    if (seconds > most_pipeline_task_seconds)
      return {Code::invalid, "--communication: a transfer would take longer than 1000 seconds"};
    set_boundaries(answer, {seconds, 0}, {});
    answer.transfers = "a transfer " + format_seconds(seconds) + " (" + number("%g %%", 100 * communication_) +
                       " of the computing, there and back)";
    return {};
  }

  Status take_bytes(Answer& answer) const {
    const auto bytes = parse_bytes(bytes_);
    if (!bytes.ok()) return {Code::invalid, "--bytes: " + bytes.status().message()};
    if (*bytes == 0 || *bytes > most_bytes)
      return {Code::invalid, "--bytes \"" + bytes_ + "\": expected 1 B to 1024 GiB"};
    const auto machine = load_machine(machine_);
    if (!machine.ok()) return machine.status();
    const LinkLevel& link = machine->levels.front();
    const TransferCost cost = transfer_cost(link, static_cast<double>(*bytes));
    if (!(seconds_of(cost) <= most_pipeline_task_seconds))
      return {Code::invalid, "--bytes: a transfer would take longer than 1000 seconds on this machine"};
    answer.question.costs.half_duplex = link.half_duplex;
    set_boundaries(answer, cost, transfer_cost(link, 1));
    answer.transfers = "a transfer of " + format_bytes(*bytes) + " " + format_seconds(seconds_of(cost)) + " (machine " +
                       machine->name + ", between its " + link.name + "s)";
    return {};
  }

  static void set_boundaries(Answer& answer, const TransferCost& cost, const TransferCost& one_byte) {
    const auto boundaries = static_cast<std::size_t>(answer.question.stages - 1);
    answer.question.costs.boundaries.assign(boundaries, {cost, cost});
    answer.question.one_byte_boundaries.assign(boundaries, {one_byte, one_byte});
  }

  int stages_ = 0, micro_batches_ = 0;
  std::vector<double> forward_ = {0.01}, backward_, weight_;
  double communication_ = 0.3;
  std::string bytes_, machine_ = "default", schedule_ = "eager-1f1b-delayed", svg_;
  bool tasks_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> pipeline_command() { return std::make_unique<PipelineCommand>(); }

}  // namespace plait::tuner
