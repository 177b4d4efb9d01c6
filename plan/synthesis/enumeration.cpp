#include "plan/synthesis/enumeration.h"

#include <algorithm>

namespace plait::plan {

namespace {

struct Transition {
  Instruct what;
  std::uint8_t first, last;
  std::uint32_t to;  // index into Graph::states
};

// The states that the start leads to, in the order in which they are found, and their valid instructions in the order
// of (collective, first level, last level). A program ends where it first meets the goal, so a goal has no transitions.
struct Graph {
  struct Node {
    LevelState state;
    bool goal = false;
    std::vector<Transition> transitions;
  };
  std::vector<Node> nodes;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(const SynthesisTask& task) : task_(task), index_(std::size_t{1} << (2 * task.levels), unseen) {}

  Graph build() {
    index_of(task_.start);
    for (std::size_t node = 0; node < graph_.nodes.size(); ++node)
      if (!graph_.nodes[node].goal) graph_.nodes[node].transitions = transitions_of(graph_.nodes[node].state);
    return std::move(graph_);
  }

 private:
  static constexpr std::uint32_t unseen = ~0u;

  std::uint32_t index_of(LevelState state) {
    std::uint32_t& index = index_[state.index()];
    if (index == unseen) {
      index = static_cast<std::uint32_t>(graph_.nodes.size());
      graph_.nodes.push_back({state, task_.is_goal(state), {}});
    }
    return index;
  }

  std::vector<Transition> transitions_of(LevelState state) {
    std::vector<Transition> found;
    for (int what = 0; what < all_instructs; ++what)
      for (int first = 0; first < task_.levels; ++first)
        for (int last = first; last < task_.levels; ++last)
          if (const auto next = apply(task_, state, static_cast<Instruct>(what), first, last))
            found.push_back({static_cast<Instruct>(what), static_cast<std::uint8_t>(first),
                             static_cast<std::uint8_t>(last), index_of(*next)});
    return found;
  }

  const SynthesisTask& task_;
  std::vector<std::uint32_t> index_;  // of each LevelState::index()
  Graph graph_;
};

// Depth first over the programs of one size, never into a branch without a program.
class Listing {
 public:
  Listing(const Graph& graph, int most_instructions) : graph_(graph) {
    std::vector<char> reaches;
    for (const Graph::Node& node : graph.nodes) reaches.push_back(node.goal);
    reaches_.push_back(std::move(reaches));
    for (int size = 1; size <= most_instructions; ++size) reaches_.push_back(one_instruction_earlier(reaches_.back()));
  }

  // Calls visit(path) for each program of `size` instructions until it returns false; whether it never did.
  template <class Visit>
  bool visit_all(int size, const Visit& visit) {
    path_.resize(static_cast<std::size_t>(size));
    return !reaches_[path_.size()][0] || descend(0, 0, visit);
  }

 private:
  std::vector<char> one_instruction_earlier(const std::vector<char>& reaches) const {
    std::vector<char> earlier;
    for (const Graph::Node& node : graph_.nodes)
      earlier.push_back(std::any_of(node.transitions.begin(), node.transitions.end(),
                                    [&](const Transition& transition) { return reaches[transition.to] != 0; }));
    return earlier;
  }

  template <class Visit>
  bool descend(std::uint32_t node, std::size_t depth, const Visit& visit) {
    if (depth == path_.size()) return visit(path_);
    const std::vector<char>& reaches = reaches_[path_.size() - depth - 1];
    for (const Transition& transition : graph_.nodes[node].transitions) {
      if (!reaches[transition.to]) continue;
      path_[depth] = &transition;
      if (!descend(transition.to, depth + 1, visit)) return false;
    }
    return true;
  }

  const Graph& graph_;
  std::vector<std::vector<char>> reaches_;  // [instructions left][node]: whether exactly so many lead to the goal
  std::vector<const Transition*> path_;
};

}  // namespace

std::vector<std::uint64_t> count_programs(const SynthesisTask& task, int most_instructions) {
  const Graph graph = GraphBuilder(task).build();
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> ways(graph.nodes.size());  // to reach each node with so many instructions
  ways[0] = 1;
  for (int size = 0; size <= most_instructions; ++size) {
    std::uint64_t complete = 0;
    std::vector<std::uint64_t> next(graph.nodes.size());
    for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
      if (graph.nodes[node].goal) complete += ways[node];
      for (const Transition& transition : graph.nodes[node].transitions) next[transition.to] += ways[node];
    }
    counts.push_back(complete);
    ways = std::move(next);
  }
  return counts;
}

Program ProgramList::program(std::size_t index) const {
  Program result;
  for (std::uint32_t i = first_[index]; i < first_[index + 1]; ++i) {
    const Instruct what = static_cast<Instruct>(codes_[i].what);
    result.instructions.push_back({what, codes_[i].first, codes_[i].last, default_algorithm(what), false});
  }
  return result;
}

ProgramList list_programs(const SynthesisTask& task, int most_instructions, std::size_t limit) {
  const Graph graph = GraphBuilder(task).build();
  Listing listing(graph, most_instructions);
  ProgramList list;
  const auto append = [&](const std::vector<const Transition*>& path) {
    if (list.size() == limit) return false;
    for (const Transition* step : path)
      list.codes_.push_back({static_cast<std::uint8_t>(step->what), step->first, step->last});
    list.first_.push_back(static_cast<std::uint32_t>(list.codes_.size()));
    return true;
  };
  for (int size = 0; size <= most_instructions; ++size)
    if (!listing.visit_all(size, append)) break;
  return list;
}

}  // namespace plait::plan
