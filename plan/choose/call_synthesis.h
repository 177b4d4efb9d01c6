// What the synthesis of a call's programs begins with: the grid, the task, the model of the links, and the sizes. The
// planner and the tuner both start here.
#pragma once

#include <cstdint>
#include <span>

#include "plan/choose/candidate_context.h"
#include "plan/model/collective.h"
#include "plan/model/grid.h"
#include "plan/synthesis/group_model.h"
#include "plan/synthesis/level_state.h"
#include "plan/synthesis/search.h"

namespace plait::plan {

struct CallSynthesis {
  GridKind kind = GridKind::full;
  Grid grid;
  SynthesisTask task;
  GroupModel model;
  SearchOptions options;
};
// Precondition: not alltoall, which has no programs.
CallSynthesis synthesis_of(const Call& call, const CandidateContext& context);

// The model when the chunks are dealt out to these rails in turn; as it is without any, or where the ports have no
// rails.
void bind_to_rails(CallSynthesis& synthesis, std::span<const std::int8_t> rails);

// An operator that does not commute, of a collective that reduces.
bool keeps_rank_order(const Call& call);

Grid grid_on(const Hierarchy& hierarchy, GridKind kind, int leader, bool shared_memory);

// Of the whole vector, or of all ranks' segments together: bytes of that for each byte that names the call's size.
int bytes_factor(Collective collective, int ranks);

// The most chunks that so many bytes in all are cut into: a power of two.
int most_chunks_of(double bytes);
// The most chunks of a plan with so many segments, a power of two: planning more blocks would take longer than the
// collective gains.
int most_chunks_for(int segments, int ranks);

// Long messages over the network are cut even where the model sees no gain in it, as long as it costs no more than this
// share of the time: a rank that gets its core late then holds up a piece, not the whole.
inline constexpr double cutting_may_cost = 0.02;
// Likewise where data may be staged, for each time that the messages are halved.
inline constexpr double staging_may_cost = 0.15;
// Whether so many chunks leave messages that hardly overlap with the copies of what is staged: a call is as long as its
// copies and its messages beside each other, but for the first and the last of them.
bool follows_copies_badly(double bytes, int chunks);
bool has_long_messages(int nodes, double bytes, int segments, int chunks);

}  // namespace plait::plan
