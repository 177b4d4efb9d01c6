#include "tuner/simgrid/binomial_trees.h"

#include <algorithm>
#include <vector>

namespace plait::tuner {
namespace {

using plan::BoundSchedule;
using plan::BoundStep;
using plan::StepKind;

// Rank r's parent is r without its lowest bit, and its children have one bit more below that.
class TreeRank {
 public:
  TreeRank(int rank, int ranks) : rank_(rank), ranks_(ranks) {
    for (int bit = 1; (rank & bit) == 0 && rank + bit < ranks; bit *= 2) children_.push_back(rank + bit);
  }
  bool is_root() const { return rank_ == 0; }
  int parent() const { return rank_ & (rank_ - 1); }
  const std::vector<int>& children() const { return children_; }  // the smallest subtree first
  // Ranks of a subtree.
  std::uint64_t size(int child) const { return static_cast<std::uint64_t>(std::min(child & -child, ranks_ - child)); }
  std::uint64_t own_size() const { return size(rank_); }

 private:
  int rank_, ranks_;
  std::vector<int> children_;
};

// One step after the other.
class Steps {
 public:
  void add(StepKind kind, int peer, std::uint64_t bytes) {
    const auto number = static_cast<std::uint32_t>(made_.steps.size());
    if (number > 0) {
      made_.steps.back().successors = {static_cast<std::uint32_t>(made_.successors.size()), 1};
      made_.successors.push_back(number);
    }
    made_.steps.push_back({.kind = kind,
                           .channel = {},
                           .incoming_left = false,
                           .rail = 0,
                           .peer = peer,
                           .collective = -1,
                           .predecessors = number > 0 ? 1U : 0U,
                           .successors = {},
                           .source = {},
                           .operand = {},
                           .destination = {},
                           .bytes = bytes,
                           .lane = -1});
  }
  BoundSchedule take() { return std::move(made_); }

 private:
  BoundSchedule made_;
};

enum class Carries : std::uint8_t { all, pieces };  // a vector, or a piece for each rank of the subtree

void up(const TreeRank& tree, std::uint64_t bytes, Carries carries, Steps& steps) {
  for (const int child : tree.children())
    steps.add(StepKind::recv, child, carries == Carries::all ? bytes : bytes * tree.size(child));
  if (!tree.is_root())
    steps.add(StepKind::send, tree.parent(), carries == Carries::all ? bytes : bytes * tree.own_size());
}

void down(const TreeRank& tree, std::uint64_t bytes, Carries carries, Steps& steps) {
  if (!tree.is_root())
    steps.add(StepKind::recv, tree.parent(), carries == Carries::all ? bytes : bytes * tree.own_size());
  for (auto child = tree.children().rbegin(); child != tree.children().rend(); ++child)
    steps.add(StepKind::send, *child, carries == Carries::all ? bytes : bytes * tree.size(*child));
}

}  // namespace

std::optional<BoundSchedule> binomial_trees(Collective collective, std::uint64_t bytes, int rank, int ranks) {
  const TreeRank tree(rank, ranks);
  const std::uint64_t whole = bytes * static_cast<std::uint64_t>(ranks);
  Steps steps;
  switch (collective) {
    case Collective::bcast:
      down(tree, bytes, Carries::all, steps);
      break;
    case Collective::reduce:
      up(tree, bytes, Carries::all, steps);
      break;
    case Collective::allreduce:
      up(tree, bytes, Carries::all, steps);
      down(tree, bytes, Carries::all, steps);
      break;
    case Collective::allgather:
      up(tree, bytes, Carries::pieces, steps);
      down(tree, whole, Carries::all, steps);
      break;
    case Collective::reduce_scatter_block:
      up(tree, whole, Carries::all, steps);
      down(tree, bytes, Carries::pieces, steps);
      break;
    default:
      return std::nullopt;
  }
  return steps.take();
}

}  // namespace plait::tuner
