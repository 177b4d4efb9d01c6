// What a call takes whose data are in the memory of a node's GPUs: between the devices, by the channel `cuda`, or by
// way of the processor's memory. By the figures that `plait probe` has measured (docs/probe.md); a machine without them
// has no prediction.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/model/collective.h"
#include "plan/model/layer.h"
#include "plan/model/machine.h"
#include "topo/hierarchy.h"

namespace plait::plan {

struct DeviceCost {
  std::optional<double> between_s;  // none: there are several nodes, a link is not known, or devices have no such call
  double staged_s = 0;              // the plan's time, and the copies before and behind it
};

// `plan_s`: of the plan that would run in the processor's memory. None where the machine's copies are not known.
//
// Between devices (tl/device/device_collective.h) two rounds of words are paid, and a device's beginning; then the
// bytes of the busiest rank in the busier direction, at each link's rate in turn, as its port has one at a time:
//   allreduce, reduce  its share of all vectors comes, its result leaves: 2 (n - 1) / n of the vector
//   reduce_scatter_block, allgather, gather, scatter, alltoall  n - 1 parts
//   bcast  the root's vector n - 1 times
// Staging takes as long as copies and plan one after the other: how much of both overlaps is not modelled.
std::optional<DeviceCost> device_cost(const Call& call, const Hierarchy& hierarchy, const Machine& machine,
                                      double plan_s);

}  // namespace plait::plan
