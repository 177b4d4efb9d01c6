#include "plan/algorithm/algorithm.h"

namespace plait::plan {

std::vector<BlockId> blocks_of(const Semantics& semantics, const Segments& segments, int chunk) {
  std::vector<BlockId> blocks;
  blocks.reserve(segments.size());
  for (const int segment : segments) blocks.push_back(semantics.block(segment, chunk));
  return blocks;
}

std::vector<Segments> cut_evenly(const Segments& segments, std::size_t parts) {
  std::vector<Segments> result;
  for (std::size_t part = 0; part < parts; ++part)
    result.emplace_back(segments.begin() + static_cast<std::ptrdiff_t>(segments.size() * part / parts),
                        segments.begin() + static_cast<std::ptrdiff_t>(segments.size() * (part + 1) / parts));
  return result;
}

}  // namespace plait::plan
