#include "plugin/link_probe.h"

#include <array>
#include <atomic>
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

// Each node's first rank sends to the next node's and times what it receives from the one before.
double measure(MPI_Comm comm, const Hierarchy& hierarchy, int node) {
  const int nodes = hierarchy.nodes();
  const int to = hierarchy.ranks_on_node((node + 1) % nodes).front();
  const int from = hierarchy.ranks_on_node((node + nodes - 1) % nodes).front();
  std::vector<std::byte> out(piece_bytes), in(piece_bytes * std::size_t{pieces});
  std::array<MPI_Request, 2 * pieces> requests;
  for (int i = 0; i < pieces; ++i)
    PMPI_Irecv(in.data() + std::size_t{piece_bytes} * static_cast<std::size_t>(i), piece_bytes, MPI_BYTE, from, tag, comm,
               &requests[static_cast<std::size_t>(i)]);
  for (int i = 0; i < pieces; ++i)
    PMPI_Isend(out.data(), piece_bytes, MPI_BYTE, to, tag, comm, &requests[static_cast<std::size_t>(pieces + i)]);
  PMPI_Waitall(untimed_pieces, requests.data(), MPI_STATUSES_IGNORE);
  const double begin = PMPI_Wtime();
  PMPI_Waitall(timed_pieces, requests.data() + untimed_pieces, MPI_STATUSES_IGNORE);
  const double end = PMPI_Wtime();
  PMPI_Waitall(pieces, requests.data() + pieces, MPI_STATUSES_IGNORE);
  return (end - begin) / (double{piece_bytes} * timed_pieces);
}

Result<double> slowest(MPI_Comm comm, double mine) {
  double all = 0;
  if (host().allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, comm) != MPI_SUCCESS)
    return Status(Code::peer_failed, "the ranks could not agree on the network's rate");
  return all;
}

}  // namespace

Result<double> network_seconds_per_byte(MPI_Comm comm, const Hierarchy& hierarchy) {
  Result<double> agreed = slowest(comm, known_seconds_per_byte.load());
  if (agreed.ok() && *agreed == 0) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    const int node = hierarchy.node_of(rank);
    const bool leads = hierarchy.ranks_on_node(node).front() == rank;
    agreed = slowest(comm, leads ? measure(comm, hierarchy, node) : 0);
  }
  if (agreed.ok()) known_seconds_per_byte.store(*agreed);
  return agreed;
}

}  // namespace plait
