// A program's step as lanes of boxes: its computation, and each communicator's operations. Pure.
#pragma once

#include <vector>

#include "plan/step/trace.h"
#include "tuner/picture/timeline_svg.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

TimelinePicture trace_picture(const plan::step::Trace& trace, const std::vector<plan::step::TaskSpan>& spans);

}  // namespace plait::tuner
