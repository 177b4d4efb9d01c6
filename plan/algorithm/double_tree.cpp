// Double binary tree (Sanders et al., Parallel Computing 35(12), 2009) between the outermost groups: each of two trees
// carries half of the segments, and inner nodes of one are leaves of the other. Chains within each group. Each member
// sends and receives at most twice the data.
#include <functional>
#include <vector>

#include "plan/algorithm/algorithm.h"
#include "plan/algorithm/group_cost.h"
#include "plan/algorithm/registry.h"

namespace plait::plan {

namespace {

struct TreeEdge {
  std::size_t parent, child;
};

// A binary tree over positions [begin, end) in order: the root of a range is the position with the most trailing zeros
// (counted from 1), so that every other position is a leaf. Children come before their parents.
std::vector<TreeEdge> in_order_tree(std::size_t size) {
  std::vector<TreeEdge> edges;
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

std::vector<TreeEdge> chain_edges(std::size_t size) {
  std::vector<TreeEdge> edges;
  for (std::size_t child = size - 1; child > 0; --child) edges.push_back({child - 1, child});
  return edges;
}

struct HalfHop {
  int parent, child;
  bool second_half;
};

// All hops towards the roots, children first.
std::vector<HalfHop> hops_of(std::span<const std::vector<int>> groups) {
  std::vector<HalfHop> hops;
  for (const bool second : {false, true}) {
    for (const auto& members : groups)
      for (const TreeEdge& edge : chain_edges(members.size()))
        hops.push_back({members[edge.parent], members[edge.child], second});
    for (const TreeEdge& edge : in_order_tree(groups.size())) {
      const std::size_t parent = second ? second_position(edge.parent, groups.size()) : edge.parent;
      const std::size_t child = second ? second_position(edge.child, groups.size()) : edge.child;
      hops.push_back({groups[parent].front(), groups[child].front(), second});
    }
  }
  return hops;
}

std::vector<std::vector<int>> outermost_groups(const GroupWork& work) {
  std::vector<std::vector<int>> groups;
  for (int member = 0; member < work.members; ++member) {
    const auto i = static_cast<std::size_t>(member);
    if (member == 0 || work.outer[i - 1] != work.outer[i]) groups.emplace_back();
    groups.back().push_back(member);
  }
  return groups;
}

void emit_double_tree(Moves& moves, const GroupWork& work) {
  const std::vector<HalfHop> hops = hops_of(outermost_groups(work));
  moves.next_stage();
  for (const HalfHop& hop : hops)
    if (moves.wants(hop.child, hop.parent)) moves.combine(hop.child, hop.parent, hop.second_half ? 1 : 0);
  moves.next_stage();
  for (auto hop = hops.rbegin(); hop != hops.rend(); ++hop)
    if (moves.wants(hop->child, hop->parent)) moves.move(hop->parent, hop->child, hop->second_half ? 1 : 0);
}

void charge_double_tree(AlgorithmCost& cost) {
  const Port& outermost = cost.outermost();
  cost.charge([&](const Port& port, bool first) {
    const double volume = first && port.cardinality == 2 ? 1 : 2;
    return Traffic{volume, 2 * volume};
  });
  cost.wait(2 * outermost.rounds, outermost);
  cost.hold_up(cost.first(), outermost.cardinality == 2 ? 1 : outermost.rounds, true);
  if (cost.last() > cost.first()) {
    const double hops = 2 * (outermost.below - 1);
    cost.wait(hops, cost.innermost());
    cost.hold_up(cost.last(), 2, true);
  }
  cost.compute(4, 2, outermost, outermost);
}

}  // namespace

// NCCL's, for comparisons: what goes up and what comes down share the ports less well than the model has it (perf/p2
// measured up to 1.4 times its prediction).
constinit const Algorithm algorithms::double_tree = {
    .name = "tree",
    .fits = [](Instruct what, int) { return what == Instruct::all_reduce; },
    .worth_trying = [](Instruct, const Extent&) { return true; },
    .knows_outer = true,
    .usual = false,
    .pieces = [](int) { return 2; },
    .cost = charge_double_tree,
    .emit = emit_double_tree,
};

}  // namespace plait::plan
