// A pipeline's predicted iteration as lanes of boxes. Pure.
#pragma once

#include <string>

#include "plan/pipeline/variant.h"
#include "tuner/picture/timeline_svg.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// Stages times micro-batches; more cannot be told apart.
inline constexpr int most_drawn_batches = 2048;

// For each stage a lane of what it computes, and where it sends a lane of its transfers: activations above, gradients
// below. Every other micro-batch is in a lighter shade.
TimelinePanel pipeline_panel(const PipelineEstimate& estimate);

std::vector<TimelinePicture::Entry> pipeline_legend(const PipelineEstimate& estimate);

}  // namespace plait::tuner
