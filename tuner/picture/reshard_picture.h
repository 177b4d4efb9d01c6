// A resharding's schedule as a picture. Pure.
#pragma once

#include <string>

#include "tuner/text/reshard_report.h"

namespace plait::tuner {

// A lane for each side of each host: the transfers as the shown row's schedule has them. An SVG document.
std::string reshard_svg(const ReshardReport& report);

}  // namespace plait::tuner
