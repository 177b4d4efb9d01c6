// Messages between the ranks of a team that whoever brings them has besides: a channel where there is no other, and a
// first idea of the network.
#pragma once

#include <functional>
#include <memory>

#include "runtime/layer.h"
#include "tl/channel.h"

namespace plait::runtime {

// One rank's part in a measurement: it sends to one rank and times what it receives from another.
struct RateTrial {
  int to = 0, from = 0;
  int longer = 1;  // so many times as much as usual
};
struct MeasuredRate {
  double seconds_per_byte = 0;  // negative on an error
  double first_s = 0;           // from the rank's start until the first bytes have come
};
// `measure` needs no memory where `make_room` has returned for as long a trial, which may throw.
struct RateMeter {
  std::function<void(int longer)> make_room;
  std::function<MeasuredRate(const RateTrial&)> measure;
};

// What a trial sends: times RateTrial::longer.
inline constexpr int rate_piece_bytes = 32 * 1024;  // below the eager limits: no hand-shake is part of the figure
inline constexpr int untimed_pieces = 12, timed_pieces = 8;

class HostMessages {
 public:
  virtual ~HostMessages() = default;
  // Used within the life of the oob that these are of.
  virtual std::unique_ptr<Channel> make_channel() = 0;
  virtual RateMeter meter() = 0;
  // Half of the shortest of a few round trips to the rank that is sent to, while the other one asks the same: no start
  // of a rank's that was late counts. Seconds; negative on an error.
  virtual double way(const RateTrial& trial, int trips) = 0;
};

}  // namespace plait::runtime
