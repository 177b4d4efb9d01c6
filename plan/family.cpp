#include "plan/family.h"

#include <algorithm>
#include <numeric>

namespace plait {

namespace {

// The ranks of each node (or other outermost group), each led by its first rank in place order, or by the root.
std::vector<std::vector<int>> led_nodes(const Semantics& semantics, const Hierarchy& hierarchy) {
  const Grid grid = make_grid(hierarchy, GridKind::nodes, rooted(semantics.collective()) ? semantics.root() : -1);
  std::vector<std::vector<int>> nodes;
  for (const int rank : grid.order) {
    if (grid.coordinate[static_cast<std::size_t>(rank)].back() == 0) nodes.emplace_back();
    nodes.back().push_back(rank);
  }
  return nodes;
}

std::vector<int> leaders_of(const std::vector<std::vector<int>>& nodes) {
  std::vector<int> leaders;
  for (const auto& members : nodes) leaders.push_back(members.front());
  return leaders;
}

std::vector<Segments> own_segments(const std::vector<int>& members) {
  std::vector<Segments> pieces;
  for (const int member : members) pieces.push_back({member});
  return pieces;
}

std::vector<int> flat_order(const Semantics& semantics, const Hierarchy& hierarchy) {
  return make_grid(hierarchy, GridKind::flat, rooted(semantics.collective()) ? semantics.root() : -1).order;
}

// Families that are no P² programs: the data of each rank is its own.

void leader_allgather(Builder& builder, const Hierarchy& hierarchy) {
  const auto nodes = led_nodes(builder.semantics(), hierarchy);
  for (const auto& members : nodes) direct_gather(builder, members, own_segments(members));
  ring_allgather(builder, leaders_of(nodes), nodes);
  Segments all(static_cast<std::size_t>(hierarchy.ranks()));
  std::iota(all.begin(), all.end(), 0);
  // A member has its own segment already; the leader sends the others in one message a node, so that each starts on
  // its way as soon as it is there.
  for (std::size_t source = 0; source < nodes.size(); ++source)
    for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
      for (const auto& members : nodes)
        for (std::size_t i = 1; i < members.size(); ++i) {
          Segments others = nodes[source];
          std::erase(others, members[i]);
          builder.move(members[0], members[i], blocks_of(builder.semantics(), others, chunk));
        }
}

void leader_reduce_scatter(Builder& builder, const Hierarchy& hierarchy) {
  const auto nodes = led_nodes(builder.semantics(), hierarchy);
  Segments all(static_cast<std::size_t>(hierarchy.ranks()));
  std::iota(all.begin(), all.end(), 0);
  for (const auto& members : nodes) tree_reduce(builder, members, all, Tree::flat);
  ring_reduce_scatter(builder, leaders_of(nodes), nodes);
  for (const auto& members : nodes) direct_scatter(builder, members, own_segments(members));
}

void flat_gather(Builder& builder, const Hierarchy& hierarchy) {
  const auto order = flat_order(builder.semantics(), hierarchy);
  direct_gather(builder, order, own_segments(order));
}

void tree_gather(Builder& builder, const Hierarchy& hierarchy) {
  const auto order = flat_order(builder.semantics(), hierarchy);
  binomial_gather(builder, order, own_segments(order));
}

void leader_gather(Builder& builder, const Hierarchy& hierarchy) {
  const auto nodes = led_nodes(builder.semantics(), hierarchy);
  for (const auto& members : nodes) direct_gather(builder, members, own_segments(members));
  direct_gather(builder, leaders_of(nodes), nodes);
}

void flat_scatter(Builder& builder, const Hierarchy& hierarchy) {
  const auto order = flat_order(builder.semantics(), hierarchy);
  direct_scatter(builder, order, own_segments(order));
}

void tree_scatter(Builder& builder, const Hierarchy& hierarchy) {
  const auto order = flat_order(builder.semantics(), hierarchy);
  binomial_scatter(builder, order, own_segments(order));
}

void leader_scatter(Builder& builder, const Hierarchy& hierarchy) {
  const auto nodes = led_nodes(builder.semantics(), hierarchy);
  direct_scatter(builder, leaders_of(nodes), nodes);
  for (const auto& members : nodes) direct_scatter(builder, members, own_segments(members));
}

void pairwise(Builder& builder, const Hierarchy& hierarchy) {
  pairwise_alltoall(builder, flat_order(builder.semantics(), hierarchy));
}

void leaders_exchange(Builder& builder, const Hierarchy& hierarchy) {
  leader_alltoall(builder, led_nodes(builder.semantics(), hierarchy));
}

// Operators that do not commute: reduce to rank 0 in rank order, then send the result where it belongs.

std::vector<int> by_rank(const Semantics& semantics) {
  std::vector<int> ranks(static_cast<std::size_t>(semantics.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Segments every_segment(const Semantics& semantics) {
  Segments all(static_cast<std::size_t>(semantics.segments()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void ordered_reduce(Builder& builder, const Hierarchy&) {
  const Semantics& semantics = builder.semantics();
  const Segments all = every_segment(semantics);
  tree_reduce(builder, by_rank(semantics), all, Tree::binomial);
  for (int chunk = 0; chunk < semantics.chunks(); ++chunk)
    builder.move(0, semantics.root(), blocks_of(semantics, all, chunk));
}

void ordered_reduce_scatter(Builder& builder, const Hierarchy&) {
  const std::vector<int> ranks = by_rank(builder.semantics());
  tree_reduce(builder, ranks, every_segment(builder.semantics()), Tree::binomial);
  binomial_scatter(builder, ranks, own_segments(ranks));
}

// Along the hierarchy where places are in rank order: each node's ranks are then neighbours.
std::vector<std::vector<int>> nodes_in_rank_order(const Hierarchy& hierarchy) {
  std::vector<std::vector<int>> nodes;
  const Grid grid = make_grid(hierarchy, GridKind::nodes, -1);
  for (const int rank : grid.order) {
    if (grid.coordinate[static_cast<std::size_t>(rank)].back() == 0) nodes.emplace_back();
    nodes.back().push_back(rank);
  }
  return nodes;
}

void reduce_in_order(Builder& builder, const std::vector<std::vector<int>>& nodes) {
  const Segments all = every_segment(builder.semantics());
  for (const auto& members : nodes) tree_reduce(builder, members, all, Tree::binomial);
  tree_reduce(builder, leaders_of(nodes), all, Tree::binomial);
}

void ordered_leader_reduce(Builder& builder, const Hierarchy& hierarchy) {
  const Semantics& semantics = builder.semantics();
  reduce_in_order(builder, nodes_in_rank_order(hierarchy));
  for (int chunk = 0; chunk < semantics.chunks(); ++chunk)
    builder.move(0, semantics.root(), blocks_of(semantics, every_segment(semantics), chunk));
}

void ordered_leader_reduce_scatter(Builder& builder, const Hierarchy& hierarchy) {
  const auto nodes = nodes_in_rank_order(hierarchy);
  reduce_in_order(builder, nodes);
  direct_scatter(builder, leaders_of(nodes), nodes);
  for (const auto& members : nodes) direct_scatter(builder, members, own_segments(members));
}

// Programs over all levels of a grid.

using enum Instruct;
using enum Algorithm;

// [what] on each level from the innermost up to level `top`, or from `top` down.
void append_inwards(Program& program, Instruct what, Algorithm algorithm, int top, int levels) {
  for (int level = top; level < levels; ++level) program.instructions.push_back({what, level, level, algorithm});
}
void append_outwards(Program& program, Instruct what, Algorithm algorithm, int levels, int top) {
  for (int level = levels - 1; level >= top; --level) program.instructions.push_back({what, level, level, algorithm});
}

Program reduce_allreduce_broadcast(int levels, Algorithm trees, Algorithm middle) {
  Program program;
  append_outwards(program, reduce, trees, levels, 1);
  program.instructions.push_back({all_reduce, 0, 0, middle});
  append_inwards(program, broadcast, trees, 1, levels);
  return program;
}

Program scatter_allreduce_gather(int levels, Algorithm inner, Algorithm middle) {
  Program program;
  append_outwards(program, reduce_scatter, inner, levels, 1);
  program.instructions.push_back({all_reduce, 0, 0, middle});
  append_inwards(program, all_gather, inner, 1, levels);
  return program;
}

Program each_level(Instruct what, Algorithm outermost, Algorithm inner, int levels, bool outermost_first) {
  Program program;
  if (outermost_first) program.instructions.push_back({what, 0, 0, outermost});
  if (outermost_first) append_inwards(program, what, inner, 1, levels);
  else append_outwards(program, what, inner, levels, 1);
  if (!outermost_first) program.instructions.push_back({what, 0, 0, outermost});
  return program;
}

constexpr int most_direct = 16;  // members beyond which a message to each of them is no candidate

class Collector {
 public:
  Collector(const Hierarchy& hierarchy, bool commutative) : hierarchy_(hierarchy), commutative_(commutative) {}

  void program(GridKind grid, Program program, bool pipelined) {
    const std::string label = std::string(name(grid)) + ":" + text(program);
    found_.push_back({label, grid, std::move(program), nullptr, pipelined});
  }
  void custom(GridKind grid, const char* label, void (*emit)(Builder&, const Hierarchy&), bool pipelined) {
    found_.push_back({std::string(name(grid)) + ":" + label, grid, {}, emit, pipelined});
  }

  void collect(Collective collective);
  std::vector<Candidate> take() { return std::move(found_); }

 private:
  void allreduce();
  void reduce_to_root();
  void bcast();
  void allgather();
  void gather_or_scatter(bool gather);
  void alltoall();
  void reduce_scatters();

  // Grids with two or more levels: `nodes`, and `full` where that is something else.
  std::vector<GridKind> deep_grids() const {
    if (hierarchy_.levels().size() < 2) return {};
    if (!has_nodes_grid(hierarchy_)) return {GridKind::full};
    if (hierarchy_.levels().size() == 2) return {GridKind::nodes};
    return {GridKind::nodes, GridKind::full};
  }
  int levels(GridKind grid) const {
    return grid == GridKind::nodes ? 2 : static_cast<int>(hierarchy_.levels().size());
  }
  bool place_is_rank() const {
    for (int rank = 0; rank < hierarchy_.ranks(); ++rank)
      if (hierarchy_.place_of(rank) != rank) return false;
    return true;
  }

  const Hierarchy& hierarchy_;
  bool commutative_;
  std::vector<Candidate> found_;
};

void Collector::collect(Collective collective) {
  switch (collective) {
    case Collective::barrier:
    case Collective::allreduce:
      return allreduce();
    case Collective::reduce:
      return reduce_to_root();
    case Collective::bcast:
      return bcast();
    case Collective::allgather:
    case Collective::allgatherv:
      return allgather();
    case Collective::gather:
      return gather_or_scatter(true);
    case Collective::scatter:
      return gather_or_scatter(false);
    case Collective::alltoall:
      return alltoall();
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
      return reduce_scatters();
    case Collective::count_:
      return;
  }
}

void Collector::allreduce() {
  const GridKind flat_grid = commutative_ ? GridKind::flat : GridKind::rank_order;
  program(flat_grid, {{{all_reduce, 0, 0, recursive_doubling}}}, false);
  if (!commutative_) program(flat_grid, {{{reduce, 0, 0, binomial}, {broadcast, 0, 0, binomial}}}, true);
  if (commutative_) program(flat_grid, {{{all_reduce, 0, 0, ring}}}, true);
  if (commutative_ && hierarchy_.ranks() <= most_direct) program(flat_grid, {{{all_reduce, 0, 0, direct}}}, false);
  if (!commutative_ && !place_is_rank()) return;
  for (const GridKind grid : deep_grids()) {
    program(grid, reduce_allreduce_broadcast(levels(grid), binomial, recursive_doubling), false);
    if (!commutative_) continue;
    program(grid, reduce_allreduce_broadcast(levels(grid), flat, ring), true);
    program(grid, reduce_allreduce_broadcast(levels(grid), chain, ring), true);
    program(grid, scatter_allreduce_gather(levels(grid), ring, ring), true);
    program(grid, scatter_allreduce_gather(levels(grid), ring, recursive_doubling), false);
    if (hierarchy_.nodes() > most_direct) continue;
    program(grid, reduce_allreduce_broadcast(levels(grid), binomial, direct), false);
    program(grid, scatter_allreduce_gather(levels(grid), ring, direct), false);
  }
}

void Collector::reduce_to_root() {
  if (!commutative_) {
    custom(GridKind::rank_order, "tree to rank 0, then root", ordered_reduce, true);
    if (place_is_rank() && has_nodes_grid(hierarchy_))
      custom(GridKind::nodes, "leaders in rank order, then root", ordered_leader_reduce, true);
    return;
  }
  program(GridKind::flat, {{{reduce, 0, 0, binomial}}}, false);
  program(GridKind::flat, {{{reduce, 0, 0, chain}}}, true);
  for (const GridKind grid : deep_grids()) {
    program(grid, each_level(reduce, binomial, binomial, levels(grid), false), false);
    program(grid, each_level(reduce, chain, flat, levels(grid), false), true);
    program(grid, each_level(reduce, chain, chain, levels(grid), false), true);
  }
}

void Collector::bcast() {
  program(GridKind::flat, {{{broadcast, 0, 0, binomial}}}, false);
  program(GridKind::flat, {{{broadcast, 0, 0, chain}}}, true);
  for (const GridKind grid : deep_grids()) {
    program(grid, each_level(broadcast, binomial, binomial, levels(grid), true), false);
    program(grid, each_level(broadcast, chain, flat, levels(grid), true), true);
    program(grid, each_level(broadcast, chain, chain, levels(grid), true), true);
  }
}

void Collector::allgather() {
  program(GridKind::flat, {{{all_gather, 0, 0, dissemination}}}, false);
  program(GridKind::flat, {{{all_gather, 0, 0, ring}}}, true);
  for (const GridKind grid : deep_grids()) {
    program(grid, each_level(all_gather, dissemination, direct, levels(grid), true), false);
    program(grid, each_level(all_gather, ring, direct, levels(grid), true), true);
  }
  if (has_nodes_grid(hierarchy_)) custom(GridKind::nodes, "leaders", leader_allgather, true);
}

void Collector::gather_or_scatter(bool gather) {
  custom(GridKind::flat, "direct", gather ? flat_gather : flat_scatter, false);
  custom(GridKind::flat, "binomial", gather ? tree_gather : tree_scatter, false);
  if (has_nodes_grid(hierarchy_)) custom(GridKind::nodes, "leaders", gather ? leader_gather : leader_scatter, true);
}

void Collector::alltoall() {
  custom(GridKind::flat, "pairwise", pairwise, false);
  if (has_nodes_grid(hierarchy_)) custom(GridKind::nodes, "leaders", leaders_exchange, false);
}

void Collector::reduce_scatters() {
  if (!commutative_) {
    custom(GridKind::rank_order, "tree to rank 0, then scatter", ordered_reduce_scatter, false);
    if (place_is_rank() && has_nodes_grid(hierarchy_))
      custom(GridKind::nodes, "leaders in rank order, then scatter", ordered_leader_reduce_scatter, false);
    return;
  }
  program(GridKind::flat, {{{reduce_scatter, 0, 0, direct}}}, false);
  program(GridKind::flat, {{{reduce_scatter, 0, 0, ring}}}, true);
  for (const GridKind grid : deep_grids())
    program(grid, each_level(reduce_scatter, ring, ring, levels(grid), false), true);
  if (has_nodes_grid(hierarchy_)) custom(GridKind::nodes, "leaders", leader_reduce_scatter, true);
}

// Whether every instruction's groups are of one size, as RS and AG need.
bool fits(const Candidate& candidate, const Hierarchy& hierarchy) {
  if (candidate.emit != nullptr) return true;
  const Grid grid = make_grid(hierarchy, candidate.grid, -1);
  if (grid.uniform || grid.levels == 1) return true;
  return std::none_of(candidate.program.instructions.begin(), candidate.program.instructions.end(),
                      [](const Instruction& instruction) {
                        return instruction.what == reduce_scatter || instruction.what == all_gather;
                      });
}

}  // namespace

std::vector<Candidate> candidates(Collective collective, const Hierarchy& hierarchy, bool commutative) {
  Collector collector(hierarchy, commutative);
  collector.collect(collective);
  std::vector<Candidate> found = collector.take();
  std::erase_if(found, [&](const Candidate& candidate) { return !fits(candidate, hierarchy); });
  return found;
}

Result<LoweredPlan> lower(const Candidate& candidate, Collective collective, int root, int chunks,
                          const Hierarchy& hierarchy, bool shared_memory) {
  const Grid grid = make_grid(hierarchy, candidate.grid, rooted(collective) ? root : -1);
  const Result<int> segments = candidate.emit != nullptr ? Result<int>(1) : segments_needed(candidate.program, grid);
  if (!segments.ok()) return segments.status();
  const Semantics semantics(collective, hierarchy.ranks(), root, *segments, chunks);
  std::vector<int> node_of;
  for (int rank = 0; rank < hierarchy.ranks(); ++rank) node_of.push_back(hierarchy.node_of(rank));
  Builder builder(semantics, node_of, shared_memory);
  if (candidate.emit != nullptr) candidate.emit(builder, hierarchy);
  else if (Status status = lower_program(candidate.program, grid, builder); !status.ok()) return status;
  return builder.finish();
}

}  // namespace plait
