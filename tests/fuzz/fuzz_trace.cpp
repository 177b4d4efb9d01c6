// A trace that is read gives a call whose steps lie within it, and can be compared with a prediction and drawn.
#include <cmath>

#include "tests/fuzz/fuzz.h"
#include "topo/shape.h"
#include "tuner/picture/plan_picture.h"
#include "tuner/text/trace_comparison.h"
#include "tuner/text/trace_reader.h"

using namespace plait;
using namespace plait::topo;
using namespace plait::tuner;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto call = measured_call(fuzz::text_of(data, size), {Collective::allreduce, 1024, 2, "AR.1(ring)"});
  if (!call.ok()) {
    fuzz::require(!call.status().message().empty(), "a refusal says why");
    fuzz::require(call.status().message().find('\n') == std::string::npos, "in one line");
    return 0;
  }
  fuzz::require(call->ranks.size() == 2 && call->calls > 0, "the call has its ranks");
  for (const MeasuredRank& rank : call->ranks) {
    fuzz::require(std::isfinite(rank.begin) && std::isfinite(rank.end) && rank.begin <= rank.end, "times are times");
    for (const MeasuredStep& step : rank.steps) fuzz::require(step.begin <= step.end, "steps end after they begin");
  }
  static const auto shape = parse_shape("2x1");
  static const Machine machine = default_machine();
  static const auto timeline =
      plan_timeline("AR.1(ring)", {.collective = Collective::allreduce, .count = 1024, .element_bytes = 1},
                    {.hierarchy = shape->hierarchy, .machine = machine});
  const TraceComparison comparison = compare(*timeline, *call);
  fuzz::require(comparison.most < comparison.parts.size(), "they differ most somewhere");
  TimelinePicture picture;
  picture.legend = timeline_legend(*timeline, &*call);
  picture.panels = {predicted_panel(*timeline, shape->hierarchy),
                    measured_panel(*call, shape->hierarchy, call->seconds)};
  const std::string svg = timeline_svg(picture);
  fuzz::require(svg.find("=\"nan") == std::string::npos && svg.ends_with("</svg>\n"), "the picture is drawn");
  return 0;
}
