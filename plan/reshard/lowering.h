// From a planned resharding to the schedules of all ranks, and to where its blocks lie in a rank's buffers.
#pragma once

#include <span>

#include "core/status.h"
#include "plan/lower/bound_schedule.h"
#include "plan/model/builder.h"
#include "plan/model/routes.h"
#include "plan/reshard/plan.h"

namespace plait::plan::reshard {

// All ranks' schedules; prove() them before their first run. A block is a chunk of a unit task: equal shares of its
// elements in row-major order. Fails where a rank would not get what it wants, which would be a defect.
Result<LoweredPlan> lower(const Plan& plan, std::span<const int> host_of, Routes routes);

// Where the blocks lie in `rank`'s buffers: its shards of the source and of the destination, dense and row-major.
BlockPlaces places_of(const Task& task, const Plan& plan, const Semantics& semantics, int rank);

// Where `piece` lies in a dense row-major buffer that holds `local`; its bytes are those of its elements in row-major
// order. Preconditions: `piece` lies within `local` and has elements.
RunGrid grid_of(const Box& piece, const Box& local, std::size_t element_bytes);

// This rank's shard of the source or the destination; no elements where it has none.
Box shard_of(const Mesh& mesh, const ShardingSpec& spec, const std::vector<std::int64_t>& shape, int rank);

}  // namespace plait::plan::reshard
