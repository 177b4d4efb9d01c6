// A plan's predicted timeline, and beside it a measured call's, as lanes of boxes. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/choose/timeline.h"
#include "topo/hierarchy.h"
#include "tuner/picture/timeline_svg.h"
#include "tuner/text/layer.h"
#include "tuner/text/trace_reader.h"

namespace plait::tuner {

// Of larger jobs these ranks stand for all.
inline constexpr std::size_t most_shown_ranks = 12;
inline constexpr int most_drawn_chunks = 512;

// Ascending: all of them, or of the first node the leaders of its parts and then others, and of the other nodes their
// first ranks, each half of the number.
std::vector<int> shown_ranks(const Hierarchy& hierarchy, std::size_t most);

// A lane for each shown rank, and one for each rail of their nodes. A rank's boxes are the chunks in the plan's
// instructions, a rail's are the times for which they occupy it, with their sum over the predicted time in its name.
TimelinePanel predicted_panel(const PlanTimeline& timeline, const Hierarchy& hierarchy);
// A lane for each shown rank. Neighbouring steps of one kind that are too short to be seen at this width of the picture
// (`span`, seconds) are one box.
TimelinePanel measured_panel(const MeasuredCall& call, const Hierarchy& hierarchy, double span);

// What the colours of the plan's instructions mean; of a measured call's steps too, where there is one.
std::vector<TimelinePicture::Entry> timeline_legend(const PlanTimeline& timeline, const MeasuredCall* call);

}  // namespace plait::tuner
