#include "runtime/execution/neighbor_exchange.h"

#include <algorithm>
#include <cstdint>

#include "runtime/execution/piece.h"

namespace plait::runtime {
namespace {

using plan::neighbor::Payload;

bool of_source(Collective collective) {
  return collective == Collective::neighbor_allgather || collective == Collective::neighbor_allgatherv;
}

std::uintptr_t address_of(const Piece& piece) { return reinterpret_cast<std::uintptr_t>(piece.address); }

}  // namespace

NeighborExchange::Side NeighborExchange::lay_out(const std::vector<Piece>& pieces,
                                                 std::vector<NeighborShape::Cell>& cells) {
  Side side{.pieces = &pieces};
  cells.clear();
  std::uintptr_t lowest = UINTPTR_MAX;
  bool direct = true;
  for (const Piece& piece : pieces) {
    if (piece.bytes == 0) continue;
    lowest = std::min(lowest, address_of(piece));
    direct = direct && is_direct(piece);
    if (side.on_device == nullptr && piece.device != nullptr) side.on_device = &piece;
  }
  std::size_t packed = 0;
  for (const Piece& piece : pieces) {
    cells.push_back({piece.bytes == 0 ? 0 : direct ? address_of(piece) - lowest : packed, piece.bytes});
    packed += piece.bytes;
  }
  side.lowest = packed == 0 ? nullptr : reinterpret_cast<std::byte*>(lowest);
  side.packed_bytes = direct ? 0 : packed;
  return side;
}

void NeighborExchange::take(const Request& request) {
  const Collective collective = request.call.collective;
  shape_.payload = of_source(collective) ? Payload::of_source : Payload::of_edge;
  const bool same = collective == Collective::neighbor_allgather || collective == Collective::neighbor_alltoall;
  shape_.bytes = same ? request.call.count : 0;
  out_ = lay_out(request.lists->sends, shape_.input);
  in_ = lay_out(request.lists->receives, shape_.output);
}

int NeighborExchange::begin(const BoundSchedule& first) {
  const std::size_t out_bytes = WorkMemory::padded(out_.packed_bytes), in_bytes = WorkMemory::padded(in_.packed_bytes);
  const Piece* on_device = out_.on_device != nullptr ? out_.on_device : in_.on_device;
  std::byte* work = reserve(memory_, out_bytes + in_bytes + first.scratch_bytes, on_device);
  buffers_.base = {out_.packed_bytes > 0 ? work : out_.lowest, in_.packed_bytes > 0 ? work + out_bytes : in_.lowest,
                   work + out_bytes + in_bytes};
  if (const int error = start_flow(memory_, on_device); error != 0) return error;
  if (out_.packed_bytes > 0)
    if (const int error = give(); error != 0) return error;
  if (on_device == nullptr) return 0;
  if (in_.packed_bytes > 0) take_away();
  memory_.flow().begin(first, buffers_, false);
  return 0;
}

int NeighborExchange::give() {
  std::byte* packed = buffers_.at(Space::input);
  for (const Piece& piece : *out_.pieces) {
    if (piece.device != nullptr)
      view(piece, piece.count, memory_.flow().bring(packed));
    else if (const int error = pack_piece(piece, packed); error != 0)
      return error;
    packed += piece.bytes;
  }
  return 0;
}

void NeighborExchange::take_away() {
  std::byte* packed = buffers_.at(Space::output);
  for (const Piece& piece : *in_.pieces) {
    if (piece.device != nullptr) view(piece, piece.count, memory_.flow().take(packed));
    packed += piece.bytes;
  }
}

int NeighborExchange::end() {
  if (buffers_.flow != nullptr) memory_.flow().end();
  if (in_.packed_bytes == 0) return 0;
  int first_error = 0;
  const std::byte* packed = buffers_.at(Space::output);
  for (const Piece& piece : *in_.pieces) {
    const int error = piece.device != nullptr ? 0 : unpack_piece(piece, packed, piece.bytes);
    if (first_error == 0) first_error = error;
    packed += piece.bytes;
  }
  return first_error;
}

}  // namespace plait::runtime
