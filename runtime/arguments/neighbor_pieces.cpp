#include "runtime/arguments/neighbor_pieces.h"

#include <cstddef>
#include <vector>

namespace plait::runtime {
namespace {

// What lies at places of the topology's lists. False where the caller must check it.
template <class PieceAt>
bool take_cells(std::vector<Piece>& pieces, const std::vector<int>& cells, const PieceAt& piece_at) {
  pieces.resize(cells.size());
  for (std::size_t cell = 0; cell < cells.size(); ++cell)
    if (!piece_at(pieces[cell], cells[cell])) return false;
  return true;
}

// One for each neighbour, side by side.
auto in_a_row(const Elements& each) {
  return [&](Piece& piece, int place) {
    if (each.layout == nullptr || is_in_place(each.address)) return false;
    const std::ptrdiff_t stride = each.layout->extent * each.count;
    return take_piece(piece, {displaced(each.address, stride * place), each.count, each.layout});
  };
}

auto apart(const Pieces& side) {
  return [&](Piece& piece, int place) { return is_complete(side) && take_piece(piece, side, place); };
}

const char* not_known_yet(Request& request) {
  request.lists->sends.clear();
  request.lists->receives.clear();
  return eligible;
}

template <class Send, class Receive>
const char* prepare(const Neighbors* neighbors, Request& request, const Send& send, const Receive& receive) {
  if (neighbors == nullptr) return not_known_yet(request);
  const Collective collective = request.call.collective;
  if (!take_cells(request.lists->sends, neighbors->send_cells, send) ||
      !take_cells(request.lists->receives, neighbors->cells_to_receive(collective, request.posted), receive))
    return reasons::wrong_argument;
  count_pieces(request);
  return eligible;
}

// As many cells as plan/neighbor has. Where it gives to nobody, what it would give is not significant.
template <class Receive>
const char* prepare_same(const Neighbors* neighbors, Request& request, const Elements& send, const Receive& receive) {
  if (neighbors == nullptr) return not_known_yet(request);
  Piece own;
  const bool gives = neighbors->most_to_one_rank > 0;
  if ((gives && (is_in_place(send.address) || !take_piece(own, send))) ||
      !take_cells(request.lists->receives, neighbors->receive_cells, receive))
    return reasons::wrong_argument;
  request.lists->sends.assign(static_cast<std::size_t>(neighbors->most_to_one_rank), own);
  count_pieces(request);
  return eligible;
}

// All edges are to carry the same; a rank without any may say otherwise.
const char* with_size_of_edge(Request& request, const char* reason) {
  const Lists& lists = *request.lists;
  const std::vector<Piece>& pieces = lists.sends.empty() ? lists.receives : lists.sends;
  request.call.count = pieces.empty() ? 0 : pieces.front().bytes;
  return reason;
}

}  // namespace

const char* prepare_neighbor_allgather(const Neighbors* neighbors, Request& request, const Elements& send,
                                       const Elements& receive_each) {
  return with_size_of_edge(request, prepare_same(neighbors, request, send, in_a_row(receive_each)));
}

const char* prepare_neighbor_allgatherv(const Neighbors* neighbors, Request& request, const Elements& send,
                                        const Pieces& receive) {
  return prepare_same(neighbors, request, send, apart(receive));
}

const char* prepare_neighbor_alltoall(const Neighbors* neighbors, Request& request, const Elements& send_each,
                                      const Elements& receive_each) {
  return with_size_of_edge(request, prepare(neighbors, request, in_a_row(send_each), in_a_row(receive_each)));
}

const char* prepare_neighbor_alltoallv(const Neighbors* neighbors, Request& request, const Pieces& send,
                                       const Pieces& receive) {
  return prepare(neighbors, request, apart(send), apart(receive));
}

}  // namespace plait::runtime
