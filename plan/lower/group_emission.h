// What an algorithm says of a group's members and pieces, as messages between ranks of their blocks.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plan/algorithm/algorithm.h"
#include "plan/model/builder.h"

namespace plait::plan {

// A group in which an algorithm is at work.
struct RankGroup {
  std::span<const int> members;              // ranks, the root first
  std::function<Segments(int piece)> piece;  // as the algorithm numbers them
  std::span<const int> outer;                // GroupWork::outer
};

// Has the builder make the algorithm's messages in this group: those that its ranks want, over its chunks.
void emit(const Algorithm& algorithm, Instruct what, const RankGroup& group, Builder& builder);

}  // namespace plait::plan
