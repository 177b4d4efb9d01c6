// The arguments of the neighbourhood collectives: as the pieces of data that lie at a rank's edges, in the order of
// plan/neighbor.
#include <cstddef>
#include <vector>

#include "plugin/mpi/call/arguments.h"
#include "plugin/mpi/call/pieces.h"
#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/types/types.h"
#include "runtime/job/reasons.h"
#include "runtime/progress/persistent_space.h"

namespace plait::plugin {
namespace {

constexpr const char* eligible = nullptr;
constexpr const char* wrong = reasons::wrong_argument;

// What lies at a place of MPI's list of neighbours; nothing where it must be checked by the host.
template <class PieceAt>
bool take_cells(std::vector<Piece>& pieces, const std::vector<int>& cells, const PieceAt& piece_at) {
  pieces.resize(cells.size());
  for (std::size_t cell = 0; cell < cells.size(); ++cell)
    if (!piece_at(pieces[cell], cells[cell])) return false;
  return true;
}

struct Elements {
  const void* address;
  int count;
  MPI_Datatype type;
};

// One for each neighbour, side by side.
auto in_a_row(const Elements& each) {
  const Datatype* type = find_datatype(each.type);
  const std::ptrdiff_t stride = type != nullptr ? type->extent * each.count : 0;
  return [=](Piece& piece, int place) {
    return type != nullptr && each.address != MPI_IN_PLACE &&
           take_piece(piece, displaced(each.address, stride * place), each.count, each.type);
  };
}

auto apart(const Pieces& pieces) {
  const Datatype* type = find_datatype(pieces.type);
  return [=](Piece& piece, int place) {
    if (type == nullptr || pieces.counts == nullptr || pieces.displacements == nullptr) return false;
    if (pieces.address == MPI_IN_PLACE) return false;
    std::byte* address = displaced(pieces.address, type->extent * pieces.displacements[place]);
    return take_piece(piece, address, pieces.counts[place], pieces.type);
  };
}

struct TypedPieces {
  const void* address;
  const int* counts;
  const MPI_Aint* displacements;  // bytes
  const MPI_Datatype* types;
};
auto apart(const TypedPieces& pieces) {
  return [=](Piece& piece, int place) {
    if (pieces.counts == nullptr || pieces.displacements == nullptr || pieces.types == nullptr) return false;
    if (pieces.address == MPI_IN_PLACE) return false;
    return take_piece(piece, displaced(pieces.address, pieces.displacements[place]), pieces.counts[place],
                      pieces.types[place]);
  };
}

// nullptr: the communicator is not set up yet, so that nobody runs the call here.
const Neighbors* neighbors_of(const Communicator& communicator) {
  const auto known = [](const Communicator& one) { return one.team != nullptr && one.team->neighborhood != nullptr; };
  if (known(communicator)) return &mpi_of(communicator).neighbors;
  if (communicator.persistent == nullptr) return nullptr;
  const Communicator& stand_in = communicator.persistent->communicator();
  return known(stand_in) ? &mpi_of(stand_in).neighbors : nullptr;
}

const char* not_known_yet(Request& request) {
  request.lists->sends.clear();
  request.lists->receives.clear();
  return eligible;
}

template <class Send, class Receive>
const char* prepare(const Communicator& communicator, Request& request, const Send& send, const Receive& receive) {
  const Neighbors* neighbors = neighbors_of(communicator);
  if (neighbors == nullptr) return not_known_yet(request);
  const Collective collective = request.call.collective;
  if (!take_cells(request.lists->sends, neighbors->send_cells, send) ||
      !take_cells(request.lists->receives, neighbors->cells_to_receive(collective, request.posted), receive))
    return wrong;
  count_pieces(request);
  return eligible;
}

// Its own data for all of its neighbours: as many cells as plan/neighbor has.
template <class Receive>
const char* prepare_same(const Communicator& communicator, Request& request, const Elements& send,
                         const Receive& receive) {
  const Neighbors* neighbors = neighbors_of(communicator);
  if (neighbors == nullptr) return not_known_yet(request);
  Piece own;
  const bool gives = neighbors->most_to_one_rank > 0;  // else what it would give is not significant
  if ((gives &&
       (send.address == MPI_IN_PLACE || !take_piece(own, displaced(send.address, 0), send.count, send.type))) ||
      !take_cells(request.lists->receives, neighbors->receive_cells, receive))
    return wrong;
  request.lists->sends.assign(static_cast<std::size_t>(neighbors->most_to_one_rank), own);
  count_pieces(request);
  return eligible;
}

// MPI demands that all edges carry the same; a rank without any may say otherwise.
void note_size_of_edge(Request& request) {
  const Lists& lists = *request.lists;
  const std::vector<Piece>& pieces = lists.sends.empty() ? lists.receives : lists.sends;
  request.call.count = pieces.empty() ? 0 : pieces.front().bytes;
}

}  // namespace

namespace arguments {

const char* neighbor_allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                               MPI_Datatype type, MPI_Comm, const Communicator& communicator, Request& request) {
  const char* reason =
      prepare_same(communicator, request, {send, send_count, send_type}, in_a_row({receive, count, type}));
  note_size_of_edge(request);
  return reason;
}

const char* neighbor_allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                                const int counts[], const int displacements[], MPI_Datatype type, MPI_Comm,
                                const Communicator& communicator, Request& request) {
  return prepare_same(communicator, request, {send, send_count, send_type},
                      apart(Pieces{receive, counts, displacements, type}));
}

const char* neighbor_alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                              MPI_Datatype type, MPI_Comm, const Communicator& communicator, Request& request) {
  const char* reason =
      prepare(communicator, request, in_a_row({send, send_count, send_type}), in_a_row({receive, count, type}));
  note_size_of_edge(request);
  return reason;
}

const char* neighbor_alltoallv(const void* send, const int send_counts[], const int send_displacements[],
                               MPI_Datatype send_type, void* receive, const int counts[], const int displacements[],
                               MPI_Datatype type, MPI_Comm, const Communicator& communicator, Request& request) {
  return prepare(communicator, request, apart(Pieces{send, send_counts, send_displacements, send_type}),
                 apart(Pieces{receive, counts, displacements, type}));
}

const char* neighbor_alltoallw(const void* send, const int send_counts[], const MPI_Aint send_displacements[],
                               const MPI_Datatype send_types[], void* receive, const int counts[],
                               const MPI_Aint displacements[], const MPI_Datatype types[], MPI_Comm,
                               const Communicator& communicator, Request& request) {
  return prepare(communicator, request, apart(TypedPieces{send, send_counts, send_displacements, send_types}),
                 apart(TypedPieces{receive, counts, displacements, types}));
}

}  // namespace arguments
}  // namespace plait::plugin
