#include "tuner/text/reshard_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/units.h"
#include "plan/reshard/report.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;
using reshard::Plan;

constexpr std::size_t most_listed = 32;

std::string share_text(double bound, std::optional<double> seconds) {
  if (!seconds || *seconds <= 0 || bound <= 0) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * bound / *seconds);
  return text;
}

std::string line(const char* format, const std::string& a, const std::string& b, const std::string& c,
                 const std::string& d, const std::string& e, const std::string& f) {
  char text[256];
  std::snprintf(text, sizeof text, format, a.c_str(), b.c_str(), c.c_str(), d.c_str(), e.c_str(), f.c_str());
  return text;
}

std::string schedule_lines(const Plan& plan) {
  std::string text =
      line("%9s  %-4s %-16s %-22s %-10s %s\n", "begin", "host", "to hosts", "unit task", "bytes", "chunks");
  std::size_t lines = 0;
  for (const int index : plan.schedule.order) {
    if (lines++ == most_listed) return text + "  .. and " + std::to_string(plan.legs.size() - most_listed) + " more\n";
    const auto at = static_cast<std::size_t>(index);
    const auto task = static_cast<std::size_t>(plan.legs[at].task);
    text += line("%9s  %-4s %-16s %-22s %-10s %s\n", format_seconds(plan.schedule.begin[at]),
                 std::to_string(plan.schedule.sender[at]), listed(plan.transfers[at].receivers),
                 std::to_string(task) + ": " + listed(plan.unit.holders(plan.unit.tasks[task])) + " > " +
                     listed(plan.unit.receivers(plan.unit.tasks[task])),
                 format_bytes(plan.unit.tasks[task].bytes), std::to_string(plan.tasks[task].chunks));
  }
  return text;
}

Json task_json(const Plan& plan, std::size_t leg) {
  const auto task = static_cast<std::size_t>(plan.legs[leg].task);
  const reshard::UnitTask& unit = plan.unit.tasks[task];
  return {{"unit_task", task},
          {"bytes", unit.bytes},
          {"holders", plan.unit.holders(unit)},
          {"receivers", plan.legs[leg].receiver.empty() ? plan.unit.receivers(unit) : plan.legs[leg].receiver},
          {"sender_host", plan.schedule.sender[leg]},
          {"receiver_hosts", plan.transfers[leg].receivers},
          {"chunks", plan.tasks[task].chunks},
          {"begin_seconds", plan.schedule.begin[leg]},
          {"seconds", plan.transfers[leg].seconds}};
}

}  // namespace

std::string reshard_table(const ReshardReport& report) {
  const Plan& best = report.shown_plan();
  char planned[64];
  std::snprintf(planned, sizeof planned, "planned in %.1f ms", report.planning_seconds * 1e3);
  std::string text = report.title + ", machine " + report.machine + "\n" + std::to_string(best.unit.tasks.size()) +
                     " unit tasks, lower bound " + format_seconds(best.lower_bound) + ", " + planned + "\n\n";
  text += line("%-17s %-13s %12s %6s %12s %6s\n", "strategy", "scheduler", "predicted", "bound", "measured", "bound");
  for (const ReshardRow& row : report.rows) {
    const double predicted = predicted_seconds(row.plan);
    text += line("%-17s %-13s %12s %6s %12s %6s\n", std::string(name(row.plan.options.strategy)),
                 std::string(name(row.plan.options.scheduler)), format_seconds(predicted),
                 share_text(row.plan.lower_bound, predicted),
                 row.measured_seconds ? format_seconds(*row.measured_seconds) : "",
                 share_text(row.plan.lower_bound, row.measured_seconds));
  }
  text += "\n" + std::string(name(best.options.strategy)) + ", " + std::string(name(best.options.scheduler)) + ":\n";
  return text + schedule_lines(best);
}

std::string reshard_json(const ReshardReport& report) {
  const Plan& best = report.shown_plan();
  Json json = {{"unit_tasks", best.unit.tasks.size()},
               {"lower_bound_seconds", best.lower_bound},
               {"gap", reshard::gap(best)},
               {"planning_seconds", report.planning_seconds},
               {"machine", report.machine},
               {"hosts", report.host_of},
               {"results", Json::array()},
               {"schedule", Json::array()}};
  for (const ReshardRow& row : report.rows) {
    Json one = {{"strategy", name(row.plan.options.strategy)},
                {"scheduler", name(row.plan.options.scheduler)},
                {"seconds", predicted_seconds(row.plan)}};
    if (row.measured_seconds) one["measured_seconds"] = *row.measured_seconds;
    json["results"].push_back(std::move(one));
  }
  for (const int leg : best.schedule.order) json["schedule"].push_back(task_json(best, static_cast<std::size_t>(leg)));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace plait::tuner
