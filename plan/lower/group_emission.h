// What an algorithm says of a group's members and pieces, as messages between ranks of their blocks.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plan/algorithm/algorithm.h"
#include "plan/model/block_moves.h"

namespace plait::plan {

// A group in which an algorithm is at work.
struct RankGroup {
  std::span<const int> members;              // ranks, the root first
  std::function<Segments(int piece)> piece;  // as the algorithm numbers them
  std::span<const int> outer;                // GroupWork::outer
  const Segments& segments;                  // of all pieces
};

// Says the algorithm's moves in this group, chunk by chunk: those that are wanted.
void emit(const Algorithm& algorithm, Instruct what, const RankGroup& group, BlockMoves& target);

}  // namespace plait::plan
