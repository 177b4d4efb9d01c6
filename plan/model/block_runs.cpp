#include "plan/model/block_runs.h"

#include <algorithm>

namespace plait::plan {

void append(Segments& segments, const SegmentRun& run) {
  if (run.count == 0) return;
  if (!segments.empty() && segments.back().end() == run.first)
    segments.back().count += run.count;
  else
    segments.push_back(run);
}

void append(Segments& segments, const Segments& more) {
  for (const SegmentRun& run : more) append(segments, run);
}

int count_of(const Segments& segments) {
  int count = 0;
  for (const SegmentRun& run : segments) count += run.count;
  return count;
}

Segments slice(const Segments& segments, int begin, int end) {
  Segments part;
  int position = 0;
  for (const SegmentRun& run : segments) {
    const int from = std::max(begin - position, 0), to = std::min(end - position, run.count);
    if (from < to) append(part, {run.first + from, to - from});
    position += run.count;
  }
  return part;
}

BlockRuns blocks_of(const Segments& segments, int chunk) {
  BlockRuns blocks;
  blocks.reserve(segments.size());
  for (const SegmentRun& run : segments) blocks.push_back({chunk, run.first, run.count});
  return blocks;
}

BlockRuns merged(BlockRuns blocks) {
  const auto before = [](const BlockRun& a, const BlockRun& b) {
    return a.chunk != b.chunk ? a.chunk < b.chunk : a.first < b.first;
  };
  if (!std::ranges::is_sorted(blocks, before)) std::ranges::sort(blocks, before);
  BlockRuns runs;
  for (const BlockRun& run : blocks)
    if (!runs.empty() && runs.back().chunk == run.chunk && runs.back().first + runs.back().count == run.first)
      runs.back().count += run.count;
    else
      runs.push_back(run);
  return runs;
}

}  // namespace plait::plan
