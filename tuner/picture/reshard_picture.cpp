#include "tuner/picture/reshard_picture.h"

#include <utility>
#include <vector>

#include "core/units.h"
#include "tuner/picture/timeline_svg.h"
#include "tuner/text/words.h"

namespace plait::tuner {

std::string reshard_svg(const ReshardReport& report) {
  const reshard::Plan& plan = report.shown_plan();
  TimelinePanel panel{
      .title = std::string(name(plan.options.strategy)) + ", " + std::string(name(plan.options.scheduler)),
      .note = "each host's network interface, in both directions",
      .lanes = {}};
  std::vector<TimelineLane> sends, receives;
  for (int host = 0; host < plan.hosts; ++host) {
    sends.push_back({"host " + std::to_string(host) + " sends", {}});
    receives.push_back({"host " + std::to_string(host) + " receives", {}});
  }
  for (std::size_t leg = 0; leg < plan.legs.size(); ++leg) {
    const auto task = static_cast<std::size_t>(plan.legs[leg].task);
    const reshard::UnitTask& unit = plan.unit.tasks[task];
    const std::string label = std::to_string(task);
    const TimelineBox box{.begin = plan.schedule.begin[leg],
                          .end = plan.schedule.begin[leg] + plan.transfers[leg].seconds,
                          .ink = {.hue = unit.source, .shade = unit.destination},
                          .row = 0,
                          .title = "unit task " + label + ", " + format_bytes(unit.bytes) + ": ranks " +
                                   listed(plan.unit.holders(unit)) + " to " + listed(plan.unit.receivers(unit)),
                          .label = label};
    sends[static_cast<std::size_t>(plan.schedule.sender[leg])].boxes.push_back(box);
    for (const int host : plan.transfers[leg].forwarders) sends[static_cast<std::size_t>(host)].boxes.push_back(box);
    for (const int host : plan.transfers[leg].receivers) receives[static_cast<std::size_t>(host)].boxes.push_back(box);
  }
  for (std::size_t host = 0; host < sends.size(); ++host)
    for (TimelineLane* lane : {&sends[host], &receives[host]})
      if (!lane->boxes.empty()) panel.lanes.push_back(std::move(*lane));
  return timeline_svg({.title = "Resharding " + report.title,
                       .plan = std::to_string(plan.unit.tasks.size()) + " unit tasks",
                       .subtitle = "machine " + report.machine,
                       .legend = {},
                       .limit = plan.lower_bound,
                       .limit_text = "lower bound",
                       .panels = {std::move(panel)}});
}

}  // namespace plait::tuner
