#include "plugin/link_probe.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <exception>
#include <memory>
#include <vector>

#include "plugin/cooperation.h"
#include "tl/trace.h"

namespace plait {
namespace {

constexpr int piece_bytes = 32 * 1024;  // below the eager limits, so that no hand-shake is part of the figure
constexpr int untimed_pieces = 12, timed_pieces = 8;
constexpr int pieces = untimed_pieces + timed_pieces;
constexpr int tag = 1;

// What this process measured or was told; 0: nothing yet. Only a hint for the next communicator, whose ranks agree on
// it.
constinit std::atomic<double> known_node_rate{0}, known_switch_rate{0};

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
  rates.node = coarse(measured.node > 0 ? measured.node : measured.across_switches);
  if (measured.across_switches == 0) return rates;
  const double ratio = both ? std::max(measured.across_switches / measured.node, 1.0) : 1.0;
  rates.across_switches = rates.node * std::exp2(std::round(2 * std::log2(ratio)) / 2);
  return rates;
}

// Each node's first rank sends to the next node's and times what it receives from the one before.
RateTrial trial_of(const Hierarchy& hierarchy, int node) {
  const int nodes = hierarchy.nodes();
  return {.to = hierarchy.ranks_on_node((node + 1) % nodes).front(),
          .from = hierarchy.ranks_on_node((node + nodes - 1) % nodes).front()};
}

struct Pieces {
  std::vector<std::byte> out = std::vector<std::byte>(piece_bytes);
  std::vector<std::byte> in = std::vector<std::byte>(piece_bytes * std::size_t{pieces});
};

double measure_mpi(MPI_Comm comm, const RateTrial& trial, Pieces& memory) {
  std::vector<std::byte>&out = memory.out, &in = memory.in;
  std::array<MPI_Request, 2 * pieces> requests;
  requests.fill(MPI_REQUEST_NULL);
  bool well = true;
  for (int i = 0; i < pieces; ++i)
    well &= PMPI_Irecv(in.data() + std::size_t{piece_bytes} * static_cast<std::size_t>(i), piece_bytes, MPI_BYTE,
                       trial.from, tag, comm, &requests[static_cast<std::size_t>(i)]) == MPI_SUCCESS;
  for (int i = 0; i < pieces; ++i)
    well &= PMPI_Isend(out.data(), piece_bytes, MPI_BYTE, trial.to, tag, comm,
                       &requests[static_cast<std::size_t>(pieces + i)]) == MPI_SUCCESS;
  well &= PMPI_Waitall(untimed_pieces, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  const double begin = PMPI_Wtime();
  well &= PMPI_Waitall(timed_pieces, requests.data() + untimed_pieces, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  const double end = PMPI_Wtime();
  well &= PMPI_Waitall(pieces, requests.data() + pieces, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  return well ? (end - begin) / (double{piece_bytes} * timed_pieces) : failed;
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

// The largest of all ranks' figures; an error where one failed.
Result<NetworkRates> slowest(MPI_Comm comm, const NetworkRates& mine) {
  const bool bad = mine.node == failed || mine.across_switches == failed;
  const std::array<double, 3> own = {mine.node, mine.across_switches, bad ? 1.0 : 0.0};
  std::array<double, 3> all = {0, 0, 0};
  if (reduce_all(own.data(), all.data(), 3, MPI_DOUBLE, MPI_MAX, comm) != MPI_SUCCESS || all[2] != 0)
    return Status(Code::peer_failed, "the ranks could not agree on the network's rate");
  return NetworkRates{all[0], all[1]};
}

NetworkRates measure_or_fail(MPI_Comm comm, const Hierarchy& hierarchy, const RateMeter& meter) {
  try {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    const int node = hierarchy.node_of(rank);
    if (hierarchy.ranks_on_node(node).front() != rank) return {};
    const double measured = meter(trial_of(hierarchy, node));
    return comes_across(hierarchy, node) ? NetworkRates{0, measured} : NetworkRates{measured, 0};
  } catch (const std::exception&) {
    return {failed, failed};
  }
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

// Its memory is there before the ranks begin to wait for each other's messages.
RateMeter mpi_meter(MPI_Comm comm) {
  return
      [comm, memory = std::make_shared<Pieces>()](const RateTrial& trial) { return measure_mpi(comm, trial, *memory); };
}

double measure_rate(Channel& channel, const RateTrial& trial) {
  std::vector<std::byte> out(piece_bytes), in(piece_bytes * std::size_t{pieces});
  std::array<PlainMessage, pieces> sends, receives;
  std::uint64_t ends = 0;
  std::size_t arrived = 0;
  const std::uint64_t begin = monotonic_ns();
  std::uint64_t begun = begin;
  for (std::size_t i = 0; i < pieces; ++i)
    if (!receives[i].start(channel, StepKind::recv, trial.from, in.data() + piece_bytes * i)) return failed;
  for (PlainMessage& message : sends)
    if (!message.start(channel, StepKind::send, trial.to, out.data())) return failed;
  std::vector<Transfer*> completed;
  while (channel.active() > 0) {
    completed.clear();
    if (!channel.progress(completed).ok() || monotonic_ns() - begin > measure_limit_ns) return failed;
    if (completed.empty()) sched_yield();
    for (const Transfer* transfer : completed) {
      if (transfer->kind == StepKind::send) continue;
      if (++arrived == untimed_pieces) begun = monotonic_ns();
      if (arrived == pieces) ends = monotonic_ns();
    }
  }
  if (ends <= begun) return 1e-12;  // too fast to be measured
  return static_cast<double>(ends - begun) * ns / (double{piece_bytes} * timed_pieces);
}

Result<NetworkRates> network_rates(MPI_Comm comm, const Hierarchy& hierarchy, const RateMeter& meter) {
  const bool switches = hierarchy.levels().front().kind == LevelKind::leaf_switch;
  Result<NetworkRates> agreed = slowest(comm, {known_node_rate.load(), known_switch_rate.load()});
  if (!agreed.ok()) return agreed;
  const bool known = agreed->node > 0 && (!switches || agreed->across_switches > 0);
  if (!known) {
    agreed = slowest(comm, measure_or_fail(comm, hierarchy, meter));
    if (agreed.ok()) agreed = coarse(*agreed);
  }
  if (!agreed.ok()) return agreed;
  known_node_rate.store(agreed->node);
  if (agreed->across_switches > 0) known_switch_rate.store(agreed->across_switches);
  if (!switches) agreed->across_switches = 0;
  return agreed;
}

}  // namespace plait
