#include "plan/lower/block_sizes.h"

#include <algorithm>

namespace plait::plan {

namespace {

constexpr std::size_t cache_line = 64;

}  // namespace

bool is_vector(Collective collective) {
  return collective == Collective::barrier || collective == Collective::bcast || collective == Collective::reduce ||
         collective == Collective::allreduce;
}

BlockSizes::BlockSizes(const Semantics& semantics, const Placement& placement)
    : semantics_(semantics),
      placement_(placement),
      vector_(is_vector(semantics.collective())),
      granule_(placement.element_bytes == 0 ? 1 : std::max<std::size_t>(1, cache_line / placement.element_bytes)) {
  if (placement.counts == nullptr) return;
  first_.reserve(static_cast<std::size_t>(semantics.ranks()));
  std::size_t first = 0;
  for (int segment = 0; segment < semantics.ranks(); ++segment) {
    first_.push_back(first);
    first += placement.counts[segment];
  }
}

BlockSizes::Part BlockSizes::part(std::size_t elements, int parts, int index) const {
  const std::size_t units = (elements + granule_ - 1) / granule_;
  const auto boundary = [&](std::size_t i) {
    return std::min(elements, units * i / static_cast<std::size_t>(parts) * granule_);
  };
  return {boundary(static_cast<std::size_t>(index)), boundary(static_cast<std::size_t>(index) + 1)};
}

std::size_t BlockSizes::segment_elements(int segment) const {
  if (vector_) {
    const Part all = part(placement_.vector_elements, semantics_.segments(), segment);
    return all.end - all.begin;
  }
  return placement_.counts != nullptr ? placement_.counts[segment] : placement_.segment_elements;
}

std::size_t BlockSizes::bytes(BlockId block) const {
  if (placement_.places != nullptr) return placement_.places->bytes[block];
  const int chunks = semantics_.chunks();
  const int segment = static_cast<int>(block) / chunks;
  const Part chunk = part(segment_elements(segment), chunks, static_cast<int>(block) % chunks);
  return (chunk.end - chunk.begin) * placement_.element_bytes;
}

std::size_t BlockSizes::buffer_offset(BlockId block, std::uint32_t cell, std::uint32_t cells) const {
  const int chunks = semantics_.chunks();
  const int segment = static_cast<int>(block) / chunks;
  const std::size_t within = part(segment_elements(segment), chunks, static_cast<int>(block) % chunks).begin;
  if (vector_) {
    const std::size_t start = part(placement_.vector_elements, semantics_.segments(), segment).begin;
    return (start + within) * placement_.element_bytes;
  }
  const std::size_t index = cell / static_cast<std::uint32_t>(chunks);
  const bool holds_all = cells == static_cast<std::uint32_t>(semantics_.ranks()) * static_cast<std::uint32_t>(chunks);
  if (!holds_all) return within * placement_.element_bytes;
  std::size_t start = index * placement_.segment_elements;
  if (placement_.displacements != nullptr)
    start = placement_.displacements[index];
  else if (placement_.counts != nullptr)
    start = first_[index];
  return (start + within) * placement_.element_bytes;
}

bool BlockSizes::all_empty() const {
  for (BlockId block = 0; block < semantics_.blocks(); ++block)
    if (bytes(block) > 0) return false;
  return true;
}

}  // namespace plait::plan
