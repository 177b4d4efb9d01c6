#include "plan/model/schedule.h"

#include <array>

namespace plait::plan {

std::string_view name(StepKind kind) {
  constexpr std::array<std::string_view, 6> names = {"send", "recv", "recv_reduce", "copy", "reduce", "shm_collective"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name(ShmCollectiveKind kind) {
  constexpr std::array<std::string_view, 8> names = {"all_reduce", "reduce", "reduce_scatter", "broadcast",
                                                     "all_gather", "gather", "scatter",        "all_to_all"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {

std::string describe(const Schedule& schedule, RunList list) {
  constexpr std::array<char, 3> letters = {'i', 'o', 's'};
  std::string text;
  for (std::uint32_t i = list.first; i < list.first + list.count; ++i) {
    const CellRun& run = schedule.runs[i];
    text += ' ';
    text += letters[static_cast<std::size_t>(run.space)];
    text += std::to_string(run.first);
    if (run.count > 1) text += "-" + std::to_string(run.cell(run.count - 1));
    if (run.count > 1 && run.apart > 1) text += "/" + std::to_string(run.apart);
  }
  return text;
}

}  // namespace

std::string describe(const Schedule& schedule) {
  std::string text;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    text += std::to_string(i) + " " + std::string(name(step.kind));
    if (step.collective >= 0)
      text += " " + std::string(name(schedule.collectives[static_cast<std::size_t>(step.collective)].kind));
    if (step.peer >= 0) text += " " + std::string(name(step.channel)) + " rank " + std::to_string(step.peer);
    if (step.rail != any_rail) text += " rail " + std::to_string(step.rail);
    if (step.source.count > 0) text += " from" + describe(schedule, step.source);
    if (step.operand.count > 0) text += " with" + describe(schedule, step.operand);
    if (step.destination.count > 0) text += " to" + describe(schedule, step.destination);
    if (step.after.count > 0) text += " after";
    for (std::uint32_t k = 0; k < step.after.count; ++k)
      text += " " + std::to_string(schedule.after[step.after.first + k]);
    text += '\n';
  }
  return text;
}

}  // namespace plait::plan
