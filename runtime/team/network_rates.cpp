#include "runtime/team/network_rates.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/attempt.h"
#include "runtime/oob/oob.h"
#include "runtime/team/arrivals.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

constexpr int piece_bytes = rate_piece_bytes;

// What this process measured or was told; 0: nothing yet. Only a hint for the next communicator, whose ranks agree on
// it.
constinit std::atomic<double> known_node_rate{0}, known_switch_rate{0}, known_way{0};

// From where on the planner's own figure for the way (plan/model/machine.cpp) would be wrong by orders. Networks within
// a building stay below, and so do busy machines: a rank that has to wait for a processor does so on one node, not on
// all.
constexpr double long_way_s = 1e-3;
constexpr double trips_s = 0.1;  // about, for all of them
constexpr int fewest_trips = 4, most_trips = 32;
// Over a long way so many times as much is sent, as a connection opens its window by a round trip after the other; less
// where that would take long.
constexpr int most_longer = 8, long_trials = 2;
constexpr double longest_trial_s = 3;

constexpr double failed = -1;

// To the next power of two: the figure of a busy machine wavers, and plans (and with them the last bits of sums) should
// not waver with it. Within what networks do: 1 TB/s to 1 MB/s.
// Without logarithms, whose last bits differ between the mathematical libraries of ranks.
double coarse(double seconds_per_byte) {
  int exponent = 0;
  const double mantissa = std::frexp(std::clamp(seconds_per_byte, 1e-12, 1e-6), &exponent);  // in [1/2, 1)
  return std::ldexp(1, mantissa > 0.5 ? exponent : exponent - 1);
}

constexpr double root_of_2 = 1.4142135623730951, fourth_root_of_2 = 1.189207115002721;

// To the nearest power of two; and to the nearest half one, of ratios of 1 and more.
double nearest_power(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(1, 2 * mantissa >= root_of_2 ? exponent : exponent - 1);
}
double nearest_half_power(double ratio) {
  int exponent = 0;
  const double mantissa = 2 * std::frexp(ratio, &exponent);
  const double half = mantissa < fourth_root_of_2 ? 1 : mantissa < root_of_2 * fourth_root_of_2 ? root_of_2 : 2;
  return std::ldexp(half, exponent - 1);
}

// How much slower it is between switches counts more than how fast it is: to the nearest half power of two.
NetworkRates coarse(const NetworkRates& measured) {
  const bool both = measured.node > 0 && measured.across_switches > 0;
  NetworkRates rates;
  if (measured.way > 0) rates.way = nearest_power(measured.way);
  rates.node = coarse(measured.node > 0 ? measured.node : measured.across_switches);
  if (measured.across_switches == 0) return rates;
  const double ratio = both ? std::max(measured.across_switches / measured.node, 1.0) : 1.0;
  rates.across_switches = rates.node * nearest_half_power(ratio);
  return rates;
}

// Each node's first rank sends to the next node's and times what it receives from the one before.
RateTrial trial_of(const Hierarchy& hierarchy, int node, int longer) {
  const int nodes = hierarchy.nodes();
  return {.to = hierarchy.ranks_on_node((node + 1) % nodes).front(),
          .from = hierarchy.ranks_on_node((node + nodes - 1) % nodes).front(),
          .longer = longer};
}

// Whether the node's messages come from one on another switch.
bool comes_across(const Hierarchy& hierarchy, int node) {
  const Level& outermost = hierarchy.levels().front();
  if (outermost.kind != LevelKind::leaf_switch) return false;
  const auto switch_of = [&](int one) {
    const auto& first = outermost.group_first;
    return std::upper_bound(first.begin(), first.end(), hierarchy.node_first()[static_cast<std::size_t>(one)]) -
           first.begin();
  };
  return switch_of(node) != switch_of((node + hierarchy.nodes() - 1) % hierarchy.nodes());
}

// One rank's figures, and after agree() those of all: the slowest rates, the latest arrival, the shortest way.
struct Figures {
  double node = 0, across_switches = 0;  // 0: not measured
  double first_s = 0;                    // of a message, from the receiver's start; in a ring no start is late for all
  double way = std::numeric_limits<double>::infinity();

  bool bad() const { return node < 0 || across_switches < 0 || way < 0; }
};

// An error where one rank failed; unavailable where that is the network, which all know then.
Result<Figures> agree(Oob& oob, const Figures& mine) {
  const std::array<double, 5> own = {mine.node, mine.across_switches, mine.first_s, -mine.way, mine.bad() ? 1.0 : 0.0};
  std::array<double, 5> all = {};
  if (Status met = reduce_all(oob, own, all, Op::max, "agree on the network's rate"); !met.ok()) return met;
  if (all[4] != 0) return Status(Code::unavailable, "the network's rate cannot be measured");
  return Figures{.node = all[0], .across_switches = all[1], .first_s = all[2], .way = -all[3]};
}

// What this rank does in a trial.
struct Part {
  RateTrial trial;
  bool across_switches = false;
};

// Nothing on ranks that are not their node's first. Collective, so that none ends for lack of memory in the midst of a
// trial, where others wait for its messages.
Result<std::optional<Part>> prepare_trial(Oob& oob, const Hierarchy& hierarchy, const RateMeter& meter, int longer) {
  std::optional<Part> part;
  Status ready;
  try {
    const int rank = oob.rank();
    const int node = hierarchy.node_of(rank);
    if (hierarchy.ranks_on_node(node).front() == rank) {
      part = {trial_of(hierarchy, node, longer), comes_across(hierarchy, node)};
      meter.make_room(longer);
    }
  } catch (const std::exception& exception) {
    ready = status_of(exception);
  }
  if (Status status = oob.go_on_together(ready); !status.ok()) return status;
  return part;
}

Result<Figures> measure_rates(Oob& oob, const Hierarchy& hierarchy, const RateMeter& meter, int longer = 1) {
  const Result<std::optional<Part>> part = prepare_trial(oob, hierarchy, meter, longer);
  if (!part.ok()) return part.status();
  Figures mine;
  if (*part) {
    const MeasuredRate measured = meter.measure((*part)->trial);
    mine.first_s = measured.first_s;
    ((*part)->across_switches ? mine.across_switches : mine.node) = measured.seconds_per_byte;
  }
  return agree(oob, mine);
}

// The way, and the rates once the windows are open. `rates` is agreed, and so is what follows from it.
Result<Figures> measure_long_way(Oob& oob, const Hierarchy& hierarchy, const RateMeter& meter, Figures rates) {
  const int trips = static_cast<int>(std::clamp<double>(trips_s / (2 * rates.first_s), fewest_trips, most_trips));
  const Result<std::optional<Part>> part = prepare_trial(oob, hierarchy, meter, 1);
  if (!part.ok()) return part.status();
  Figures mine;
  if (*part) mine.way = oob.messages()->way((*part)->trial, trips);
  const Result<Figures> trip = agree(oob, mine);
  if (!trip.ok()) return trip;
  rates.way = trip->way;
  if (rates.way < long_way_s) return rates;
  constexpr double trial_bytes = double{piece_bytes} * (untimed_pieces + timed_pieces);
  const double trial_s = std::max(rates.node, rates.across_switches) * trial_bytes;
  const int longer = static_cast<int>(std::clamp<double>(longest_trial_s / trial_s, 1, most_longer));
  for (int trial = 0; trial < long_trials; ++trial) {
    const Result<Figures> again = measure_rates(oob, hierarchy, meter, longer);
    if (!again.ok()) return again;
    rates.node = std::min(rates.node, again->node);
    rates.across_switches = std::min(rates.across_switches, again->across_switches);
  }
  return rates;
}

Result<NetworkRates> measure_network(Oob& oob, const Hierarchy& hierarchy, const RateMeter& meter) {
  Result<Figures> measured = measure_rates(oob, hierarchy, meter);
  if (measured.ok() && measured->first_s >= long_way_s && oob.messages() != nullptr)
    measured = measure_long_way(oob, hierarchy, meter, *measured);
  if (!measured.ok()) return measured.status();
  const bool far = measured->way >= long_way_s && measured->way < std::numeric_limits<double>::infinity();
  return coarse({measured->node, measured->across_switches, far ? measured->way : 0});
}

// A message of one piece of memory.
class PlainMessage {
 public:
  bool start(Channel& channel, StepKind kind, int peer, std::byte* bytes) {
    buffers_.base = {bytes, nullptr, nullptr};
    transfer_.kind = kind;
    transfer_.peer = peer;
    transfer_.bytes = span_.bytes;
    transfer_.memory = {&span_, 1, &buffers_};
    return channel.start(transfer_).ok();
  }

 private:
  Buffers buffers_;
  BoundSpan span_{0, piece_bytes, Space::input};
  Transfer transfer_;
};

constexpr std::uint64_t measure_limit_ns = 30'000'000'000;
constexpr double ns = 1e-9;

}  // namespace

struct ChannelMeter::Memory {
  std::vector<std::byte> out, in;
  std::vector<PlainMessage> sends, receives;
  std::vector<Transfer*> completed;
  Arrivals arrivals;
  explicit Memory(std::size_t timed) : arrivals(timed) {}
};

ChannelMeter::ChannelMeter(std::unique_ptr<Channel> channel, int longer) : ChannelMeter(*channel, longer) {
  own_ = std::move(channel);
}

ChannelMeter::ChannelMeter(Channel& channel, int longer) : channel_(&channel) {
  const auto pieces = static_cast<std::size_t>((untimed_pieces + timed_pieces) * longer);
  memory_ = std::make_unique<Memory>(static_cast<std::size_t>(timed_pieces * longer) + 1);
  memory_->out.resize(piece_bytes);
  memory_->in.resize(piece_bytes * pieces);
  memory_->sends.resize(pieces);
  memory_->receives.resize(pieces);
  memory_->completed.reserve(2 * pieces);
}

ChannelMeter::ChannelMeter(ChannelMeter&&) noexcept = default;
ChannelMeter::~ChannelMeter() = default;

MeasuredRate ChannelMeter::measure(const RateTrial& trial) {
  Channel& channel = *channel_;
  auto& [out, in, sends, receives, completed, arrivals] = *memory_;
  arrivals.clear();
  const auto untimed = static_cast<std::size_t>(untimed_pieces * trial.longer);
  const std::size_t pieces = untimed + static_cast<std::size_t>(timed_pieces * trial.longer);
  std::uint64_t first = 0;
  std::size_t arrived = 0;
  const std::uint64_t begin = monotonic_ns();
  for (std::size_t i = 0; i < pieces; ++i)
    if (!receives[i].start(channel, StepKind::recv, trial.from, in.data() + piece_bytes * i)) return {failed, 0};
  for (PlainMessage& message : sends)
    if (!message.start(channel, StepKind::send, trial.to, out.data())) return {failed, 0};
  while (channel.active() > 0) {
    completed.clear();
    if (!channel.progress(completed).ok() || monotonic_ns() - begin > measure_limit_ns) return {failed, 0};
    if (completed.empty()) sched_yield();
    for (const Transfer* transfer : completed) {
      if (transfer->kind == StepKind::send) continue;
      const std::uint64_t now = monotonic_ns();
      if (++arrived == 1) first = now;
      if (arrived >= untimed) arrivals.add(static_cast<double>(now - begin) * ns);
    }
  }
  const double first_s = static_cast<double>(first - begin) * ns, seconds = arrivals.seconds_a_piece();
  if (seconds <= 0) return {1e-12, first_s};  // too fast to be measured
  return {seconds / piece_bytes, first_s};
}

// A channel that has failed lets the memory go before that is freed.
RateMeter meter_of(Channel& channel) {
  const auto meter = std::make_shared<std::optional<ChannelMeter>>();
  return {.make_room = [&channel, meter](int longer) { meter->emplace(channel, longer); },
          .measure =
              [&channel, meter](const RateTrial& trial) {
                const MeasuredRate measured = (*meter)->measure(trial);
                if (measured.seconds_per_byte < 0)
                  channel.abandon({Code::unavailable, "the network's rate cannot be measured"});
                return measured;
              }};
}

void forget_network_rates() {
  known_node_rate.store(0);
  known_switch_rate.store(0);
  known_way.store(0);
}

Status measure_once(Oob& oob, const Hierarchy& hierarchy, const RateMeter& meter) {
  return measure_rates(oob, hierarchy, meter).status();
}

NetworkRates known_network_rates() { return {known_node_rate.load(), known_switch_rate.load(), known_way.load()}; }

NetworkRates agreed_rates(const NetworkRates& one, const NetworkRates& other) {
  const bool both_know_a_way = one.way > 0 && other.way > 0;
  return {.node = std::max(one.node, other.node),
          .across_switches = std::max(one.across_switches, other.across_switches),
          .way = both_know_a_way ? std::min(one.way, other.way) : std::max(one.way, other.way)};
}

Result<NetworkRates> network_rates(Oob& oob, const Hierarchy& hierarchy, const RateMeter& meter,
                                   const NetworkRates& known) {
  const bool switches = hierarchy.levels().front().kind == LevelKind::leaf_switch;
  Result<NetworkRates> agreed = known;
  if (known.node == 0 || (switches && known.across_switches == 0)) agreed = measure_network(oob, hierarchy, meter);
  if (!agreed.ok()) return agreed;
  known_node_rate.store(agreed->node);
  known_way.store(agreed->way);
  if (agreed->across_switches > 0) known_switch_rate.store(agreed->across_switches);
  if (!switches) agreed->across_switches = 0;
  return agreed;
}

}  // namespace plait::runtime
