// How long slices are: a cost model.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fused/layer.h"
#include "plan/model/machine.h"

namespace plait::fused {

// What a message between two ranks costs beside its computation.
struct WayCost {
  double overhead_s = 0;  // of a message, whatever its length
  double seconds_per_byte = 0;
};

// Between the nodes of a machine, and within one, where the data is stored at its destination and told by a flag.
WayCost cost_between_nodes(const Machine& machine);
WayCost cost_within_node(const Machine& machine);

// Of D bytes for one owner in slices of S, D/S overheads are paid, and the last slice's way, S times a byte's, is
// hidden behind no computation. The sum is least at S = sqrt(D * overhead / seconds per byte). Between 4 KiB and 1 MiB.
std::size_t slice_bytes(const WayCost& cost, std::uint64_t bytes);

}  // namespace plait::fused
