#include "plan/lower/placement.h"

namespace plait::plan {

Placement dense_placement(const Call& call) {
  Placement placement;
  placement.element_bytes = call.element_bytes;
  placement.counts = call.counts;
  switch (call.collective) {
    case Collective::barrier:
    case Collective::bcast:
    case Collective::reduce:
    case Collective::allreduce:
      placement.vector_elements = call.count;
      break;
    default:
      placement.segment_elements = call.count;
  }
  return placement;
}

}  // namespace plait::plan
