#include "runtime/arguments/pieces.h"

#include "runtime/execution/device_data.h"

namespace plait::runtime {
namespace {

bool take_pieces(std::vector<Piece>& pieces, const Pieces& side, int ranks) {
  if (!is_complete(side)) return false;
  pieces.resize(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    if (!take_piece(pieces[static_cast<std::size_t>(rank)], side, rank)) return false;
  return true;
}

struct Rooted {
  int root;
  const Pieces& at_root;
  const Elements& own;
  std::vector<Piece>& many;    // the root's
  std::vector<Piece>& single;  // each rank's, at the root's place
};

const char* prepare_rooted(const Communicator& communicator, Request& request, const Rooted& rooted) {
  if (!is_rank(rooted.root, communicator)) return reasons::wrong_argument;
  request.call.root = rooted.root;
  const auto ranks = static_cast<std::size_t>(communicator.ranks), root = static_cast<std::size_t>(rooted.root);
  const bool at_root = communicator.rank == rooted.root;
  rooted.single.assign(ranks, {});
  if (!at_root)
    rooted.many.assign(ranks, {});
  else if (!take_pieces(rooted.many, rooted.at_root, communicator.ranks))
    return reasons::wrong_argument;
  if (at_root && is_in_place(rooted.own.address))
    rooted.many[root] = {};
  else if (!take_piece(rooted.single[root], rooted.own))
    return reasons::wrong_argument;
  count_pieces(request);
  return eligible;
}

}  // namespace

bool is_complete(const Pieces& side) {
  const bool placed = side.displacements.given() || side.byte_displacements != nullptr;
  return side.counts.given() && placed && (side.layout != nullptr || side.layouts.find != nullptr);
}

bool take_piece(Piece& piece, const Elements& elements) {
  piece = {};
  if (elements.count < 0) return false;
  if (elements.count == 0) return true;
  const Layout* layout = elements.layout;
  if (layout == nullptr || is_in_place(elements.address)) return false;
  const auto count = static_cast<std::size_t>(elements.count);
  piece = {.address = displaced(elements.address, 0), .count = count, .type = layout, .bytes = count * layout->size};
  if (elements.address == nullptr && layout->contiguous && piece.bytes != 0) return false;
  if (piece.bytes != 0) piece.device = device_under(piece.address, *layout);
  return true;
}

bool take_piece(Piece& piece, const Pieces& side, int place) {
  if (is_in_place(side.address)) return false;
  const auto index = static_cast<std::size_t>(place);
  const std::ptrdiff_t count = side.counts[index];
  const Layout* layout = side.layout;
  if (layout == nullptr && count > 0) layout = side.layouts.find(side.layouts.types, place);
  const std::ptrdiff_t unit = side.layout != nullptr ? side.layout->extent : 1;
  const std::ptrdiff_t displacement =
      side.byte_displacements != nullptr ? side.byte_displacements[place] : unit * side.displacements[index];
  return take_piece(piece, {displaced(side.address, displacement), count, layout});
}

void count_pieces(Request& request) {
  request.call.count = 0;
  for (const std::vector<Piece>* pieces : {&request.lists->sends, &request.lists->receives})
    for (const Piece& piece : *pieces) request.call.count += piece.bytes;
}

const char* prepare_exchange(const Communicator& communicator, Request& request, const Pieces& send,
                             const Pieces& receive) {
  if (is_in_place(send.address)) return reasons::in_place_exchange;
  if (!take_pieces(request.lists->sends, send, communicator.ranks) ||
      !take_pieces(request.lists->receives, receive, communicator.ranks))
    return reasons::wrong_argument;
  count_pieces(request);
  return eligible;
}

const char* prepare_gatherv(const Communicator& communicator, Request& request, int root, const Elements& own,
                            const Pieces& at_root) {
  Lists& lists = *request.lists;
  return prepare_rooted(communicator, request, {root, at_root, own, lists.receives, lists.sends});
}

const char* prepare_scatterv(const Communicator& communicator, Request& request, int root, const Pieces& at_root,
                             const Elements& own) {
  Lists& lists = *request.lists;
  return prepare_rooted(communicator, request, {root, at_root, own, lists.sends, lists.receives});
}

}  // namespace plait::runtime
