#include "tl/room.h"

#include <algorithm>

namespace plait::tl {
namespace {

bool is_staged(const BoundSchedule& schedule, const BoundStep& step) {
  const SpanList spans = step.kind == StepKind::send ? step.source : step.destination;
  return step.kind == StepKind::recv_reduce || spans.count > 1 ||
         (spans.count == 1 && schedule.spans[spans.first].grid != no_grid);
}

// Consecutive pieces of which all but the last have less than the lane's bytes: their messages' pieces have at least
// `least` on average, but for two messages of which only an end belongs to them.
std::size_t most_under_way(std::size_t pieces, std::uint64_t least, const PieceLimits& limits) {
  const std::uint64_t in_bytes = limits.bytes / std::max<std::uint64_t>(least, 1) + 3;
  return std::min({pieces, limits.pieces, static_cast<std::size_t>(in_bytes)});
}

}  // namespace

Room room_of(const BoundSchedule& schedule, ChannelKind channel, std::uint64_t longer_than, const PieceLimits& limits) {
  Room room;
  for (const Lane& lane : schedule.lanes) {
    std::size_t pieces = 0, staged = 0;
    std::uint64_t least = limits.piece_bytes;
    for (std::uint32_t i = 0; i < lane.steps.count; ++i) {
      const BoundStep& step = schedule.steps[schedule.lane_steps[lane.steps.first + i]];
      const bool too_short = longer_than > 0 && step.bytes <= longer_than;
      if (step.channel != channel || step.kind == StepKind::shm_collective || too_short) continue;
      const std::uint64_t cut = std::max<std::uint64_t>((step.bytes + limits.piece_bytes - 1) / limits.piece_bytes, 1);
      pieces += cut;
      if (is_staged(schedule, step)) staged += cut;
      least = std::min(least, step.bytes / cut);
    }
    const std::size_t most = most_under_way(pieces, least, limits);
    room.pieces += most;
    room.staged += std::min(most, staged);
  }
  return room;
}

}  // namespace plait::tl
