// The shape of a communicator as text: "4x2x8" is four nodes of two packages with eight ranks each, "1x8" eight ranks
// of one node, "4x1" a rank on each of four nodes, "2/4x2" two network switches with four nodes of two ranks each,
// "3,2,1" nodes of three, two and one ranks. "4x1*8" is the first of eight such communicators, whose ranks share their
// nodes.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "topo/hierarchy.h"

namespace plait::topo {

struct CommunicatorShape {
  Hierarchy hierarchy;  // rank = vrank
  double siblings = 1;  // ranks of the job on a node, over those of the communicator
};

// Empty where no such text tells the hierarchy: uneven ones of more than two levels.
std::string shape_text(const Hierarchy& hierarchy, double siblings);

// The usual form of a text, "4x2" for "4x1x2": what shape_text() gives of it. Fails as parse_shape() does, and costs
// little however many ranks there are.
Result<std::string> usual_shape(std::string_view text);

// At most 65,536 ranks. Fails (invalid) with what is wrong. What shape_text() gives is understood, and gives the same
// text again.
Result<CommunicatorShape> parse_shape(std::string_view text);

}  // namespace plait::topo
