#include "plan/algorithm/algorithms.h"

namespace plait::plan {

namespace {

// One hop of a tree: from a child to its parent (reduce) or from the parent to the child (broadcast).
struct Edge {
  std::size_t parent, child;
};

std::vector<Edge> knomial_edges(std::size_t size, std::size_t radix) {
  std::vector<Edge> result;
  for (std::size_t span = 1; span < size; span *= radix)
    for (std::size_t digit = 1; digit < radix; ++digit)
      for (std::size_t child = digit * span; child < size; child += radix * span)
        result.push_back({child - digit * span, child});
  return result;
}

// Edges in the order in which a reduction uses them; a broadcast uses them backwards.
std::vector<Edge> edges(std::size_t size, Tree tree) {
  std::vector<Edge> result;
  switch (tree) {
    case Tree::binomial:
      return knomial_edges(size, 2);
    case Tree::knomial4:
      return knomial_edges(size, 4);
    case Tree::knomial8:
      return knomial_edges(size, 8);
    case Tree::chain:
      for (std::size_t child = size - 1; child > 0; --child) result.push_back({child - 1, child});
      break;
    case Tree::flat:
      for (std::size_t child = 1; child < size; ++child) result.push_back({0, child});
      break;
  }
  return result;
}

}  // namespace

void tree_reduce(Builder& builder, Group group, const Segments& segments, Tree tree) {
  const std::vector<Edge> hops = edges(group.size(), tree);
  for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
    for (const Edge& hop : hops)
      builder.combine(group[hop.child], group[hop.parent], blocks_of(builder.semantics(), segments, chunk));
}

void tree_broadcast(Builder& builder, Group group, const Segments& segments, Tree tree) {
  const std::vector<Edge> hops = edges(group.size(), tree);
  for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
    for (std::size_t hop = hops.size(); hop-- > 0;)
      builder.move(group[hops[hop].parent], group[hops[hop].child], blocks_of(builder.semantics(), segments, chunk));
}

}  // namespace plait::plan
