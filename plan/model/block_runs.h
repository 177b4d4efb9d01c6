// Lists of segments and of blocks as runs: what is cut into many pieces is mostly described by few numbers.
#pragma once

#include <vector>

namespace plait::plan {

// `count` consecutive segments (see Semantics).
struct SegmentRun {
  int first = 0, count = 0;
  int end() const { return first + count; }
  bool operator==(const SegmentRun&) const = default;
};
using Segments = std::vector<SegmentRun>;

// Behind those that are there; what follows on the last run prolongs it.
void append(Segments& segments, const SegmentRun& run);
void append(Segments& segments, const Segments& more);

int count_of(const Segments& segments);
// Those at positions [begin, end) of the list.
Segments slice(const Segments& segments, int begin, int end);

// The blocks of one chunk of consecutive segments.
struct BlockRun {
  int chunk = 0;
  int first = 0, count = 0;  // segments
  bool operator==(const BlockRun&) const = default;
};
using BlockRuns = std::vector<BlockRun>;

BlockRuns blocks_of(const Segments& segments, int chunk);
// The same blocks in ascending order, in as few runs as can be. Precondition: each is there once.
BlockRuns merged(BlockRuns blocks);

}  // namespace plait::plan
