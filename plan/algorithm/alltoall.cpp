#include "plan/algorithm/algorithms.h"

namespace plait::plan {

namespace {

int segment(const Semantics& semantics, int source, int destination) {
  return source * semantics.ranks() + destination;
}

// What the ranks of one node send to the ranks of another, by source and then destination.
Segments between(const Semantics& semantics, const std::vector<int>& from, const std::vector<int>& to) {
  Segments segments;
  for (const int source : from)
    for (const int destination : to) segments.push_back(segment(semantics, source, destination));
  return segments;
}

Segments leaving(const Semantics& semantics, int source, std::span<const std::vector<int>> nodes, std::size_t home) {
  Segments segments;
  for (std::size_t node = 0; node < nodes.size(); ++node)
    if (node != home)
      for (const int destination : nodes[node]) segments.push_back(segment(semantics, source, destination));
  return segments;
}

Segments arriving(const Semantics& semantics, int destination, std::span<const std::vector<int>> nodes,
                  std::size_t home) {
  Segments segments;
  for (std::size_t node = 0; node < nodes.size(); ++node)
    if (node != home)
      for (const int source : nodes[node]) segments.push_back(segment(semantics, source, destination));
  return segments;
}

void exchange_within(Builder& builder, const std::vector<int>& members, int chunk) {
  for (std::size_t distance = 1; distance < members.size(); ++distance)
    for (std::size_t member = 0; member < members.size(); ++member) {
      const int from = members[member], to = members[(member + distance) % members.size()];
      builder.move(from, to, blocks_of(builder.semantics(), {segment(builder.semantics(), from, to)}, chunk));
    }
}

}  // namespace

namespace {

using Nodes = std::span<const std::vector<int>>;

void exchange_between_leaders(Builder& builder, Nodes nodes, int chunk) {
  for (std::size_t distance = 1; distance < nodes.size(); ++distance)
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      const auto& from = nodes[node];
      const auto& to = nodes[(node + distance) % nodes.size()];
      builder.move(from[0], to[0], blocks_of(builder.semantics(), between(builder.semantics(), from, to), chunk));
    }
}

// What `find` says of each member of a node, as the pieces of a group step.
template <class Find>
std::vector<std::vector<BlockId>> pieces_of(const Semantics& semantics, const std::vector<int>& members, int chunk,
                                            Find&& find) {
  std::vector<std::vector<BlockId>> pieces;
  for (const int member : members) pieces.push_back(blocks_of(semantics, find(member), chunk));
  return pieces;
}

void together_within(Builder& builder, const std::vector<int>& members, int chunk) {
  std::vector<std::vector<BlockId>> pieces;
  for (const int from : members)
    for (const int to : members)
      pieces.push_back(blocks_of(builder.semantics(), {segment(builder.semantics(), from, to)}, chunk));
  builder.together({GroupKind::all_to_all, members, 0, pieces});
}

// The same in three group steps a node.
void shared_leader_alltoall(Builder& builder, Nodes nodes, int chunk) {
  const Semantics& semantics = builder.semantics();
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const auto given =
        pieces_of(semantics, nodes[node], chunk, [&](int rank) { return leaving(semantics, rank, nodes, node); });
    builder.together({GroupKind::gather, nodes[node], 0, given});
  }
  exchange_between_leaders(builder, nodes, chunk);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    together_within(builder, nodes[node], chunk);
    const auto taken =
        pieces_of(semantics, nodes[node], chunk, [&](int rank) { return arriving(semantics, rank, nodes, node); });
    builder.together({GroupKind::scatter, nodes[node], 0, taken});
  }
}

}  // namespace

void pairwise_alltoall(Builder& builder, Group order, std::span<const std::vector<int>> nodes) {
  const Semantics& semantics = builder.semantics();
  std::vector<std::size_t> node_of(order.size());
  for (std::size_t node = 0; node < nodes.size(); ++node)
    for (const int rank : nodes[node]) node_of[static_cast<std::size_t>(rank)] = node;
  for (int chunk = 0; chunk < semantics.chunks(); ++chunk) {
    for (const auto& members : nodes)
      if (builder.shared_memory()) together_within(builder, members, chunk);
    for (std::size_t distance = 1; distance < order.size(); ++distance)
      for (std::size_t place = 0; place < order.size(); ++place) {
        const int from = order[place], to = order[(place + distance) % order.size()];
        const bool near = node_of[static_cast<std::size_t>(from)] == node_of[static_cast<std::size_t>(to)];
        if (!near || !builder.shared_memory())
          builder.move(from, to, blocks_of(semantics, {segment(semantics, from, to)}, chunk));
      }
  }
}

void leader_alltoall(Builder& builder, std::span<const std::vector<int>> nodes) {
  const Semantics& semantics = builder.semantics();
  for (int chunk = 0; chunk < semantics.chunks(); ++chunk) {
    if (builder.shared_memory()) {
      shared_leader_alltoall(builder, nodes, chunk);
      continue;
    }
    for (std::size_t node = 0; node < nodes.size(); ++node)
      for (std::size_t member = 1; member < nodes[node].size(); ++member)
        builder.move(nodes[node][member], nodes[node][0],
                     blocks_of(semantics, leaving(semantics, nodes[node][member], nodes, node), chunk));
    exchange_between_leaders(builder, nodes, chunk);
    for (const auto& members : nodes) exchange_within(builder, members, chunk);
    for (std::size_t node = 0; node < nodes.size(); ++node)
      for (std::size_t member = 1; member < nodes[node].size(); ++member)
        builder.move(nodes[node][0], nodes[node][member],
                     blocks_of(semantics, arriving(semantics, nodes[node][member], nodes, node), chunk));
  }
}

}  // namespace plait::plan
