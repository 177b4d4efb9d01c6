#include "plugin/link_probe.h"

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

#include "plugin/cooperation.h"
#include "plugin/errors.h"
#include "tl/trace.h"

namespace plait::plugin {
namespace {

constexpr int piece_bytes = 32 * 1024;  // below the eager limits, so that no hand-shake is part of the figure
// Times RateTrial::longer.
constexpr int untimed_pieces = 12, timed_pieces = 8;
constexpr int tag = 1, answer_tag = 2;

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
double coarse(double seconds_per_byte) {
  return std::exp2(std::ceil(std::log2(std::clamp(seconds_per_byte, 1e-12, 1e-6))));
}

// How much slower it is between switches counts more than how fast it is: to the nearest half power of two.
NetworkRates coarse(const NetworkRates& measured) {
  const bool both = measured.node > 0 && measured.across_switches > 0;
  NetworkRates rates;
  if (measured.way > 0) rates.way = std::exp2(std::round(std::log2(measured.way)));
  rates.node = coarse(measured.node > 0 ? measured.node : measured.across_switches);
  if (measured.across_switches == 0) return rates;
  const double ratio = both ? std::max(measured.across_switches / measured.node, 1.0) : 1.0;
  rates.across_switches = rates.node * std::exp2(std::round(2 * std::log2(ratio)) / 2);
  return rates;
}

// Each node's first rank sends to the next node's and times what it receives from the one before.
RateTrial trial_of(const Hierarchy& hierarchy, int node, int longer) {
  const int nodes = hierarchy.nodes();
  return {.to = hierarchy.ranks_on_node((node + 1) % nodes).front(),
          .from = hierarchy.ranks_on_node((node + nodes - 1) % nodes).front(),
          .longer = longer};
}

struct Pieces {
  std::vector<std::byte> out, in;
  std::vector<MPI_Request> requests;

  void make_room(int longer) {
    const auto pieces = static_cast<std::size_t>((untimed_pieces + timed_pieces) * longer);
    out.resize(piece_bytes);
    in.resize(piece_bytes * pieces);
    requests.assign(2 * pieces, MPI_REQUEST_NULL);
  }
};

MeasuredRate measure_mpi(MPI_Comm comm, const RateTrial& trial, Pieces& memory) {
  const int untimed = untimed_pieces * trial.longer, timed = timed_pieces * trial.longer, pieces = untimed + timed;
  std::vector<std::byte>&out = memory.out, &in = memory.in;
  std::vector<MPI_Request>& requests = memory.requests;
  bool well = true;
  const double posted = PMPI_Wtime();
  for (int i = 0; i < pieces; ++i)
    well &= PMPI_Irecv(in.data() + std::size_t{piece_bytes} * static_cast<std::size_t>(i), piece_bytes, MPI_BYTE,
                       trial.from, tag, comm, &requests[static_cast<std::size_t>(i)]) == MPI_SUCCESS;
  for (int i = 0; i < pieces; ++i)
    well &= PMPI_Isend(out.data(), piece_bytes, MPI_BYTE, trial.to, tag, comm,
                       &requests[static_cast<std::size_t>(pieces + i)]) == MPI_SUCCESS;
  well &= PMPI_Wait(requests.data(), MPI_STATUS_IGNORE) == MPI_SUCCESS;
  const double first = PMPI_Wtime();
  well &= PMPI_Waitall(untimed, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  const double begin = PMPI_Wtime();
  well &= PMPI_Waitall(timed, requests.data() + untimed, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  const double end = PMPI_Wtime();
  well &= PMPI_Waitall(pieces, requests.data() + pieces, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  return {well ? (end - begin) / (double{piece_bytes} * timed) : failed, first - posted};
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

// Half of the shortest of a few round trips to the rank behind, while the one before asks the same: no start of a
// rank's that was late counts. Negative on an error.
double measure_way(MPI_Comm comm, const RateTrial& trial, int trips) {
  double shortest = std::numeric_limits<double>::infinity();
  char out = 0, asked = 0, answered = 0;
  for (int trip = 0; trip < trips; ++trip) {
    std::array<MPI_Request, 2> requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const double begin = PMPI_Wtime();
    bool well = PMPI_Irecv(&answered, 1, MPI_CHAR, trial.to, answer_tag, comm, &requests[0]) == MPI_SUCCESS;
    well &= PMPI_Isend(&out, 1, MPI_CHAR, trial.to, tag, comm, &requests[1]) == MPI_SUCCESS;
    well &= PMPI_Recv(&asked, 1, MPI_CHAR, trial.from, tag, comm, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    well &= PMPI_Send(&asked, 1, MPI_CHAR, trial.from, answer_tag, comm) == MPI_SUCCESS;
    well &= PMPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS;
    if (!well) return failed;
    shortest = std::min(shortest, PMPI_Wtime() - begin);
  }
  return shortest / 2;
}

// One rank's figures, and after agree() those of all: the slowest rates, the latest arrival, the shortest way.
struct Figures {
  double node = 0, across_switches = 0;  // 0: not measured
  double first_s = 0;                    // of a message, from the receiver's start; in a ring no start is late for all
  double way = std::numeric_limits<double>::infinity();

  bool bad() const { return node < 0 || across_switches < 0 || way < 0; }
};

// An error where one rank failed; unavailable where that is the network, which all know then.
Result<Figures> agree(MPI_Comm comm, const Figures& mine) {
  const std::array<double, 5> own = {mine.node, mine.across_switches, mine.first_s, -mine.way, mine.bad() ? 1.0 : 0.0};
  std::array<double, 5> all = {};
  if (Status met = reduce_all(own.data(), all.data(), 5, MPI_DOUBLE, MPI_MAX, comm, "agree on the network's rate");
      !met.ok())
    return met;
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
Result<std::optional<Part>> prepare_trial(MPI_Comm comm, const Hierarchy& hierarchy, const RateMeter& meter,
                                          int longer) {
  std::optional<Part> part;
  Status ready;
  try {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    const int node = hierarchy.node_of(rank);
    if (hierarchy.ranks_on_node(node).front() == rank) {
      part = {trial_of(hierarchy, node, longer), comes_across(hierarchy, node)};
      meter.make_room(longer);
    }
  } catch (const std::exception& exception) {
    ready = status_of(exception);
  }
  if (Status status = go_on_together(comm, ready); !status.ok()) return status;
  return part;
}

Result<Figures> measure_rates(MPI_Comm comm, const Hierarchy& hierarchy, const RateMeter& meter, int longer = 1) {
  const Result<std::optional<Part>> part = prepare_trial(comm, hierarchy, meter, longer);
  if (!part.ok()) return part.status();
  Figures mine;
  if (*part) {
    const MeasuredRate measured = meter.measure((*part)->trial);
    mine.first_s = measured.first_s;
    ((*part)->across_switches ? mine.across_switches : mine.node) = measured.seconds_per_byte;
  }
  return agree(comm, mine);
}

// The way, and the rates once the windows are open. `rates` is agreed, and so is what follows from it.
Result<Figures> measure_long_way(MPI_Comm comm, const Hierarchy& hierarchy, const RateMeter& meter, Figures rates) {
  const int trips = static_cast<int>(std::clamp<double>(trips_s / (2 * rates.first_s), fewest_trips, most_trips));
  const Result<std::optional<Part>> part = prepare_trial(comm, hierarchy, meter, 1);
  if (!part.ok()) return part.status();
  Figures mine;
  if (*part) mine.way = measure_way(comm, (*part)->trial, trips);
  const Result<Figures> trip = agree(comm, mine);
  if (!trip.ok()) return trip;
  rates.way = trip->way;
  if (rates.way < long_way_s) return rates;
  constexpr double trial_bytes = double{piece_bytes} * (untimed_pieces + timed_pieces);
  const double trial_s = std::max(rates.node, rates.across_switches) * trial_bytes;
  const int longer = static_cast<int>(std::clamp<double>(longest_trial_s / trial_s, 1, most_longer));
  for (int trial = 0; trial < long_trials; ++trial) {
    const Result<Figures> again = measure_rates(comm, hierarchy, meter, longer);
    if (!again.ok()) return again;
    rates.node = std::min(rates.node, again->node);
    rates.across_switches = std::min(rates.across_switches, again->across_switches);
  }
  return rates;
}

Result<NetworkRates> measure_network(MPI_Comm comm, const Hierarchy& hierarchy, const RateMeter& meter) {
  Result<Figures> measured = measure_rates(comm, hierarchy, meter);
  if (measured.ok() && measured->first_s >= long_way_s) measured = measure_long_way(comm, hierarchy, meter, *measured);
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

RateMeter mpi_meter(MPI_Comm comm) {
  const auto memory = std::make_shared<Pieces>();
  return {.make_room = [memory](int longer) { memory->make_room(longer); },
          .measure = [comm, memory](const RateTrial& trial) { return measure_mpi(comm, trial, *memory); }};
}

struct ChannelMeter::Memory {
  std::vector<std::byte> out, in;
  std::vector<PlainMessage> sends, receives;
  std::vector<Transfer*> completed;
};

ChannelMeter::ChannelMeter(std::unique_ptr<Channel> channel, int longer)
    : memory_(std::make_unique<Memory>()), channel_(std::move(channel)) {
  const auto pieces = static_cast<std::size_t>((untimed_pieces + timed_pieces) * longer);
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
  auto& [out, in, sends, receives, completed] = *memory_;
  const auto untimed = static_cast<std::size_t>(untimed_pieces * trial.longer);
  const std::size_t timed = static_cast<std::size_t>(timed_pieces * trial.longer), pieces = untimed + timed;
  std::uint64_t ends = 0, first = 0;
  std::size_t arrived = 0;
  const std::uint64_t begin = monotonic_ns();
  std::uint64_t begun = begin;
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
      if (++arrived == 1) first = monotonic_ns();
      if (arrived == untimed) begun = monotonic_ns();
      if (arrived == pieces) ends = monotonic_ns();
    }
  }
  const double first_s = static_cast<double>(first - begin) * ns;
  if (ends <= begun) return {1e-12, first_s};  // too fast to be measured
  return {static_cast<double>(ends - begun) * ns / (double{piece_bytes} * static_cast<double>(timed)), first_s};
}

Result<NetworkRates> network_rates(MPI_Comm comm, const Hierarchy& hierarchy, const RateMeter& meter) {
  const bool switches = hierarchy.levels().front().kind == LevelKind::leaf_switch;
  const double way = known_way.load(), infinite = std::numeric_limits<double>::infinity();
  const Result<Figures> known = agree(
      comm,
      {.node = known_node_rate.load(), .across_switches = known_switch_rate.load(), .way = way > 0 ? way : infinite});
  if (!known.ok()) return known.status();
  Result<NetworkRates> agreed =
      NetworkRates{known->node, known->across_switches, known->way < infinite ? known->way : 0};
  if (known->node == 0 || (switches && known->across_switches == 0)) agreed = measure_network(comm, hierarchy, meter);
  if (!agreed.ok()) return agreed;
  known_node_rate.store(agreed->node);
  known_way.store(agreed->way);
  if (agreed->across_switches > 0) known_switch_rate.store(agreed->across_switches);
  if (!switches) agreed->across_switches = 0;
  return agreed;
}

}  // namespace plait::plugin
