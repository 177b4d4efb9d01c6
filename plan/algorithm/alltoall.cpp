// All-to-all. Pairwise: every rank sends its block for each other rank directly, nearest in the order of vranks first:
// N-1 messages a rank. Leaders (the first of each node) collect what leaves their node, exchange one message a pair of
// nodes, and hand out what arrives; members of a node exchange directly. For small messages: (n-1) network messages a
// node instead of r*r*(n-1). Together: all ranks of the only node in one operation of their shared memory.
#include <algorithm>
#include <optional>
#include <vector>

#include "plan/algorithm/exchange.h"
#include "plan/algorithm/moves.h"

namespace plait::plan {

namespace {

int segment(const Semantics& semantics, int source, int destination) {
  return source * semantics.ranks() + destination;
}

Segments one_segment(const Semantics& semantics, int source, int destination) {
  return {{segment(semantics, source, destination), 1}};
}

// The ranks of each node in vrank order; the first is its leader.
using Nodes = std::span<const std::vector<int>>;

std::vector<std::vector<int>> nodes_of(const Hierarchy& hierarchy) {
  std::vector<std::vector<int>> nodes;
  for (int node = 0; node < hierarchy.nodes(); ++node) nodes.push_back(hierarchy.ranks_on_node(node));
  return nodes;
}

// What the ranks of one node send to the ranks of another, by source and then destination.
Segments between(const Semantics& semantics, const std::vector<int>& from, const std::vector<int>& to) {
  Segments segments;
  for (const int source : from)
    for (const int destination : to) append(segments, one_segment(semantics, source, destination));
  return segments;
}

Segments leaving(const Semantics& semantics, int source, Nodes nodes, std::size_t home) {
  Segments segments;
  for (std::size_t node = 0; node < nodes.size(); ++node)
    if (node != home)
      for (const int destination : nodes[node]) append(segments, one_segment(semantics, source, destination));
  return segments;
}

Segments arriving(const Semantics& semantics, int destination, Nodes nodes, std::size_t home) {
  Segments segments;
  for (std::size_t node = 0; node < nodes.size(); ++node)
    if (node != home)
      for (const int source : nodes[node]) append(segments, one_segment(semantics, source, destination));
  return segments;
}

// Where the only rank is among others; Moves::everybody: all are wanted; nothing where it is not among them.
std::optional<int> wanted_place(const BlockMoves& moves, std::span<const int> ranks) {
  if (moves.only() == BlockMoves::all_ranks) return Moves::everybody;
  const auto found = std::ranges::find(ranks, moves.only());
  if (found == ranks.end()) return std::nullopt;
  return static_cast<int>(found - ranks.begin());
}

// Visits, the nearest first, what each of these sends to the one so many behind it.
template <class Visit>
void for_each_pair(const BlockMoves& moves, std::span<const int> ranks, Visit visit) {
  const std::optional<int> self = wanted_place(moves, ranks);
  const int size = static_cast<int>(ranks.size());
  for (int distance = 1; self && distance < size; ++distance)
    for_each_sender(
        size, *self, [&](int place) { return (place + size - distance) % size; },
        [&](int place) { visit(place, (place + distance) % size); });
}

void exchange_within(BlockMoves& moves, const std::vector<int>& members, int chunk) {
  for_each_pair(moves, members, [&](int place, int other) {
    const int from = members[static_cast<std::size_t>(place)], to = members[static_cast<std::size_t>(other)];
    moves.move(from, to, blocks_of(one_segment(moves.semantics(), from, to), chunk));
  });
}

void exchange_between_leaders(BlockMoves& moves, Nodes nodes, int chunk) {
  std::vector<int> leaders;
  for (const std::vector<int>& node : nodes) leaders.push_back(node.front());
  for_each_pair(moves, leaders, [&](int place, int other) {
    const auto &from = nodes[static_cast<std::size_t>(place)], &to = nodes[static_cast<std::size_t>(other)];
    moves.move(from[0], to[0], blocks_of(between(moves.semantics(), from, to), chunk));
  });
}

// What `find` says of each member of a node, as the pieces of a shared-memory collective.
template <class Find>
void together_on(BlockMoves& moves, ShmCollectiveKind kind, const std::vector<int>& members, int chunk, Find&& find) {
  if (!wanted_place(moves, members)) return;
  std::vector<BlockRuns> pieces;
  for (const int member : members) pieces.push_back(blocks_of(find(member), chunk));
  moves.together({kind, members, 0, pieces});
}

void together_within(BlockMoves& moves, const std::vector<int>& members, int chunk) {
  if (!wanted_place(moves, members)) return;
  std::vector<BlockRuns> pieces;
  for (const int from : members)
    for (const int to : members) pieces.push_back(blocks_of(one_segment(moves.semantics(), from, to), chunk));
  moves.together({ShmCollectiveKind::all_to_all, members, 0, pieces});
}

// The same in three shared-memory collectives a node.
void shared_leader_alltoall(BlockMoves& moves, Nodes nodes, int chunk) {
  const Semantics& semantics = moves.semantics();
  for (std::size_t node = 0; node < nodes.size(); ++node)
    together_on(moves, ShmCollectiveKind::gather, nodes[node], chunk,
                [&](int rank) { return leaving(semantics, rank, nodes, node); });
  exchange_between_leaders(moves, nodes, chunk);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    together_within(moves, nodes[node], chunk);
    together_on(moves, ShmCollectiveKind::scatter, nodes[node], chunk,
                [&](int rank) { return arriving(semantics, rank, nodes, node); });
  }
}

std::vector<int> vranks_of(const Hierarchy& hierarchy) {
  std::vector<int> order;
  for (int vrank = 0; vrank < hierarchy.ranks(); ++vrank) order.push_back(hierarchy.rank_at(vrank));
  return order;
}

void emit_pairwise(BlockMoves& moves, const Hierarchy& hierarchy) {
  const std::vector<int> order = vranks_of(hierarchy);
  for (const int chunk : moves.chunks()) {
    for (int node = 0; moves.shared_memory() && node < hierarchy.nodes(); ++node)
      together_within(moves, hierarchy.ranks_on_node(node), chunk);
    for_each_pair(moves, order, [&](int place, int other) {
      const int from = order[static_cast<std::size_t>(place)], to = order[static_cast<std::size_t>(other)];
      if (!moves.shared_memory() || hierarchy.node_of(from) != hierarchy.node_of(to))
        moves.move(from, to, blocks_of(one_segment(moves.semantics(), from, to), chunk));
    });
  }
}

void emit_leaders(BlockMoves& moves, const Hierarchy& hierarchy) {
  const std::vector<std::vector<int>> nodes = nodes_of(hierarchy);
  const Semantics& semantics = moves.semantics();
  const auto for_each_member = [&](auto visit) {
    for (std::size_t node = 0; node < nodes.size(); ++node)
      for (std::size_t member = 1; member < nodes[node].size(); ++member)
        if (moves.builds(nodes[node][0]) || moves.builds(nodes[node][member])) visit(node, nodes[node][member]);
  };
  for (const int chunk : moves.chunks()) {
    if (moves.shared_memory()) {
      shared_leader_alltoall(moves, nodes, chunk);
      continue;
    }
    for_each_member([&](std::size_t node, int member) {
      moves.move(member, nodes[node][0], blocks_of(leaving(semantics, member, nodes, node), chunk));
    });
    exchange_between_leaders(moves, nodes, chunk);
    for (const auto& members : nodes) exchange_within(moves, members, chunk);
    for_each_member([&](std::size_t node, int member) {
      moves.move(nodes[node][0], member, blocks_of(arriving(semantics, member, nodes, node), chunk));
    });
  }
}

void emit_together(BlockMoves& moves, const Hierarchy& hierarchy) {
  for (const int chunk : moves.chunks()) together_within(moves, vranks_of(hierarchy), chunk);
}

int most_ranks_on_a_node(const Hierarchy& hierarchy) {
  std::size_t most = 0;
  for (int node = 0; node < hierarchy.nodes(); ++node) most = std::max(most, hierarchy.ranks_on_node(node).size());
  return static_cast<int>(most);
}

// What the busiest rank and NIC do for their messages to other ranks of the node and to other nodes.
struct ExchangeLoad {
  double near = 0, far = 0;  // messages of a rank
  double near_bytes = 0, far_bytes = 0;
  double nic_messages = 0, nic_bytes = 0;
  double hops = 1;  // latencies of the network on the way
};

double exchange_seconds(const ExchangeLoad& load, const ExchangeSystem& system) {
  const Machine& machine = system.machine;
  const auto innermost_network = std::find_if(machine.levels.rbegin(), machine.levels.rend(),
                                              [](const LinkLevel& level) { return level.network; });
  const LinkLevel& local = machine.levels.back();
  const LinkLevel& network = innermost_network != machine.levels.rend() ? *innermost_network : local;
  const bool crosses = system.hierarchy.nodes() > 1;
  const double crowd = machine.ranks_per_core > 1 ? 1 + machine.ranks_per_core : 1;
  const double processor = 2 * (load.near * local.overhead + load.near_bytes * local.cpu_seconds_per_byte +
                                load.far * network.overhead + load.far_bytes * network.cpu_seconds_per_byte);
  const double nic =
      (load.nic_messages * network.port_seconds_per_message + load.nic_bytes * network.port_seconds_per_byte) *
      system.siblings;
  return processor * crowd + nic + local.latency + (crosses ? load.hops * network.latency : 0);
}

double pairwise_seconds(double bytes, const ExchangeSystem& system) {
  const double ranks = system.hierarchy.ranks(), here = most_ranks_on_a_node(system.hierarchy), away = ranks - here;
  return exchange_seconds({.near = here - 1,
                           .far = away,
                           .near_bytes = (here - 1) * bytes,
                           .far_bytes = away * bytes,
                           .nic_messages = here * away,
                           .nic_bytes = here * away * bytes},
                          system);
}

// The leader's work: it collects and hands out what crosses the network.
double leaders_seconds(double bytes, const ExchangeSystem& system) {
  const double ranks = system.hierarchy.ranks(), here = most_ranks_on_a_node(system.hierarchy), away = ranks - here;
  const double nodes = system.hierarchy.nodes(), crossing = here * away * bytes;
  return exchange_seconds({.near = 3 * (here - 1),
                           .far = nodes - 1,
                           .near_bytes = (here - 1) * bytes + 2 * crossing,
                           .far_bytes = crossing,
                           .nic_messages = nodes - 1,
                           .nic_bytes = crossing},
                          system) +
         2 * system.machine.levels.back().latency;
}

// A line written, the others' read, and every byte copied once or twice.
double together_seconds(double bytes, const ExchangeSystem& system) {
  const LinkLevel& local = system.machine.levels.back();
  const double others = system.hierarchy.ranks() - 1;
  return local.latency + 0.1 * others * local.overhead + others * bytes * local.cpu_seconds_per_byte;
}

}  // namespace

constinit const Exchange exchanges::pairwise = {
    .name = "pairwise",
    .direct = true,
    .knows_nodes = false,
    .fits = [](const ExchangeSystem&) { return true; },
    .seconds = pairwise_seconds,
    .emit = emit_pairwise,
};

constinit const Exchange exchanges::leaders = {
    .name = "leaders",
    .fits =
        [](const ExchangeSystem& system) {
          return system.hierarchy.nodes() > 1 && system.hierarchy.nodes() < system.hierarchy.ranks();
        },
    .seconds = leaders_seconds,
    .emit = emit_leaders,
};

constinit const Exchange exchanges::together = {
    .name = "shared",
    .direct = true,
    .fits = [](const ExchangeSystem& system) { return system.hierarchy.nodes() == 1 && system.shared_memory; },
    .seconds = together_seconds,
    .emit = emit_together,
};

}  // namespace plait::plan
