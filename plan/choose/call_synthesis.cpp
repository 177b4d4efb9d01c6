#include "plan/choose/call_synthesis.h"

#include <algorithm>
#include <bit>
#include <set>

#include "plan/lower/lowering.h"

namespace plait::plan {

namespace {

constexpr int most_chunks = 64;
constexpr double shortest_chunk_bytes = 16 << 10;
constexpr double longest_message_bytes = 64 << 10;
// Each end of a pipeline of so many pieces takes a thirty-second of the whole.
constexpr int most_staged_chunks = 32;
constexpr double shortest_staged_message_bytes = 32 << 10;
// Blocks times ranks, and blocks where only one's own rank is looked at.
constexpr std::size_t most_cells = std::size_t{1} << 14;
constexpr int most_counted_ranks = 256;

bool vrank_is_rank(const Hierarchy& hierarchy) {
  for (int rank = 0; rank < hierarchy.ranks(); ++rank)
    if (hierarchy.vrank_of(rank) != rank) return false;
  return true;
}

// All levels; but an operator that does not commute needs vranks in rank order, or else one level of all ranks.
GridKind grid_for(const Call& call, const Hierarchy& hierarchy) {
  return keeps_rank_order(call) && !vrank_is_rank(hierarchy) ? GridKind::rank_order : GridKind::full;
}

// One level of all ranks, as the cost model sees it: the links are those of the outermost level.
GroupModel flattened(const GroupModel& model) {
  GroupModel flat = model;
  flat.levels.resize(1);
  flat.levels.front().cardinality = model.members;
  flat.uneven = 0;
  return flat;
}

int chunks_of(double bytes, double chunk_bytes) {
  const auto chunks = static_cast<unsigned>(std::min<double>(bytes / chunk_bytes, most_chunks));
  return static_cast<int>(std::bit_floor(std::max(chunks, 1u)));
}

}  // namespace

bool keeps_rank_order(const Call& call) { return !call.commutative && reduces(call.collective); }

Grid grid_on(const Hierarchy& hierarchy, GridKind kind, int leader, bool shared_memory) {
  Grid grid(hierarchy, kind, leader);
  if (!shared_memory) grid.forget_nodes();
  return grid;
}

int bytes_factor(Collective collective, int ranks) {
  switch (collective) {
    case Collective::allgather:
    case Collective::gather:
    case Collective::scatter:
    case Collective::reduce_scatter_block:
      return ranks;
    default:
      return 1;
  }
}

int most_chunks_of(double bytes) { return chunks_of(bytes, shortest_chunk_bytes); }

int most_chunks_for(int segments, int ranks) {
  const std::size_t counted = ranks <= most_counted_ranks ? static_cast<std::size_t>(ranks) : 1;
  const std::size_t cells = static_cast<std::size_t>(segments) * counted;
  return static_cast<int>(std::bit_floor(std::max<std::size_t>(most_cells / cells, 1)));
}

bool follows_copies_badly(double bytes, int chunks) {
  return chunks < most_staged_chunks && bytes / chunks > shortest_staged_message_bytes;
}

bool has_long_messages(int nodes, double bytes, int segments, int chunks) {
  return nodes > 1 && bytes / segments / chunks > longest_message_bytes;
}

CallSynthesis synthesis_of(const Call& call, const CandidateContext& context) {
  CallSynthesis synthesis;
  synthesis.kind = grid_for(call, context.hierarchy);
  synthesis.grid = grid_on(context.hierarchy, synthesis.kind, -1, context.shared_memory);
  synthesis.task = task_on(synthesis.grid, call.collective, keeps_rank_order(call));
  synthesis.task.provable = context.must_be_proven;
  synthesis.model = group_model(context.machine, context.hierarchy, context.siblings);
  if (synthesis.kind == GridKind::rank_order) synthesis.model = flattened(synthesis.model);
  synthesis.model.first_in_node = synthesis.grid.first_in_node();
  const int ranks = context.hierarchy.ranks();
  SearchOptions& options = synthesis.options;
  options.bytes = static_cast<double>(payload_bytes(call, ranks)) * bytes_factor(call.collective, ranks);
  options.most_chunks = most_chunks_of(options.bytes);
  if (context.chunk_bytes > 0)
    options.fewest_chunks = options.most_chunks = chunks_of(options.bytes, static_cast<double>(context.chunk_bytes));
  return synthesis;
}

void bind_to_rails(CallSynthesis& synthesis, std::span<const std::int8_t> rails) {
  const std::set<std::int8_t> different(rails.begin(), rails.end());
  int used = static_cast<int>(different.size());
  for (const ModelLevel& level : synthesis.model.levels)
    if (level.link.network && level.link.rails > 1) used = std::min(used, level.link.rails);
  if (used > 0) synthesis.model = with_chunks_on_rails(synthesis.model, used);
}

}  // namespace plait::plan
