#include "plugin/gather_text.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>

namespace plait::plugin {
namespace {

constexpr int tag = 32766;
constexpr std::size_t max_piece = std::size_t{1} << 28;

void send_text(const std::string& text) {
  const std::uint64_t length = text.size();
  PMPI_Send(&length, sizeof length, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
  for (std::size_t sent = 0; sent < length; sent += max_piece)
    PMPI_Send(text.data() + sent, static_cast<int>(std::min<std::size_t>(max_piece, length - sent)), MPI_BYTE, 0, tag,
              MPI_COMM_WORLD);
}

std::string receive_text(int rank) {
  std::uint64_t length = 0;
  PMPI_Recv(&length, sizeof length, MPI_BYTE, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::string text(length, '\0');
  for (std::size_t got = 0; got < length; got += max_piece)
    PMPI_Recv(text.data() + got, static_cast<int>(std::min<std::size_t>(max_piece, length - got)), MPI_BYTE, rank, tag,
              MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return text;
}

}  // namespace

void gather_text(const std::string& mine, const std::function<void(int, std::string)>& take) {
  int self = 0, ranks = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &self);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (self != 0) return send_text(mine);
  take(0, mine);
  for (int rank = 1; rank < ranks; ++rank) take(rank, receive_text(rank));
}

}  // namespace plait::plugin
