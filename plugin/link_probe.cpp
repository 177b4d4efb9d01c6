#include "plugin/link_probe.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <exception>
#include <vector>

#include "plugin/host.h"

namespace plait {
namespace {

constexpr int piece_bytes = 32 * 1024;  // below the eager limits, so that no hand-shake is part of the figure
constexpr int untimed_pieces = 12, timed_pieces = 8;
constexpr int pieces = untimed_pieces + timed_pieces;
constexpr int tag = 1;

// What this process measured or was told; 0: nothing yet. Only a hint for the next communicator, whose ranks agree on it.
constinit std::atomic<double> known_seconds_per_byte{0};

constexpr double failed = -1;

// To the next power of two: the figure of a busy machine wavers, and plans (and with them the last bits of sums) should not
// waver with it. Within what networks do: 1 TB/s to 1 MB/s.
double coarse(double seconds_per_byte) {
  return std::exp2(std::ceil(std::log2(std::clamp(seconds_per_byte, 1e-12, 1e-6))));
}

// Each node's first rank sends to the next node's and times what it receives from the one before. `failed` on an error.
double measure(MPI_Comm comm, const Hierarchy& hierarchy, int node) {
  const int nodes = hierarchy.nodes();
  const int to = hierarchy.ranks_on_node((node + 1) % nodes).front();
  const int from = hierarchy.ranks_on_node((node + nodes - 1) % nodes).front();
  std::vector<std::byte> out(piece_bytes), in(piece_bytes * std::size_t{pieces});
  std::array<MPI_Request, 2 * pieces> requests;
  requests.fill(MPI_REQUEST_NULL);
  bool well = true;
  for (int i = 0; i < pieces; ++i)
    well &= PMPI_Irecv(in.data() + std::size_t{piece_bytes} * static_cast<std::size_t>(i), piece_bytes, MPI_BYTE, from,
                       tag, comm, &requests[static_cast<std::size_t>(i)]) == MPI_SUCCESS;
  for (int i = 0; i < pieces; ++i)
    well &= PMPI_Isend(out.data(), piece_bytes, MPI_BYTE, to, tag, comm,
                       &requests[static_cast<std::size_t>(pieces + i)]) == MPI_SUCCESS;
  well &= PMPI_Waitall(untimed_pieces, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  const double begin = PMPI_Wtime();
  well &= PMPI_Waitall(timed_pieces, requests.data() + untimed_pieces, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  const double end = PMPI_Wtime();
  well &= PMPI_Waitall(pieces, requests.data() + pieces, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  return well ? coarse((end - begin) / (double{piece_bytes} * timed_pieces)) : failed;
}

// The largest of all ranks' figures; an error where one failed.
Result<double> slowest(MPI_Comm comm, double mine) {
  const std::array<double, 2> own = {mine, mine == failed ? 1.0 : 0.0};
  std::array<double, 2> all = {0, 0};
  if (host().allreduce(own.data(), all.data(), 2, MPI_DOUBLE, MPI_MAX, comm) != MPI_SUCCESS || all[1] != 0)
    return Status(Code::peer_failed, "the ranks could not agree on the network's rate");
  return all[0];
}

double measure_or_fail(MPI_Comm comm, const Hierarchy& hierarchy) {
  try {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    const int node = hierarchy.node_of(rank);
    return hierarchy.ranks_on_node(node).front() == rank ? measure(comm, hierarchy, node) : 0;
  } catch (const std::exception&) {
    return failed;
  }
}

}  // namespace

Result<double> network_seconds_per_byte(MPI_Comm comm, const Hierarchy& hierarchy) {
  Result<double> agreed = slowest(comm, known_seconds_per_byte.load());
  if (agreed.ok() && *agreed == 0) agreed = slowest(comm, measure_or_fail(comm, hierarchy));
  if (agreed.ok()) known_seconds_per_byte.store(*agreed);
  return agreed;
}

}  // namespace plait
