// A first idea of the network's rate, at a communicator's set-up, until a machine file says more.
#pragma once

#include <memory>

#include "core/status.h"
#include "runtime/layer.h"
#include "runtime/oob/host_messages.h"
#include "runtime/oob/oob.h"
#include "tl/channel.h"
#include "topo/hierarchy.h"

namespace plait::runtime {

// Seconds that a byte takes, the same on all ranks: the slowest of all nodes.
struct NetworkRates {
  double node = 0;             // through a node's NIC
  double across_switches = 0;  // between nodes on different switches; 0: no switches are known, or one only
  double way = 0;  // seconds of a short message between nodes, where all of these are long (1 ms or more); else 0
};

// A rate over one channel, with the memory for a trial so much longer than usual.
class ChannelMeter {
 public:
  ChannelMeter(std::unique_ptr<Channel> channel, int longer);
  ChannelMeter(Channel& channel, int longer);  // which outlives it
  ChannelMeter(ChannelMeter&&) noexcept;
  ~ChannelMeter();
  MeasuredRate measure(const RateTrial& trial);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;  // outlives the channel, whose transfers are in it
  std::unique_ptr<Channel> own_;
  Channel* channel_;
};

// Over a channel that nothing else uses meanwhile; it outlives the meter. One whose rate cannot be measured is good for
// nothing more.
RateMeter meter_of(Channel& channel);

// What this process has measured or was told; zeros: nothing yet. A hint: ranks may know different things.
NetworkRates known_network_rates();
// What ranks that know these go by: the slowest rates and the shortest way that one of them knows.
NetworkRates agreed_rates(const NetworkRates& one, const NetworkRates& other);

// Collective; `hierarchy` must have two nodes or more, and `known` is the same on all ranks. Measured once in a
// process's life, and again only where no rank of a communicator has taken part in a measurement yet: 640 KiB from each
// node to the next, so that a rate limiter that lends some hundred KiB after an idle time does not mislead.
// Where the first message has taken long, the way is measured as well, by round trips of the host's messages, and,
// where that is long indeed, the rate once more with up to eight times the bytes. What all go by is known from then on.
Result<NetworkRates> network_rates(Oob& oob, const Hierarchy& hierarchy, const RateMeter& meter,
                                   const NetworkRates& known);

// What is known of the network is of one that is not used any more.
void forget_network_rates();

// Collective: one trial between each node's first rank and the next node's; what is found is the meter's to keep. Fails
// (unavailable) on all ranks where it fails on one.
Status measure_once(Oob& oob, const Hierarchy& hierarchy, const RateMeter& meter);

}  // namespace plait::runtime
