// What an instruction costs on the levels of one reduction group, next to all the other groups that do the same.
#pragma once

#include <array>
#include <vector>

#include "plan/model/layer.h"
#include "plan/model/machine.h"
#include "plan/model/program.h"
#include "plan/synthesis/level_state.h"
#include "plan/synthesis/placement.h"
#include "topo/hierarchy.h"

namespace plait::plan {

// One level of the group, with the link between its children.
struct ModelLevel {
  int cardinality = 1;  // children of a group; the most where groups differ
  LinkLevel link;
  double behind = 1;  // ranks of the system behind each child's port, whatever group they belong to
  // What a chunk alone needs of the port, in multiples of the time for which it occupies it: more than 1 where chunks
  // are dealt out to several rails, and each has one.
  double alone = 1;
};

struct GroupModel {
  std::vector<ModelLevel> levels;  // outermost first
  int members = 1;                 // ranks of the group
  double reduce_seconds_per_byte = 0;
  double start_seconds_per_byte = 0;
  double ranks_per_core = 1;
  std::uint8_t uneven = 0;  // bit set of levels whose groups differ in size
  // Levels from here on split a node whose ranks have shared memory (Algorithm::shared); none by default.
  int first_in_node = most_levels;
};

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

// What an instruction with an algorithm costs, as far as it does not depend on the state that it finds: a few products
// then give its cost for a state. Bytes are those of all pieces of one group together.
struct InstructionShape {
  struct PortUse {
    double messages = 0;  // seconds a chunk: the port's message rate
    double volume = 0;    // seconds a byte that the busiest port is occupied
    double own = 0;       // seconds a byte of the stages that this level alone holds up
    double alone = 1;     // as ModelLevel
  };
  // A processor's time; `shared` is what all ranks' work adds where they share cores, times the share of active ranks.
  struct Work {
    double own = 0, shared = 0;
    double at(double active) const { return own + shared * active; }
  };
  Instruction instruction;
  double wait = 0;           // seconds of latency and overhead on the way of a chunk
  Work queueing;             // seconds a chunk, in the fill
  Work fill_bytes;           // seconds a byte, in the fill
  Work busy, busy_bytes;     // of the busiest processor: seconds a chunk, seconds a byte
  bool widest_port = false;  // the fill is the longest of the ports' times, not the sum of the levels' own ones
  std::array<PortUse, most_levels> ports{};
};
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
