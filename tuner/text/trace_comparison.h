// A measured call against what was predicted for its plan: where the time went, and where they differ most. Pure.
#pragma once

#include <string>
#include <vector>

#include "plan/choose/timeline.h"
#include "tuner/text/layer.h"
#include "tuner/text/trace_reader.h"

namespace plait::tuner {

// Times of a rank, mean over all ranks.
struct ComparedPart {
  std::string name;                    // "between nodes", "within nodes", "copies and sums", "in no step"
  double predicted = 0, measured = 0;  // seconds with any of its steps under way; steps of two parts may overlap
  struct Kind {
    std::string name;  // "recv_reduce"
    double seconds = 0;
  };
  std::vector<Kind> kinds;  // of the measured steps, the longest first
};

struct TraceComparison {
  double predicted = 0, measured = 0;  // seconds of the call
  std::vector<ComparedPart> parts;     // those that either has
  std::size_t most = 0;                // the part in which they differ most
};

// Precondition: as many ranks on both sides.
TraceComparison compare(const PlanTimeline& timeline, const MeasuredCall& call);

}  // namespace plait::tuner
