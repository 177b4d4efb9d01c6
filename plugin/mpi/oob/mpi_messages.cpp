#include "plugin/mpi/oob/mpi_messages.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "plugin/mpi/oob/left_requests.h"
#include "tl/mpi/mpi_channel.h"

namespace plait::plugin {
namespace {

constexpr int tag = 1, answer_tag = 2, swap_tag = 3;
constexpr double failed = -1;

struct Pieces {
  std::vector<std::byte> out, in;
  std::vector<MPI_Request> requests;

  void make_room(int longer) {
    const auto pieces = static_cast<std::size_t>((untimed_pieces + timed_pieces) * longer);
    out.resize(rate_piece_bytes);
    in.resize(rate_piece_bytes * pieces);
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
    well &= PMPI_Irecv(in.data() + std::size_t{rate_piece_bytes} * static_cast<std::size_t>(i), rate_piece_bytes,
                       MPI_BYTE, trial.from, tag, comm, &requests[static_cast<std::size_t>(i)]) == MPI_SUCCESS;
  for (int i = 0; i < pieces; ++i)
    well &= PMPI_Isend(out.data(), rate_piece_bytes, MPI_BYTE, trial.to, tag, comm,
                       &requests[static_cast<std::size_t>(pieces + i)]) == MPI_SUCCESS;
  well &= PMPI_Wait(requests.data(), MPI_STATUS_IGNORE) == MPI_SUCCESS;
  const double first = PMPI_Wtime();
  well &= PMPI_Waitall(untimed, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  const double begin = PMPI_Wtime();
  well &= PMPI_Waitall(timed, requests.data() + untimed, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  const double end = PMPI_Wtime();
  well &= PMPI_Waitall(pieces, requests.data() + pieces, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
  return {well ? (end - begin) / (double{rate_piece_bytes} * timed) : failed, first - posted};
}

}  // namespace

std::unique_ptr<Channel> MpiMessages::make_channel() { return make_mpi_channel(comm_, MpiChannelOptions()); }

RateMeter MpiMessages::meter() {
  const auto memory = std::make_shared<Pieces>();
  return {.make_room = [memory](int longer) { memory->make_room(longer); },
          .measure = [comm = comm_, memory](const RateTrial& trial) { return measure_mpi(comm, trial, *memory); }};
}

double MpiMessages::way(const RateTrial& trial, int trips) {
  double shortest = std::numeric_limits<double>::infinity();
  char out = 0, asked = 0, answered = 0;
  for (int trip = 0; trip < trips; ++trip) {
    std::array<MPI_Request, 2> requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const double begin = PMPI_Wtime();
    bool well = PMPI_Irecv(&answered, 1, MPI_CHAR, trial.to, answer_tag, comm_, &requests[0]) == MPI_SUCCESS;
    well &= PMPI_Isend(&out, 1, MPI_CHAR, trial.to, tag, comm_, &requests[1]) == MPI_SUCCESS;
    well &= PMPI_Recv(&asked, 1, MPI_CHAR, trial.from, tag, comm_, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    well &= PMPI_Send(&asked, 1, MPI_CHAR, trial.from, answer_tag, comm_) == MPI_SUCCESS;
    well &= PMPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS;
    if (!well) return failed;
    shortest = std::min(shortest, PMPI_Wtime() - begin);
  }
  return shortest / 2;
}

bool MpiMessages::swap(const Swap& swap) {
  std::array<MPI_Request, 2> requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  if (PMPI_Irecv(swap.in, static_cast<int>(swap.in_bytes), MPI_BYTE, swap.from, swap_tag, comm_, &requests[0]) !=
          MPI_SUCCESS ||
      PMPI_Isend(swap.out, static_cast<int>(swap.out_bytes), MPI_BYTE, swap.to, swap_tag, comm_, &requests[1]) !=
          MPI_SUCCESS)
    return false;
  return PMPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS;
}

namespace {

// What the host may still send long after the rank has gone on.
constinit std::array<std::int64_t, 64> left_numbers{};
constinit std::atomic<unsigned> numbers_left{0};

}  // namespace

void MpiMessages::leave(int to, std::int64_t number) noexcept {
  std::int64_t& kept = left_numbers[numbers_left.fetch_add(1, std::memory_order_relaxed) % left_numbers.size()];
  kept = number;
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Isend(&kept, sizeof kept, MPI_BYTE, to, swap_tag, comm_, &request) == MPI_SUCCESS) leave_request(request);
}

}  // namespace plait::plugin
