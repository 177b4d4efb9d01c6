#include <algorithm>

#include "plan/algorithm/algorithms.h"

namespace plait::plan {

void direct_reduce_scatter(Builder& builder, Group group, Pieces pieces) {
  const std::size_t size = group.size();
  for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
    for (std::size_t distance = 1; distance < size; ++distance)
      for (std::size_t member = 0; member < size; ++member) {
        const std::size_t owner = (member + distance) % size;
        builder.combine(group[member], group[owner], blocks_of(builder.semantics(), pieces[owner], chunk));
      }
}

void direct_allgather(Builder& builder, Group group, Pieces pieces) {
  const std::size_t size = group.size();
  for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
    for (std::size_t distance = 1; distance < size; ++distance)
      for (std::size_t member = 0; member < size; ++member)
        builder.move(group[member], group[(member + distance) % size],
                     blocks_of(builder.semantics(), pieces[member], chunk));
}

void dissemination_allgather(Builder& builder, Group group, Pieces pieces) {
  const std::size_t size = group.size();
  // Before a stage of distance d, member m holds the pieces of m, m+1, .. m+d-1 (modulo the size).
  for (std::size_t distance = 1; distance < size; distance *= 2) {
    const std::size_t held = std::min(distance, size - distance);
    for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
      for (std::size_t member = 0; member < size; ++member) {
        Segments sent;
        for (std::size_t k = 0; k < held; ++k) {
          const Segments& piece = pieces[(member + k) % size];
          sent.insert(sent.end(), piece.begin(), piece.end());
        }
        builder.move(group[member], group[(member + size - distance) % size],
                     blocks_of(builder.semantics(), sent, chunk));
      }
  }
}

void direct_gather(Builder& builder, Group group, Pieces pieces) {
  for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
    for (std::size_t member = 1; member < group.size(); ++member)
      builder.move(group[member], group[0], blocks_of(builder.semantics(), pieces[member], chunk));
}

void direct_scatter(Builder& builder, Group group, Pieces pieces) {
  for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
    for (std::size_t member = 1; member < group.size(); ++member)
      builder.move(group[0], group[member], blocks_of(builder.semantics(), pieces[member], chunk));
}

namespace {

// The pieces of members [first, first + count), as far as there are so many.
Segments subtree(Pieces pieces, std::size_t first, std::size_t count) {
  Segments all;
  for (std::size_t i = first; i < std::min(first + count, pieces.size()); ++i)
    all.insert(all.end(), pieces[i].begin(), pieces[i].end());
  return all;
}

}  // namespace

void binomial_gather(Builder& builder, Group group, Pieces pieces) {
  for (std::size_t span = 1; span < group.size(); span *= 2)
    for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
      for (std::size_t member = span; member < group.size(); member += 2 * span)
        builder.move(group[member], group[member - span],
                     blocks_of(builder.semantics(), subtree(pieces, member, span), chunk));
}

void binomial_scatter(Builder& builder, Group group, Pieces pieces) {
  std::size_t top = 1;
  while (top * 2 < group.size()) top *= 2;
  for (std::size_t span = top; span > 0; span /= 2)
    for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
      for (std::size_t member = span; member < group.size(); member += 2 * span)
        builder.move(group[member - span], group[member],
                     blocks_of(builder.semantics(), subtree(pieces, member, span), chunk));
}

}  // namespace plait::plan
