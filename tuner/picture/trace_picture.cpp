#include "tuner/picture/trace_picture.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/units.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using plan::step::Task;
using plan::step::TaskSpan;
using plan::step::Trace;

std::string words_of(const Task& task, const TaskSpan& span) {
  std::string words = task.name + ", from " + format_seconds(span.begin);
  if (task.collective) words += ", " + std::string(name(*task.collective)) + " of " + format_bytes(task.bytes);
  words += span.ends_by_wait ? ", waited for after " : ", takes ";
  return words + format_seconds(span.end - span.begin);
}

// A hue for each collective, as they come; what blocks is of another shade.
class Inks {
 public:
  TimelineInk of(const Task& task) {
    if (!task.collective) return {-1, 0};
    const auto next = static_cast<int>(hues_.size());
    return {hues_.emplace(*task.collective, next).first->second, task.blocking ? 1 : 0};
  }

 private:
  std::map<Collective, int> hues_;
};

}  // namespace

TimelinePicture trace_picture(const Trace& trace, const std::vector<TaskSpan>& spans) {
  TimelinePicture picture;
  picture.title = trace.step.name;
  picture.plan = trace.step.of;
  picture.subtitle = plural(spans.size(), "task") + " in " + format_seconds(plan::step::seconds_of(spans));
  TimelinePanel panel{.title = "a step", .note = "", .lanes = {}};
  std::map<int, TimelineLane> lanes;  // -1: computation
  lanes[-1].name = "computation";
  std::map<TimelineInk, std::string> legend;
  Inks inks;
  for (std::size_t index = 0; index < spans.size(); ++index) {
    const Task& task = trace.step.tasks[index];
    const TaskSpan& span = spans[index];
    const TimelineInk ink = inks.of(task);
    TimelineLane& lane = lanes[task.collective ? task.communicator : -1];
    if (task.collective) {
      lane.name = "communicator " + std::to_string(task.communicator);
      legend[ink] = std::string(name(*task.collective)) + (task.blocking ? ", blocking" : "");
    }
    lane.boxes.push_back(
        {.begin = span.begin, .end = span.end, .ink = ink, .title = words_of(task, span), .label = task.name});
    if (span.ends_by_wait) panel.note = "Operations whose end is not known reach to where they are waited for.";
  }
  for (auto& [communicator, lane] : lanes) {
    pack_rows(lane.boxes);
    panel.lanes.push_back(std::move(lane));
  }
  for (const auto& [ink, text] : legend) picture.legend.push_back({ink, text});
  picture.panels.push_back(std::move(panel));
  return picture;
}

}  // namespace plait::tuner
