#include "tuner/picture/pipeline_picture.h"

#include <utility>

#include "core/units.h"

namespace plait::tuner {
namespace {

using enum PipelineTaskKind;

int hue_of(PipelineTaskKind kind) {
  switch (kind) {
    case forward:
      return 0;
    case backward:
      return 1;
    case weight:
      return 2;
    case send_activation:
    case receive_activation:
      return 3;
    default:  // gradients
      return 4;
  }
}

TimelineInk ink_of(const PipelineTask& task) { return {hue_of(task.kind), task.micro_batch % 2}; }

std::string words_of(PipelineTaskKind kind, bool weights_apart) {
  switch (kind) {
    case forward:
      return "forward";
    case backward:
      return weights_apart ? "backward, of activations" : "backward";
    case weight:
      return "backward, of weights";
    case send_activation:
    case receive_activation:
      return "sends activations";
    default:
      return "sends gradients";
  }
}

}  // namespace

TimelinePanel pipeline_panel(const PipelineEstimate& estimate) {
  TimelinePanel panel;
  panel.title = "predicted";
  for (std::size_t stage = 0; stage < estimate.run.stages.size(); ++stage) {
    TimelineLane computing{"stage " + std::to_string(stage), {}}, sending{"sends", {}};
    for (const TimedPipelineTask& timed : estimate.run.stages[stage].tasks) {
      const std::string batch = std::to_string(timed.task.micro_batch);
      TimelineBox box;
      box.begin = timed.begin;
      box.end = timed.end;
      box.ink = ink_of(timed.task);
      box.title = words_of(timed.task.kind, estimate.schedule.weights_apart) + ", micro-batch " + batch + ": " +
                  format_seconds(timed.begin) + " to " + format_seconds(timed.end);
      box.label = batch;
      box.row = timed.task.kind == send_gradient ? 1 : 0;
      (computes(timed.task.kind) ? computing : sending).boxes.push_back(std::move(box));
    }
    panel.lanes.push_back(std::move(computing));
    if (!sending.boxes.empty()) panel.lanes.push_back(std::move(sending));
  }
  return panel;
}

std::vector<TimelinePicture::Entry> pipeline_legend(const PipelineEstimate& estimate) {
  std::vector<TimelinePicture::Entry> legend;
  for (const PipelineTaskKind kind : {forward, backward, weight, send_activation, send_gradient})
    if ((kind != weight || estimate.schedule.weights_apart) && (!sends(kind) || estimate.schedule.stages.size() > 1))
      legend.push_back({{hue_of(kind), 0}, words_of(kind, estimate.schedule.weights_apart)});
  return legend;
}

}  // namespace plait::tuner
