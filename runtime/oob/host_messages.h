// Messages between the ranks of a team that whoever brings them has besides: a channel where there is no other, and a
// first idea of the network.
#pragma once

#include <cstddef>
#include <cstdint>
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

// One rank's part in an exchange in which each sends to one and receives from another.
struct Swap {
  int to = 0, from = 0;
  const void* out = nullptr;
  std::size_t out_bytes = 0;
  void* in = nullptr;
  std::size_t in_bytes = 0;
};

class HostMessages {
 public:
  virtual ~HostMessages() = default;
  // Used within the life of the oob that these are of.
  virtual std::unique_ptr<Channel> make_channel() = 0;
  virtual RateMeter meter() = 0;
  // Half of the shortest of a few round trips to the rank that is sent to, while the other one asks the same: no start
  // of a rank's that was late counts. Seconds; negative on an error.
  virtual double way(const RateTrial& trial, int trips) = 0;
  // Blocks until both messages have come; what comes may be shorter. False on an error: what it works on must then stay
  // for ever. Needs no memory of ours.
  virtual bool swap(const Swap& swap) = 0;
  // In place of the message that another rank's next swap takes from this one: a number of eight bytes. Blocks not, and
  // needs no memory of ours: this rank swaps no more.
  virtual void leave(int to, std::int64_t number) noexcept = 0;
};

}  // namespace plait::runtime
