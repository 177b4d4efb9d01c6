// The proof of a plan by its parts: without a look at all ranks.
//
// A program's plan is made of three things, and each is proven where it is small:
//  - the program, on the states of the levels (level_state.h): what each rank holds of each segment before and after
//  each
//    instruction, and that this ends with the collective's result (segments_needed());
//  - each algorithm, in a group of numbered members and pieces (group_proof.h): once for (algorithm, instruction,
//    members, order);
//  - this rank's own schedule: that it does this rank's part of the moves (own_proof.h).
//
// Why these make the whole plan right. All ranks could say all moves of the program in one and the same order: the
// instructions one after the other, of an instruction the groups by their first segments, of a group the algorithm's
// moves stage by stage, chunk by chunk. Taken one by one in that order, the moves do what the program promises: of each
// segment an instruction's groups have no rank in common, and the ranks that hold it are each in one (checked here for
// this rank's), so that a group's moves touch nothing that another one's use; within a group they are the algorithm's,
// with ranks for members and segments for pieces, and the pieces share no segment and leave none out (checked here); so
// each group goes from the state before to the state after, and the program's states do the rest. Groups that compute
// the same sums, because they differ in nothing but a level that is full, have as many members in the same order, and a
// segment in the same piece (RankGroups::cut): the same bits. Each rank says just its own moves; they are those among
// all, in the same order, since its groups are those that their other members find as well (checked here with some of
// them), and an algorithm tells a member alone what it tells it among all (group_proof.h). Of two ranks the k-th send
// in a lane therefore meets the k-th receive, with the same blocks. A schedule that does its part gives and takes in
// that order what its moves say, wherever it keeps it, and none of its steps waits for a later move. So nothing waits
// for ever, even where a send ends only with its receive: of the moves that have not happened the first in the order
// can, on all ranks that it concerns. docs/scale.md has it at length.
#pragma once

#include "plan/algorithm/program.h"
#include "plan/lower/group_proof.h"
#include "plan/model/builder.h"
#include "plan/model/grid.h"

namespace plait::plan {

struct ComposedPlan {
  const Program& program;
  const Grid& grid;
  bool ordered;  // the operator does not commute
  const Routes& routes;
  std::span<const std::int8_t> rails;  // as for BlockMoves::bind_chunks()
};

// Of the program and its algorithms: the same on all ranks. `semantics`: what the plan was lowered for.
Status prove_parts(const ComposedPlan& plan, const Semantics& semantics, GroupProofs& proofs);

// Of one rank's groups and its schedule. Precondition: prove_parts() is ok.
Status prove_own(const ComposedPlan& plan, const OwnPlan& own, int rank);

// Whether the pieces share no segment and are all of `segments`, which are of [0, all).
bool are_pieces_of(const Segments& segments, std::span<const Segments> pieces, int all);

}  // namespace plait::plan
