#include <bit>
#include <cassert>

#include "plan/algorithm/algorithms.h"

namespace plait::plan {

namespace {

// The pieces of the members whose bits below `distance` are those of `member`, and whose next bit is `side`.
Segments pieces_on_side(Pieces pieces, std::size_t member, std::size_t distance, bool side) {
  Segments result;
  for (std::size_t owner = 0; owner < pieces.size(); ++owner)
    if (((owner ^ member) & (distance - 1)) == 0 && ((owner & distance) != 0) == side)
      result.insert(result.end(), pieces[owner].begin(), pieces[owner].end());
  return result;
}

}  // namespace

void recursive_halving_reduce_scatter(Builder& builder, Group group, Pieces pieces) {
  assert(std::has_single_bit(group.size()));
  for (std::size_t distance = 1; distance < group.size(); distance *= 2)
    for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
      for (std::size_t member = 0; member < group.size(); ++member) {
        const std::size_t partner = member ^ distance;
        const Segments sent = pieces_on_side(pieces, member, distance, (partner & distance) != 0);
        builder.combine(group[member], group[partner], blocks_of(builder.semantics(), sent, chunk));
      }
}

void recursive_doubling_allgather(Builder& builder, Group group, Pieces pieces) {
  assert(std::has_single_bit(group.size()));
  for (std::size_t distance = group.size() / 2; distance > 0; distance /= 2)
    for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
      for (std::size_t member = 0; member < group.size(); ++member) {
        const Segments sent = pieces_on_side(pieces, member, distance, (member & distance) != 0);
        builder.move(group[member], group[member ^ distance], blocks_of(builder.semantics(), sent, chunk));
      }
}

}  // namespace plait::plan
