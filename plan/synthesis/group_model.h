// What an instruction costs on the levels of one reduction group, next to all the other groups that do the same.
#pragma once

#include <array>

#include "plan/algorithm/group_cost.h"
#include "plan/model/layer.h"
#include "plan/model/machine.h"
#include "plan/synthesis/level_state.h"
#include "plan/synthesis/placement.h"
#include "topo/hierarchy.h"

namespace plait::plan {

// Of a matrix' reduction group on a system: system levels take the machine's links from the outermost inwards.
GroupModel group_model(const Machine& machine, const GridRequest& request, const ParallelismMatrix& matrix);
// Of a communicator. `siblings`: ranks of the job on a node, over those of this communicator (those of a split
// communicator share the NICs); 1 when the communicator has them all.
GroupModel group_model(const Machine& machine, const Hierarchy& hierarchy, double siblings);

// The model when chunk c goes over rail c mod `rails` of each network port, instead of in parts over all of them: a
// chunk alone has one rail's rate, and a message is one part of the port's, so that its processor time is one part's as
// well. Precondition: the ports have `rails` rails or more; plans have as many chunks at least.
GroupModel with_chunks_on_rails(const GroupModel& model, int rails);

// fixed + per_chunk_volume / chunks: a time (seconds) that partly shrinks when the payload is cut into chunks.
struct Amount {
  double fixed = 0;
  double volume = 0;
  double at(double chunks) const { return fixed + volume / chunks; }
  Amount& operator+=(const Amount& other) {
    fixed += other.fixed;
    volume += other.volume;
    return *this;
  }
};

// Of one instruction, or the sum of several. A chunk needs `fill` from its first message to its last, and occupies each
// level's busiest port for `load`; the last load is the busiest processor's.
struct PipelineCost {
  Amount fill;
  std::array<Amount, most_levels + 1> load{};
};

// Seconds for `chunks` chunks: fill + (chunks - 1) x the slowest level.
double pipeline_seconds(const PipelineCost& cost, int levels, int chunks);

InstructionShape shape_of(const GroupModel& model, const Instruction& instruction);

// What the state before an instruction over levels first..last makes of its shape.
struct StateView {
  double share = 1;                        // of the payload that a group works on
  double active = 1;                       // share of the ranks that hold anything
  std::array<double, most_levels> idle{};  // by level: 1 over the groups behind its ports that hold nothing
};
StateView view_of(const GroupModel& model, LevelState before, int first, int last);

// Cost of an instruction in the state before it, for a collective over `bytes` bytes (of the whole vector; of all
// ranks' segments together where ranks have segments of their own). Precondition: apply() allows it and the algorithm
// fits.
PipelineCost instruction_cost(const GroupModel& model, double bytes, LevelState before, const Instruction& instruction);
PipelineCost cost_of(const InstructionShape& shape, const StateView& view, double bytes, int levels);

}  // namespace plait::plan
