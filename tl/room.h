// How many pieces of messages a schedule can have under way at once over a channel that cuts them, so that the channel
// can take their memory beforehand.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/lower/bound_schedule.h"
#include "tl/layer.h"

namespace plait::tl {

// A lane is given pieces as long as it has fewer than these under way.
struct PieceLimits {
  std::size_t piece_bytes = 1;
  std::uint64_t bytes = 0;
  std::size_t pieces = 1;
};

struct Room {
  std::size_t pieces = 0;  // no run of the schedule has more under way
  std::size_t staged = 0;  // of them, those whose memory is cut: they need a buffer each
};

// Of the schedule's messages over that channel of more than `longer_than` bytes.
Room room_of(const BoundSchedule& schedule, ChannelKind channel, std::uint64_t longer_than, const PieceLimits& limits);

}  // namespace plait::tl
