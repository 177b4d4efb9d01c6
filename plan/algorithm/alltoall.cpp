#include "plan/algorithm/algorithms.h"

namespace plait {

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

void pairwise_alltoall(Builder& builder, Group order) {
  for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
    exchange_within(builder, {order.begin(), order.end()}, chunk);
}

void leader_alltoall(Builder& builder, std::span<const std::vector<int>> nodes) {
  const Semantics& semantics = builder.semantics();
  for (int chunk = 0; chunk < semantics.chunks(); ++chunk) {
    for (std::size_t node = 0; node < nodes.size(); ++node)
      for (std::size_t member = 1; member < nodes[node].size(); ++member)
        builder.move(nodes[node][member], nodes[node][0],
                     blocks_of(semantics, leaving(semantics, nodes[node][member], nodes, node), chunk));
    for (std::size_t distance = 1; distance < nodes.size(); ++distance)
      for (std::size_t node = 0; node < nodes.size(); ++node) {
        const auto& from = nodes[node];
        const auto& to = nodes[(node + distance) % nodes.size()];
        builder.move(from[0], to[0], blocks_of(semantics, between(semantics, from, to), chunk));
      }
    for (const auto& members : nodes) exchange_within(builder, members, chunk);
    for (std::size_t node = 0; node < nodes.size(); ++node)
      for (std::size_t member = 1; member < nodes[node].size(); ++member)
        builder.move(nodes[node][0], nodes[node][member],
                     blocks_of(semantics, arriving(semantics, nodes[node][member], nodes, node), chunk));
  }
}

}  // namespace plait
