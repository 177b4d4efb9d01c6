#include <functional>
#include <vector>

#include "plan/algorithm/algorithms.h"

namespace plait::plan {

namespace {

struct Edge {
  std::size_t parent, child;
};

// A binary tree over positions [begin, end) in order: the root of a range is the position with the most trailing zeros
// (counted from 1), so that every other position is a leaf. Children come before their parents.
std::vector<Edge> in_order_tree(std::size_t size) {
  std::vector<Edge> edges;
  const std::function<std::size_t(std::size_t, std::size_t)> build = [&](std::size_t begin, std::size_t end) {
    std::size_t top = 1;
    while (2 * top <= end - begin) top *= 2;
    const std::size_t root = begin + top - 1;
    if (root > begin) edges.push_back({root, build(begin, root)});
    if (root + 1 < end) edges.push_back({root, build(root + 1, end)});
    return root;
  };
  build(0, size);
  return edges;
}

// In the mirrored tree (even sizes) or the shifted one (odd sizes) the first one's inner positions are leaves.
std::size_t second_position(std::size_t position, std::size_t size) {
  return size % 2 == 0 ? size - 1 - position : (position + 1) % size;
}

std::vector<Edge> chain_edges(std::size_t size) {
  std::vector<Edge> edges;
  for (std::size_t child = size - 1; child > 0; --child) edges.push_back({child - 1, child});
  return edges;
}

struct Hop {
  int parent, child;
  bool second_half;
};

// All hops towards the roots, children first.
std::vector<Hop> hops_of(std::span<const std::vector<int>> groups) {
  std::vector<Hop> hops;
  for (const bool second : {false, true}) {
    for (const auto& members : groups)
      for (const Edge& edge : chain_edges(members.size()))
        hops.push_back({members[edge.parent], members[edge.child], second});
    for (const Edge& edge : in_order_tree(groups.size())) {
      const std::size_t parent = second ? second_position(edge.parent, groups.size()) : edge.parent;
      const std::size_t child = second ? second_position(edge.child, groups.size()) : edge.child;
      hops.push_back({groups[parent].front(), groups[child].front(), second});
    }
  }
  return hops;
}

}  // namespace

void double_tree_allreduce(Builder& builder, std::span<const std::vector<int>> groups, const Segments& segments) {
  const Semantics& semantics = builder.semantics();
  const auto middle = segments.begin() + static_cast<std::ptrdiff_t>(segments.size() / 2);
  const Segments halves[2] = {{segments.begin(), middle}, {middle, segments.end()}};
  const std::vector<Hop> hops = hops_of(groups);
  for (int chunk = 0; chunk < semantics.chunks(); ++chunk)
    for (const Hop& hop : hops)
      builder.combine(hop.child, hop.parent, blocks_of(semantics, halves[hop.second_half], chunk));
  for (int chunk = 0; chunk < semantics.chunks(); ++chunk)
    for (std::size_t hop = hops.size(); hop-- > 0;)
      builder.move(hops[hop].parent, hops[hop].child, blocks_of(semantics, halves[hops[hop].second_half], chunk));
}

}  // namespace plait::plan
