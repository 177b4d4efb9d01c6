#include "plan/step/step_plan.h"

#include <utility>

#include "core/json.h"

namespace plait::plan::step {

StepSchedule schedule_of(const Step& step, int ranks, const PricedStep& priced, const joint::JointPlan& plan) {
  StepSchedule schedule{.step = step.name, .ranks = ranks, .seconds = plan.seconds};
  std::vector<int> numbers;  // by task
  for (std::size_t task = 0; task < step.tasks.size(); ++task) {
    const joint::Task& priced_task = priced.graph.tasks[task];
    numbers.push_back(static_cast<int>(schedule.operations.size()));
    if (priced_task.kind == joint::TaskKind::computation) continue;
    const joint::Option& option = priced_task.options[static_cast<std::size_t>(plan.options[task])];
    schedule.operations.push_back({.name = step.tasks[task].name,
                                   .communicator = step.tasks[task].communicator,
                                   .collective = *step.tasks[task].collective,
                                   .bytes = step.tasks[task].bytes,
                                   .blocking = step.tasks[task].blocking,
                                   .persistent = step.tasks[task].persistent,
                                   .plan = option.name,
                                   .pieces = static_cast<int>(option.pieces.size())});
  }
  for (std::size_t channel = 0; channel < plan.channel_order.size(); ++channel) {
    ScheduledChannel& own = schedule.channels.emplace_back();
    own.name = priced.graph.channels[channel].name;
    for (const joint::OrderedPiece& piece : plan.channel_order[channel])
      own.order.push_back(
          {.operation = numbers[static_cast<std::size_t>(piece.task)], .piece = piece.piece, .ahead = piece.ahead});
  }
  return schedule;
}

std::string schedule_text(const StepSchedule& schedule) {
  Json json = {{"plait_schedule", 1}, {"step", schedule.step}, {"ranks", schedule.ranks}};
  json["predicted_seconds"] = {{"as_issued", schedule.as_issued_seconds}, {"joint", schedule.seconds}};
  json["operations"] = Json::array();
  for (const ScheduledOperation& operation : schedule.operations)
    json["operations"].push_back({{"name", operation.name},
                                  {"collective", name(operation.collective)},
                                  {"bytes", operation.bytes},
                                  {"communicator", operation.communicator},
                                  {"blocking", operation.blocking},
                                  {"persistent", operation.persistent},
                                  {"plan", operation.plan},
                                  {"pieces", operation.pieces}});
  json["channels"] = Json::array();
  for (const ScheduledChannel& channel : schedule.channels) {
    Json order = Json::array();
    for (const ScheduledPiece& place : channel.order)
      order.push_back({{"operation", schedule.operations[static_cast<std::size_t>(place.operation)].name},
                       {"piece", place.piece},
                       {"steps_ahead", place.ahead}});
    json["channels"].push_back({{"name", channel.name}, {"order", std::move(order)}});
  }
  return json.dump(1) + "\n";
}

Result<StepSchedule> plan_step(const Step& step, const Hierarchy& hierarchy, const Machine& machine,
                               const OptionLimits& limits, double seconds) {
  const Result<PricedStep> priced = price_step(step, hierarchy, machine, limits);
  if (!priced.ok()) return priced.status();
  const joint::JointPlan issued = joint::joint_search(
      priced->graph,
      {.options = joint::OptionFreedom::greedy, .order = joint::OrderFreedom::as_issued, .seconds = seconds / 4});
  const joint::JointPlan plan = joint::joint_search(priced->graph, {.seconds = seconds});
  StepSchedule schedule = schedule_of(step, hierarchy.ranks(), *priced, plan);
  schedule.as_issued_seconds = issued.seconds;
  return schedule;
}

}  // namespace plait::plan::step
