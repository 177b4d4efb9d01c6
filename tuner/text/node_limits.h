// What the memory of one node lets a collective do, and the least time that this leaves one (docs/bench.md). Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plan/model/collective.h"
#include "tuner/text/layer.h"
#include "tuner/text/measurement.h"

namespace plait::tuner {

// How long one move of so many bytes takes.
struct MovePoint {
  std::size_t bytes = 0;
  double seconds = 0;
};

// Ascending in bytes.
using MoveCurve = std::vector<MovePoint>;

// Of a size between two points: the rate is interpolated over the logarithm of the size. Beyond the ends the nearest
// rate, but never less than the time of the smallest point. 0 of an empty curve.
double seconds_at(const MoveCurve& curve, double bytes);

struct NodeLimits {
  int ranks = 0;  // on the node
  int cores = 0;  // that they may use together

  // By one rank alone and by all at once, as the slowest of them sees it. Warm: the same buffers again and again; cold:
  // buffers that are no longer in any cache. The better of ordinary and of streaming stores.
  MoveCurve copy_one, copy_all, copy_one_cold, copy_all_cold;
  MoveCurve reduce_f32_one, reduce_f32_all, reduce_i32_one, reduce_i32_all;  // bytes of the result; two operands
  // From a peer's private memory through the kernel (empty where that is forbidden), and from memory shared with it.
  MoveCurve pull_one, pull_all, mapped_one, mapped_all;

  // Two ranks answer each other through one cache line: spinning, each on a core of its own (0 where they have only
  // one), and glancing and yielding, both on one core.
  double spin_round_trip_s = 0, yield_round_trip_s = 0;
};

// The least time of a call with all ranks on the node. `bytes` as in CallSpec.
double limit_seconds(const NodeLimits& limits, Collective collective, std::size_t bytes, BufferKind buffers);

}  // namespace plait::tuner
