#include "plan/algorithm/algorithms.h"

namespace plait::plan {

namespace {

std::size_t wrap(std::ptrdiff_t index, std::size_t size) {
  const auto n = static_cast<std::ptrdiff_t>(size);
  return static_cast<std::size_t>((index % n + n) % n);
}

}  // namespace

std::vector<BlockId> blocks_of(const Semantics& semantics, const Segments& segments, int chunk) {
  std::vector<BlockId> blocks;
  blocks.reserve(segments.size());
  for (const int segment : segments) blocks.push_back(semantics.block(segment, chunk));
  return blocks;
}

void ring_reduce_scatter(Builder& builder, Group group, Pieces pieces) {
  const std::size_t size = group.size();
  for (std::size_t stage = 0; stage + 1 < size; ++stage)
    for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
      for (std::size_t member = 0; member < size; ++member) {
        const auto piece = wrap(static_cast<std::ptrdiff_t>(member) - 1 - static_cast<std::ptrdiff_t>(stage), size);
        builder.combine(group[member], group[wrap(static_cast<std::ptrdiff_t>(member) + 1, size)],
                        blocks_of(builder.semantics(), pieces[piece], chunk));
      }
}

void ring_allgather(Builder& builder, Group group, Pieces pieces) {
  const std::size_t size = group.size();
  for (std::size_t stage = 0; stage + 1 < size; ++stage)
    for (int chunk = 0; chunk < builder.semantics().chunks(); ++chunk)
      for (std::size_t member = 0; member < size; ++member) {
        const auto piece = wrap(static_cast<std::ptrdiff_t>(member) - static_cast<std::ptrdiff_t>(stage), size);
        builder.move(group[member], group[wrap(static_cast<std::ptrdiff_t>(member) + 1, size)],
                     blocks_of(builder.semantics(), pieces[piece], chunk));
      }
}

}  // namespace plait::plan
