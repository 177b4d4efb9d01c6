#include "plan/lower/composition.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "plan/lower/lowering.h"
#include "plan/lower/own_proof.h"
#include "plan/lower/rank_groups.h"

namespace plait::plan {

namespace {

// Numbers of members that an instruction's groups have.
class GroupSizes {
 public:
  GroupSizes(const Grid& grid, LevelState state, const Instruction& instruction)
      : grid_(grid), state_(state), instruction_(instruction) {}

  // With the children of the outermost level that each member is in, for the algorithms that ask.
  std::set<std::vector<int>> find() {
    bool even = true;
    for (int level = instruction_.first; level <= instruction_.last; ++level) even = even && !grid_.uneven(level);
    visit(grid_.root(), even);
    return std::move(found_);
  }

 private:
  // Where all groups are alike one is enough.
  void visit(const Grid::Branch& branch, bool one) {
    if (branch.level == instruction_.first) {
      std::vector<int> outer;
      for (int child = 0; child < grid_.children(branch); ++child)
        count(grid_.child(branch, child), child, child == 0, holds(branch.level, child), outer);
      found_.insert(std::move(outer));
      return;
    }
    // Where a level is rooted only its first children's ranks hold something.
    const int children = one || state_.at(branch.level) == LevelStatus::rooted ? 1 : grid_.children(branch);
    for (int child = 0; child < children; ++child) visit(grid_.child(branch, child), one);
  }

  bool holds(int level, int child) const { return state_.at(level) != LevelStatus::rooted || child == 0; }

  void count(const Grid::Branch& branch, int outermost, bool root, bool holding, std::vector<int>& outer) {
    if (branch.level > instruction_.last) {
      const bool all = instruction_.what != Instruct::broadcast || instruction_.algorithm->needs_whole_node;
      if (all || root || !holding) outer.push_back(outermost);
      return;
    }
    for (int child = 0; child < grid_.children(branch); ++child)
      count(grid_.child(branch, child), outermost, root && child == 0, holding && holds(branch.level, child), outer);
  }

  const Grid& grid_;
  LevelState state_;
  const Instruction& instruction_;
  std::set<std::vector<int>> found_;
};

class Composition {
 public:
  Composition(const ComposedPlan& plan, const Semantics& semantics)
      : plan_(plan),
        semantics_(semantics),
        task_(task_on(plan.grid, semantics.collective(), plan.ordered)),
        ownership_(plan.program, plan.grid, semantics.segments(), task_.owned_pieces) {}

  // visit(instruction, state before it) must be ok for each.
  template <class Visit>
  Status for_each_instruction(Visit visit) const {
    LevelState state = task_.start;
    for (const Instruction& instruction : plan_.program.instructions) {
      if (Status status = visit(instruction, state); !status.ok()) return status;
      state = *apply(task_, state, instruction.what, instruction.first, instruction.last);
    }
    return {};
  }

  Status prove_algorithms(GroupProofs& proofs) const {
    return for_each_instruction([&](const Instruction& instruction, LevelState state) -> Status {
      for (const std::vector<int>& outer : GroupSizes(plan_.grid, state, instruction).find()) {
        if (outer.size() < 2) continue;
        const GroupCase group{instruction.algorithm, instruction.what, static_cast<int>(outer.size()), plan_.ordered,
                              outer};
        if (const Status& status = proofs.of(group); !status.ok()) return status;
      }
      return {};
    });
  }

  Status prove_groups(int rank) const {
    return for_each_instruction([&](const Instruction& instruction, LevelState state) -> Status {
      const RankGroups groups(plan_.grid, ownership_, state, instruction);
      const std::vector<WorkGroup> own = groups.of(rank);
      if (!are_all(own, state, instruction, rank)) return refuse(instruction, rank, "are not all of its segments");
      for (const WorkGroup& group : own)
        if (Status status = prove_group_of(groups, group, instruction, rank); !status.ok()) return status;
      return {};
    });
  }

 private:
  Status refuse(const Instruction& instruction, int rank, const char* what) const {
    return {Code::invalid, "proof: " + text_without_algorithms({{instruction}}) + ": the groups of rank " +
                               std::to_string(rank) + " " + what};
  }

  // The segments of the groups are those that the rank holds, each in one. A rank without groups takes no part: it
  // holds nothing, or has what a broadcast brings.
  bool are_all(const std::vector<WorkGroup>& groups, LevelState state, const Instruction& instruction, int rank) const {
    if (groups.empty()) return true;
    Ownership::Shares shares{};
    for (int level = 0; level < plan_.grid.levels(); ++level)
      if ((level < instruction.first || level > instruction.last) && state.at(level) == LevelStatus::scattered)
        shares[static_cast<std::size_t>(level)] = {plan_.grid.coordinate(rank, level),
                                                   plan_.grid.children(rank, level)};
    std::vector<Segments> parts;
    for (const WorkGroup& group : groups) parts.push_back(group.segments);
    return are_pieces_of(ownership_.segments(shares), parts, semantics_.segments());
  }

  Status prove_group_of(const RankGroups& groups, const WorkGroup& group, const Instruction& instruction,
                        int rank) const {
    std::vector<int> members = group.members;
    std::ranges::sort(members);
    if (std::ranges::adjacent_find(members) != members.end()) return refuse(instruction, rank, "have a member twice");
    if (divides(instruction.what) && group.members.size() > 1) {
      std::vector<Segments> pieces;
      for (const int member : group.members) pieces.push_back(groups.piece(group, member));
      if (!are_pieces_of(group.segments, pieces, semantics_.segments()))
        return refuse(instruction, rank, "have pieces that are not all of their segments");
    }
    for (const int peer : some_peers(group.members, rank)) {
      const std::vector<WorkGroup> theirs = groups.of(peer);
      const auto same = [&](const WorkGroup& other) {
        return other.members == group.members && other.segments == group.segments;
      };
      if (std::ranges::count_if(theirs, same) != 1) return refuse(instruction, rank, "are not those of its peers");
    }
    return {};
  }

  // The root, the last one and the neighbours.
  static std::set<int> some_peers(const std::vector<int>& members, int rank) {
    std::set<int> peers = {members.front(), members.back()};
    const auto self = static_cast<std::size_t>(std::ranges::find(members, rank) - members.begin());
    if (self > 0) peers.insert(members[self - 1]);
    if (self + 1 < members.size()) peers.insert(members[self + 1]);
    peers.erase(rank);
    return peers;
  }

  const ComposedPlan& plan_;
  const Semantics& semantics_;
  SynthesisTask task_;
  Ownership ownership_;
};

}  // namespace

bool are_pieces_of(const Segments& segments, std::span<const Segments> pieces, int all) {
  std::vector<bool> wanted(static_cast<std::size_t>(all));
  const auto set_all = [&](const Segments& runs, bool from) {
    for (const SegmentRun& run : runs)
      for (int segment = run.first; segment < run.end(); ++segment) {
        if (segment < 0 || segment >= all || wanted[static_cast<std::size_t>(segment)] != from) return false;
        wanted[static_cast<std::size_t>(segment)] = !from;
      }
    return true;
  };
  if (!set_all(segments, false)) return false;
  return std::ranges::all_of(pieces, [&](const Segments& piece) { return set_all(piece, true); }) &&
         std::ranges::find(wanted, true) == wanted.end();
}

Status prove_parts(const ComposedPlan& plan, const Semantics& semantics, GroupProofs& proofs) {
  const Result<int> segments = segments_needed(plan.program, plan.grid, semantics.collective(), plan.ordered);
  if (!segments.ok()) return segments.status();
  if (*segments != semantics.segments() || semantics.ranks() != plan.grid.ranks())
    return {Code::invalid, "proof: the plan cuts the data into " + std::to_string(semantics.segments()) +
                               " segments, not into " + std::to_string(*segments)};
  return Composition(plan, semantics).prove_algorithms(proofs);
}

Status prove_own(const ComposedPlan& plan, const OwnPlan& own, int rank) {
  if (Status status = Composition(plan, own.semantics).prove_groups(rank); !status.ok()) return status;
  RankProof proof(own.semantics, rank, own.schedule, false);
  if (Status status = proof.check_form(); !status.ok()) return status;
  if (Status status = proof.check_order(); !status.ok()) return status;
  OwnProof follower(own.semantics, plan.routes, rank, proof);
  follower.bind_chunks(plan.rails);
  lower_program(plan.program, plan.grid, plan.ordered, follower);
  return follower.finish();
}

}  // namespace plait::plan
