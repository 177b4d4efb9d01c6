// A run of a fused operator as lanes of boxes: one a worker, and one for the messages of each rank. Pure.
#pragma once

#include "tuner/picture/timeline_svg.h"
#include "tuner/text/layer.h"
#include "tuner/text/worker_reader.h"

namespace plait::tuner {

// Of more lanes the first ones are shown, and the picture says how many there are.
inline constexpr std::size_t most_worker_lanes = 48;

TimelinePicture worker_picture(const FusedRun& run);

}  // namespace plait::tuner
