// plait schedule: a program's step planned as a whole: how each of its collectives is rewritten, over which rails, and
// in which order their motifs run. Output: docs/schedule.md.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/units.h"
#include "plan/joint/baselines.h"
#include "plan/joint/list_schedule.h"
#include "plan/step/step_file.h"
#include "plan/step/step_options.h"
#include "tuner/commands/command.h"
#include "tuner/commands/grid_options.h"
#include "tuner/picture/timeline_svg.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr double searches = 5;
constexpr std::size_t longest_step_file = std::size_t{16} << 20;
constexpr int most_ranks = 256, most_depth = 3, most_chains = 64;

struct Options {
  std::string trace, system, machine = "default", output, svg, segments = "2,4,8", only;
  double seconds = 10, load = 0;
  std::uint64_t seed = 1;
  int depth = 2, chains = 1;
  bool json = false;
};

struct Question {
  plan::step::Step step;
  Machine machine;
  Hierarchy hierarchy;
  plan::step::OptionLimits limits;
};

struct Answer {
  plan::step::PricedStep priced;
  plan::joint::Baselines times;
  plan::joint::Schedule schedule;  // of the joint plan
};

Result<Question> understand(const Options& options) {
  const auto text = read_file(options.trace, longest_step_file);
  if (!text.ok()) return Status(Code::invalid, "--trace " + text.status().message());
  Result<plan::step::Step> step = plan::step::parse_step(*text);
  if (!step.ok()) return Status(Code::invalid, "--trace \"" + options.trace + "\": " + step.status().message());
  Result<Machine> machine = load_machine(options.machine);
  if (!machine.ok()) return machine.status();
  Result<Hierarchy> hierarchy = parse_system(options.system, most_ranks);
  if (!hierarchy.ok()) return hierarchy.status();
  const Result<std::vector<int>> segments = parse_segments(options.segments);
  if (!segments.ok()) return segments.status();
  if (!(options.seconds > 0 && options.seconds <= 86400))
    return Status(Code::invalid, "--seconds: expected a time of up to a day");
  if (!(options.load >= 0 && options.load <= 1)) return Status(Code::invalid, "--load: expected 0 to 1");
  if (options.depth < 0 || options.depth > most_depth)
    return Status(Code::invalid,
                  "--depth " + std::to_string(options.depth) + ": expected 0 to " + std::to_string(most_depth));
  if (options.only != "" && options.only != "schedule" && options.only != "execution")
    return Status(Code::invalid, "--only \"" + options.only + "\": expected schedule or execution");
  if (options.chains < 1 || options.chains > most_chains)
    return Status(Code::invalid,
                  "--chains " + std::to_string(options.chains) + ": expected 1 to " + std::to_string(most_chains));
  Question question{.step = std::move(*step),
                    .machine = std::move(*machine),
                    .hierarchy = std::move(*hierarchy),
                    .limits = {.depth = options.depth, .segments = *segments}};
  question.limits.load = options.load;
  return question;
}

Result<Answer> plan_step(const Question& question, const Options& options) {
  Answer answer;
  auto priced = plan::step::price_step(question.step, question.hierarchy, question.machine, question.limits);
  if (!priced.ok()) return priced.status();
  answer.priced = std::move(*priced);
  const plan::joint::StepGraph& graph = answer.priced.graph;
  // Each of the five searches has as much.
  answer.times = plan::joint::baselines(
      graph, {.seed = options.seed, .chains = options.chains, .seconds = options.seconds / searches});
  if (options.only == "schedule") answer.times.joint = answer.times.schedule_only;
  if (options.only == "execution") answer.times.joint = answer.times.execution_only;
  const plan::joint::StepTables tables(graph);
  answer.schedule = plan::joint::ListScheduler(tables).schedule(answer.times.joint.options, answer.times.joint.order);
  return answer;
}

// ---- What is printed ----

struct Row {
  const char* name;
  const char* key;
  double seconds;
};

std::vector<Row> rows_of(const plan::joint::Baselines& times) {
  return {{"as issued, one by one", "as_issued", times.as_issued},
          {"last in first out, ideal segments", "lifo_ideal_segments", times.lifo},
          {"schedule only", "schedule_only", times.schedule_only.seconds},
          {"schedule only, ideal segments", "schedule_and_segments", times.schedule_and_segments},
          {"execution only", "execution_only", times.execution_only.seconds},
          {"joint", "joint", times.joint.seconds},
          {"lower bound", "lower_bound", times.joint.bound.seconds()}};
}

double distance(const plan::joint::JointPlan& plan) {
  return plan.bound.seconds() > 0 ? std::max(0.0, plan.seconds / plan.bound.seconds() - 1) : 0;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string ratio(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

const plan::joint::Option* option_of(const Answer& answer, std::size_t task) {
  const plan::joint::Task& one = answer.priced.graph.tasks[task];
  if (one.kind == plan::joint::TaskKind::computation) return nullptr;
  return &one.options[static_cast<std::size_t>(answer.times.joint.options[task])];
}

void print_text(const Question& question, const Answer& answer) {
  const plan::joint::JointPlan& joint = answer.times.joint;
  std::cout << question.step.name << ": " << plural(question.step.tasks.size(), "task") << " a step, system "
            << question.hierarchy.describe() << ", machine " << question.machine.name << '\n';
  for (const Row& row : rows_of(answer.times)) {
    std::string name = row.name;
    name.resize(36, ' ');
    std::cout << "  " << name << padded(format_seconds(row.seconds), 10) << "  "
              << ratio(row.seconds > 0 ? answer.times.as_issued / row.seconds : 0) << '\n';
  }
  std::cout << "the joint plan is " << percent(distance(joint)) << " above the bound; " << grouped(joint.schedules)
            << " schedules in " << format_seconds(joint.spent) << '\n';
  for (std::size_t task = 0; task < answer.priced.graph.tasks.size(); ++task)
    if (const plan::joint::Option* option = option_of(answer, task); option != nullptr)
      std::cout << "  " << answer.priced.graph.tasks[task].name << "  " << option->name << '\n';
}

// What an enforcer needs: of each operation its plan, of each channel the order of motifs within a step. `steps_ahead`:
// so many steps the motif's operation is ahead of the others'.
Json schedule_json(const Question& question, const Answer& answer) {
  const plan::joint::JointPlan& joint = answer.times.joint;
  Json json = {{"plait_schedule", 1}, {"step", question.step.name}, {"ranks", question.hierarchy.ranks()}};
  for (const Row& row : rows_of(answer.times)) json["predicted_seconds"][row.key] = row.seconds;
  json["distance_to_bound"] = distance(joint);
  json["schedules"] = joint.schedules;
  json["search_seconds"] = joint.spent;
  json["operations"] = Json::array();
  for (std::size_t task = 0; task < answer.priced.graph.tasks.size(); ++task)
    if (const plan::joint::Option* option = option_of(answer, task); option != nullptr)
      json["operations"].push_back({{"name", answer.priced.graph.tasks[task].name},
                                    {"collective", name(*question.step.tasks[task].collective)},
                                    {"bytes", question.step.tasks[task].bytes},
                                    {"communicator", question.step.tasks[task].communicator},
                                    {"blocking", question.step.tasks[task].blocking},
                                    {"persistent", question.step.tasks[task].persistent},
                                    {"plan", option->name},
                                    {"pieces", option->pieces.size()}});
  json["channels"] = Json::array();
  for (std::size_t channel = 0; channel < joint.channel_order.size(); ++channel) {
    Json order = Json::array();
    for (const plan::joint::OrderedPiece& piece : joint.channel_order[channel])
      order.push_back({{"operation", answer.priced.graph.tasks[static_cast<std::size_t>(piece.task)].name},
                       {"piece", piece.piece},
                       {"steps_ahead", piece.ahead}});
    json["channels"].push_back({{"name", answer.priced.graph.channels[channel].name}, {"order", std::move(order)}});
  }
  return json;
}

// Two steps: computation, and each channel. An operation keeps its colour.
TimelinePicture picture_of(const Question& question, const Answer& answer) {
  TimelinePicture picture;
  picture.title = question.step.name + ", two steps";
  picture.plan = "joint plan";
  picture.subtitle = "predicted " + format_seconds(answer.times.joint.seconds) + " a step, as issued " +
                     format_seconds(answer.times.as_issued);
  const plan::joint::StepGraph& graph = answer.priced.graph;
  TimelinePanel panel{.title = "predicted", .note = "", .lanes = {{.name = "computation", .boxes = {}}}};
  for (const plan::joint::Channel& channel : graph.channels) panel.lanes.push_back({.name = channel.name, .boxes = {}});
  double first = HUGE_VAL;
  for (const plan::joint::TimedPiece& piece : answer.schedule.timeline) first = std::min(first, piece.start);
  for (const plan::joint::TimedPiece& piece : answer.schedule.timeline) {
    const auto task = static_cast<std::size_t>(piece.task);
    const plan::joint::Option* option = option_of(answer, task);
    TimelineBox box{.begin = piece.start - first,
                    .end = piece.end - first,
                    .ink = {option == nullptr ? -1 : piece.task, piece.iteration + 1},
                    .title = graph.tasks[task].name + (option == nullptr ? "" : ", " + option->name),
                    .label = graph.tasks[task].name};
    if (option == nullptr) {
      panel.lanes[0].boxes.push_back(std::move(box));
      continue;
    }
    const std::uint32_t channels = option->pieces[static_cast<std::size_t>(piece.piece)].channels;
    for (std::size_t channel = 0; channel < graph.channels.size(); ++channel)
      if ((channels >> channel & 1) != 0) panel.lanes[channel + 1].boxes.push_back(box);
  }
  for (TimelineLane& lane : panel.lanes) pack_rows(lane.boxes);
  picture.panels.push_back(std::move(panel));
  return picture;
}

class ScheduleCommand : public Command {
 public:
  std::string_view name() const override { return "schedule"; }
  std::string_view summary() const override {
    return "plans all collectives of a program's step together: rewritings, rails and order";
  }

  void add_options(CommandLine line) override {
    line.option("--trace", options_.trace, "the step: a file of its computation and collectives (docs/schedule.md)")
        .required();
    line.option("--system", options_.system, "children at each level, outermost first: 4,2").required();
    line.option("--machine", options_.machine, "default, a100, v100 or a machine file").shows_default();
    line.option("-o,--output", options_.output, "write the plan here");
    line.option("--seconds", options_.seconds, "of searching, all in all").shows_default();
    line.option("--seed", options_.seed, "of the search").shows_default();
    line.option("--chains", options_.chains, "of the search, a thread each").shows_default();
    line.option("--depth", options_.depth, "rules of a rewriting at most").shows_default();
    line.option("--segments", options_.segments, "into how many segments a payload may be cut").shows_default();
    line.option("--load", options_.load, "what a motif takes from computation beside it, 0 to 1").shows_default();
    line.option("--only", options_.only,
                "schedule: write the best order of whole collectives; execution: the best rewritings in the program's "
                "order");
    line.option("--svg", options_.svg, "draw two steps of the joint plan into this file");
    line.flag("--json", options_.json, "print JSON");
  }

  Result<int> run() override {
    const Result<Question> question = understand(options_);
    if (!question.ok()) return question.status();
    const Result<Answer> answer = plan_step(*question, options_);
    if (!answer.ok()) return answer.status();
    const Json json = schedule_json(*question, *answer);
    if (!options_.output.empty())
      if (Status written = replace_file(options_.output, json.dump(1) + "\n"); !written.ok())
        return Status(written.code(), "--output " + written.message());
    if (!options_.svg.empty())
      if (Status written = replace_file(options_.svg, timeline_svg(picture_of(*question, *answer))); !written.ok())
        return Status(written.code(), "--svg " + written.message());
    if (options_.json)
      std::cout << json.dump(2) << '\n';
    else
      print_text(*question, *answer);
    return 0;
  }

 private:
  Options options_;
};

}  // namespace

std::unique_ptr<Command> schedule_command() { return std::make_unique<ScheduleCommand>(); }

}  // namespace plait::tuner
