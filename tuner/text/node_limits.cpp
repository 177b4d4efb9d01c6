#include "tuner/text/node_limits.h"

#include <algorithm>
#include <cmath>

namespace plait::tuner {
namespace {

double rate_of(const MovePoint& point) { return static_cast<double>(point.bytes) / point.seconds; }

// What every rank has to move when all share the work evenly, in bytes.
struct Work {
  double local = 0;    // copied between memories that the rank reaches
  double peers = 0;    // of it or beside it, from or to a peer's private memory
  double reduced = 0;  // results of two operands
};

// A copy reads and writes each byte, so that n bytes read and m written count as (n + m) / 2 copied.
double copied_in_shared_buffers(Collective collective, double size, double ranks) {
  switch (collective) {
    case Collective::barrier:
    case Collective::neighbor_allgather:
    case Collective::neighbor_allgatherv:
    case Collective::neighbor_alltoall:
    case Collective::neighbor_alltoallv:
    case Collective::neighbor_alltoallw:
    case Collective::reshard:
    case Collective::count_:
      return 0;
    case Collective::bcast:
      return size * (ranks - 1) / ranks;
    case Collective::reduce:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
      return size * (1 + 1 / ranks) / 2;
    case Collective::allreduce:
    case Collective::gather:
    case Collective::scatter:
    case Collective::gatherv:
    case Collective::scatterv:
    case Collective::scan:
    case Collective::exscan:
      return size;
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::alltoallw:
      return size * ranks;
  }
  return 0;
}

Work work_in_private_buffers(Collective collective, double size, double ranks) {
  const double others = (ranks - 1) / ranks;
  switch (collective) {
    case Collective::barrier:
    case Collective::neighbor_allgather:
    case Collective::neighbor_allgatherv:
    case Collective::neighbor_alltoall:
    case Collective::neighbor_alltoallv:
    case Collective::neighbor_alltoallw:
    case Collective::reshard:
    case Collective::count_:
      return {};
    case Collective::bcast:
      return {.peers = others * size};
    case Collective::allreduce:
      return {.peers = 2 * others * size, .reduced = others * size};
    case Collective::reduce:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
      return {.peers = others * size, .reduced = others * size};
    case Collective::gather:
    case Collective::scatter:
    case Collective::gatherv:
    case Collective::scatterv:
      return {.local = size / ranks, .peers = others * size};
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::alltoallw:
      return {.local = size, .peers = (ranks - 1) * size};
    case Collective::scan:
    case Collective::exscan:
      return {.peers = others * size, .reduced = others * size};
  }
  return {};
}

// Every rank waits for another; where they outnumber the cores, each must get one.
double least_wait(const NodeLimits& limits) {
  const double on_a_core = static_cast<double>(limits.ranks) / std::max(1, limits.cores);
  if (on_a_core <= 1 && limits.spin_round_trip_s > 0) return limits.spin_round_trip_s;
  return limits.yield_round_trip_s * std::max(1.0, on_a_core / 2);
}

// From one process's private memory to another's: through the kernel, or into shared memory and out of it.
double crossing_seconds(const NodeLimits& limits, double bytes) {
  const double by_slots = seconds_at(limits.copy_all, bytes) + seconds_at(limits.mapped_all, bytes);
  return limits.pull_all.empty() ? by_slots : std::min(by_slots, seconds_at(limits.pull_all, bytes));
}

double in_private_buffers(const NodeLimits& limits, const Work& work) {
  const auto time = [](const MoveCurve& curve, double bytes) { return bytes > 0 ? seconds_at(curve, bytes) : 0; };
  // The halves of an allreduce are two moves of the reduced size.
  const double moves = work.reduced > 0 ? work.peers / work.reduced : 1;
  return time(limits.copy_all, work.local) + moves * crossing_seconds(limits, work.peers / moves) +
         time(limits.reduce_i32_all, work.reduced);
}

}  // namespace

double seconds_at(const MoveCurve& curve, double bytes) {
  if (curve.empty()) return 0;
  const MovePoint &first = curve.front(), &last = curve.back();
  if (bytes <= static_cast<double>(first.bytes)) return first.seconds;
  if (bytes >= static_cast<double>(last.bytes)) return bytes / rate_of(last);
  const auto above = std::find_if(curve.begin(), curve.end(),
                                  [&](const MovePoint& point) { return static_cast<double>(point.bytes) >= bytes; });
  const MovePoint &low = *(above - 1), &high = *above;
  const double part = std::log(bytes / static_cast<double>(low.bytes)) /
                      std::log(static_cast<double>(high.bytes) / static_cast<double>(low.bytes));
  return bytes / (rate_of(low) * (1 - part) + rate_of(high) * part);
}

double limit_seconds(const NodeLimits& limits, Collective collective, std::size_t bytes, BufferKind buffers) {
  const double size = static_cast<double>(bytes), ranks = limits.ranks;
  double moving = 0;
  if (collective != Collective::barrier && buffers == BufferKind::shared) {
    moving = seconds_at(limits.copy_all, copied_in_shared_buffers(collective, size, ranks));
  } else if (collective != Collective::barrier) {
    moving = in_private_buffers(limits, work_in_private_buffers(collective, size, ranks));
  }
  return std::max(moving, least_wait(limits));
}

}  // namespace plait::tuner
