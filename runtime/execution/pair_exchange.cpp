#include "runtime/execution/pair_exchange.h"

#include <algorithm>
#include <cstring>

#include "runtime/execution/caller.h"

namespace plait::runtime {
namespace {

// A slot begins with the length of the data, and what its sender wishes: a class of slots, or the host.
constexpr int class_bits = 7, wish_bits = 8;

void write_header(std::byte* slot, std::uint64_t bytes, Wish wish) {
  const std::uint64_t wished = static_cast<std::uint64_t>(wish.slot_class) | (wish.host ? 1u << class_bits : 0u);
  const std::uint64_t header = bytes << wish_bits | wished;
  std::memcpy(slot, &header, sizeof header);
}

Wish wish_in(std::uint64_t header) {
  const auto slot_class = static_cast<int>(header & ((1u << class_bits) - 1));
  return {.slot_class = std::min(slot_class, slot_classes - 1), .host = (header >> class_bits & 1) != 0};
}

std::uint64_t read_header(const std::byte* slot) {
  std::uint64_t header = 0;
  std::memcpy(&header, slot, sizeof header);
  return header;
}

}  // namespace

Call PairExchange::first_call(const Problem& problem) {
  Call call{.collective = Collective::alltoall, .root = 0, .count = problem.slot_bytes};
  if (problem.collective == Collective::gatherv && problem.hosts != nullptr) {
    call.collective = Collective::allgather;
    return call;
  }
  if (problem.collective == Collective::gatherv) call.collective = Collective::gather;
  if (problem.collective == Collective::scatterv) call.collective = Collective::scatter;
  if (rooted(problem.collective)) call.root = problem.root;
  return call;
}

int PairExchange::begin(const BoundSchedule& first) {
  const Problem& problem = problem_;
  const bool at_root = is_at_root();
  const Side all{.first = 0, .count = problem.ranks}, one{.first = problem.root, .count = 1};
  out_ = in_ = all;
  if (problem.collective == Collective::gatherv) {
    out_ = one;
    in_ = at_root || problem.hosts != nullptr ? all : Side{};
  } else if (problem.collective == Collective::scatterv) {
    out_ = at_root ? all : Side{};
    in_ = one;
  }
  find_device();
  lay_out(first);
  if (const int error = start_flow(memory_, on_device_); error != 0) return error;
  if (const int error = fill_slots(); error != 0) return error;
  shorten_piece();
  if (on_device_ != nullptr) memory_.flow().begin(first, buffers_, false);
  return 0;
}

void PairExchange::find_device() {
  on_device_ = nullptr;
  for (const std::vector<Piece>* pieces : {problem_.sends, problem_.receives})
    for (const Piece& piece : *pieces)
      if (on_device_ == nullptr && piece.device != nullptr) on_device_ = &piece;
}

bool PairExchange::self_is_staged() const {
  const auto self = static_cast<std::size_t>(problem_.rank);
  return (*problem_.sends)[self].device != nullptr || (*problem_.receives)[self].device != nullptr;
}

void PairExchange::lay_out(const BoundSchedule& first) {
  const std::size_t out_bytes = WorkMemory::padded(static_cast<std::size_t>(out_.count) * problem_.slot_bytes);
  const std::size_t in_bytes = WorkMemory::padded(static_cast<std::size_t>(in_.count) * problem_.slot_bytes);
  const std::size_t scratch_bytes = WorkMemory::padded(first.scratch_bytes);
  std::size_t packed_bytes = 0;
  for (int rank = out_.first; rank < out_.first + out_.count; ++rank) {
    const Piece& piece = (*problem_.sends)[static_cast<std::size_t>(rank)];
    if (rank != problem_.rank && !fits(piece.bytes) && !is_direct(piece))
      packed_bytes += WorkMemory::padded(piece.bytes);
  }
  const std::size_t self_bytes =
      self_is_staged() ? WorkMemory::padded((*problem_.sends)[static_cast<std::size_t>(problem_.rank)].bytes) : 0;
  std::byte* work = reserve(memory_, out_bytes + in_bytes + scratch_bytes + packed_bytes + self_bytes, on_device_);
  self_ = self_bytes > 0 ? work + out_bytes + in_bytes + scratch_bytes + packed_bytes : nullptr;
  out_.slots = work;
  in_.slots = work + out_bytes;
  buffers_.base = {out_.slots, in_.slots, work + out_bytes + in_bytes};
  std::byte* packed = work + out_bytes + in_bytes + scratch_bytes;
  long_sends_.assign(static_cast<std::size_t>(problem_.ranks), nullptr);
  for (int rank = out_.first; rank < out_.first + out_.count; ++rank) {
    const Piece& piece = (*problem_.sends)[static_cast<std::size_t>(rank)];
    if (rank == problem_.rank || fits(piece.bytes)) continue;
    long_sends_[static_cast<std::size_t>(rank)] = is_direct(piece) ? piece.address : packed;
    if (!is_direct(piece)) packed += WorkMemory::padded(piece.bytes);
  }
}

// What a device has comes while the schedule runs.
int PairExchange::give(const Piece& piece, std::byte* packed) {
  if (piece.device == nullptr) return pack_piece(piece, packed);
  if (piece.bytes > 0) view(piece, piece.count, memory_.flow().bring(packed));
  return 0;
}

// By its own messages; the root of a gatherv, which sends none, by those that it expects.
Wish PairExchange::own_wish() {
  const bool gathers = problem_.collective == Collective::gatherv;
  if (problem_.hosts == nullptr || (out_.count != problem_.ranks && !gathers)) return {};
  lengths_.clear();
  const bool expects = gathers && is_at_root();
  for (const Piece& piece : expects ? *problem_.receives : *problem_.sends) lengths_.push_back(piece.bytes);
  if (!gathers || expects) return wish_for(lengths_, problem_.rank, problem_.collective, *problem_.hosts);
  const std::size_t bytes = lengths_[static_cast<std::size_t>(problem_.root)];
  return {.slot_class = usual_slot_class, .host = problem_.hosts->wished(problem_.collective, bytes)};
}

int PairExchange::fill_slots() {
  if (self_ != nullptr)
    if (const int error = give((*problem_.sends)[static_cast<std::size_t>(problem_.rank)], self_); error != 0)
      return error;
  const Wish wish = own_wish();
  for (int rank = out_.first; rank < out_.first + out_.count; ++rank) {
    const Piece& piece = (*problem_.sends)[static_cast<std::size_t>(rank)];
    std::byte* here = slot(out_, rank);
    write_header(here, rank == problem_.rank ? 0 : piece.bytes, wish);
    if (rank == problem_.rank) continue;
    int error = 0;
    if (fits(piece.bytes))
      error = give(piece, here + slot_header_bytes);
    else if (!is_direct(piece))
      error = give(piece, const_cast<std::byte*>(long_sends_[static_cast<std::size_t>(rank)]));
    if (error != 0) return error;
  }
  return 0;
}

// Of a piece for the root, within a node, no more than it has is copied; short data stand in a line, of which a rank
// may be many ahead.
void PairExchange::shorten_piece() {
  buffers_.piece_limit = 0;
  if (problem_.collective != Collective::gatherv) return;
  const std::uint64_t bytes = (*problem_.sends)[static_cast<std::size_t>(problem_.root)].bytes;
  buffers_.piece_limit = problem_.slot_bytes;
  buffers_.piece_used = slot_header_bytes + (fits(bytes) ? bytes : 0);
}

// What is not for this rank it only learns of.
void PairExchange::read_slots() {
  const bool takes = problem_.collective != Collective::gatherv || is_at_root();
  arrivals_.assign(static_cast<std::size_t>(problem_.ranks), {});
  wishes_ = {};
  for (int rank = in_.first; rank < in_.first + in_.count; ++rank) {
    const std::byte* here = slot(in_, rank);
    const std::uint64_t header = read_header(here);
    wishes_.add(wish_in(header));
    if (takes && rank != problem_.rank)
      arrivals_[static_cast<std::size_t>(rank)] = {header >> wish_bits, here + slot_header_bytes};
  }
}

// What comes as a message of its own goes straight to its place where it fits there as it is.
void PairExchange::place_late_arrivals() {
  std::size_t staged = 0;
  const auto goes_straight = [this](int rank, const Arrival& arrival) {
    const Piece& piece = (*problem_.receives)[static_cast<std::size_t>(rank)];
    return is_direct(piece) && arrival.bytes <= piece.bytes;
  };
  for (int rank = 0; rank < problem_.ranks; ++rank) {
    const Arrival& arrival = arrivals_[static_cast<std::size_t>(rank)];
    if (!fits(arrival.bytes) && !goes_straight(rank, arrival)) staged += WorkMemory::padded(arrival.bytes);
  }
  const std::byte* next = staged > 0 ? reserve(late_memory_, staged, on_device_) : nullptr;
  for (int rank = 0; rank < problem_.ranks; ++rank) {
    Arrival& arrival = arrivals_[static_cast<std::size_t>(rank)];
    if (fits(arrival.bytes)) continue;
    arrival.packed = goes_straight(rank, arrival) ? nullptr : next;
    if (arrival.packed != nullptr) next += WorkMemory::padded(arrival.bytes);
  }
}

const std::byte* PairExchange::landing(int source) const {
  const Arrival& arrival = arrivals_[static_cast<std::size_t>(source)];
  return arrival.packed != nullptr ? arrival.packed : (*problem_.receives)[static_cast<std::size_t>(source)].address;
}

// Spans count from the lowest address of their side.
void PairExchange::take_bases() {
  std::uintptr_t lowest_source = ~std::uintptr_t{0}, lowest_landing = ~std::uintptr_t{0};
  for (int rank = 0; rank < problem_.ranks; ++rank) {
    if (const std::byte* from = long_sends_[static_cast<std::size_t>(rank)]; from != nullptr)
      lowest_source = std::min(lowest_source, reinterpret_cast<std::uintptr_t>(from));
    if (!fits(arrivals_[static_cast<std::size_t>(rank)].bytes))
      lowest_landing = std::min(lowest_landing, reinterpret_cast<std::uintptr_t>(landing(rank)));
  }
  buffers_ = {
      .base = {reinterpret_cast<std::byte*>(lowest_source), reinterpret_cast<std::byte*>(lowest_landing), nullptr}};
}

BoundSpan PairExchange::span(Space space, const std::byte* address, std::uint64_t bytes) const {
  const auto base = reinterpret_cast<std::uintptr_t>(buffers_.at(space));
  return {reinterpret_cast<std::uintptr_t>(address) - base, bytes, space};
}

const BoundSchedule* PairExchange::rest(const Routes& routes) {
  read_slots();
  place_late_arrivals();
  rest_.steps.clear();
  rest_.spans.clear();
  rest_.lanes.clear();
  rest_.lane_steps.clear();
  rest_.successors.clear();
  rest_.unordered = true;
  rest_.output_bytes = 0;
  rest_.channels_used = {};
  take_bases();
  // Each rank begins with its neighbours, so that no rank is everybody's first.
  for (int distance = 1; distance < problem_.ranks; ++distance) {
    const int to = (problem_.rank + distance) % problem_.ranks;
    if (const std::byte* from = long_sends_[static_cast<std::size_t>(to)]; from != nullptr)
      add_message(StepKind::send, routes.between(problem_.rank, to), to,
                  span(Space::input, from, (*problem_.sends)[static_cast<std::size_t>(to)].bytes));
    const int source = (problem_.rank + problem_.ranks - distance) % problem_.ranks;
    const Arrival& arrival = arrivals_[static_cast<std::size_t>(source)];
    if (fits(arrival.bytes)) continue;
    add_message(StepKind::recv, routes.between(problem_.rank, source), source,
                span(Space::output, landing(source), arrival.bytes));
    rest_.output_bytes += arrival.bytes;
  }
  pace_sends(rest_);
  if (on_device_ != nullptr) take_away();
  const bool moves = on_device_ != nullptr && memory_.flow().moves_anything();
  return rest_.steps.empty() && !moves ? nullptr : &rest_;
}

// What came in slots leaves for the device beside what is still to come.
void PairExchange::take_away() {
  DeviceFlow& flow = memory_.flow();
  static_cast<void>(flow.start());  // it has its streams
  for (int rank = in_.first; rank < in_.first + in_.count; ++rank) {
    const Arrival& arrival = arrivals_[static_cast<std::size_t>(rank)];
    const Piece& piece = (*problem_.receives)[static_cast<std::size_t>(rank)];
    const std::size_t elements = whole_elements(piece, arrival.bytes);
    if (rank == problem_.rank || piece.device == nullptr || elements == 0) continue;
    view(piece, elements, flow.take(const_cast<std::byte*>(arrival.packed), fits(arrival.bytes)));
  }
  const auto self = static_cast<std::size_t>(problem_.rank);
  const Piece& own = (*problem_.receives)[self];
  const std::size_t elements = whole_elements(own, (*problem_.sends)[self].bytes);
  if (self_ != nullptr && own.device != nullptr && elements > 0) view(own, elements, flow.take(self_, true));
  buffers_.flow = &flow;
  flow.begin(rest_, buffers_, false);
}

// Nothing has to wait for anything else: each message is a step and a lane of its own.
void PairExchange::add_message(StepKind kind, ChannelKind channel, int peer, BoundSpan span) {
  const auto index = static_cast<std::uint32_t>(rest_.steps.size());
  rest_.spans.push_back(span);
  BoundStep step{.kind = kind,
                 .channel = channel,
                 .incoming_left = false,
                 .rail = any_rail,
                 .peer = peer,
                 .collective = -1,
                 .predecessors = 0,
                 .successors = {},
                 .source = {},
                 .operand = {},
                 .destination = {},
                 .bytes = span.bytes,
                 .lane = static_cast<std::int32_t>(index)};
  (kind == StepKind::send ? step.source : step.destination) = {index, 1};
  rest_.steps.push_back(step);
  rest_.lanes.push_back({{index, 1}});
  rest_.lane_steps.push_back(index);
  rest_.channels_used.add(channel);
}

int PairExchange::exchange_with_self() {
  const auto self = static_cast<std::size_t>(problem_.rank);
  const Piece& from = (*problem_.sends)[self];
  const Piece& to = (*problem_.receives)[self];
  if (from.bytes == 0) return 0;
  int error = 0;
  if (self_ != nullptr) {
    if (to.device == nullptr) error = unpack_piece(to, self_, from.bytes);
  } else if (is_direct(from)) {
    error = unpack_piece(to, from.address, from.bytes);
  } else {
    std::byte* packed = late_memory_.reserve(from.bytes);
    error = pack_piece(from, packed);
    if (error == 0) error = unpack_piece(to, packed, from.bytes);
  }
  return error == 0 && from.bytes > to.bytes ? caller().truncated : error;
}

int PairExchange::end() {
  if (on_device_ != nullptr) memory_.flow().end();
  int first_error = 0;
  const auto note = [&first_error](int error) {
    if (first_error == 0) first_error = error;
  };
  for (int rank = in_.first; rank < in_.first + in_.count; ++rank) {
    if (rank == problem_.rank) continue;
    const Arrival& arrival = arrivals_[static_cast<std::size_t>(rank)];
    const Piece& piece = (*problem_.receives)[static_cast<std::size_t>(rank)];
    if (arrival.packed != nullptr && piece.device == nullptr) note(unpack_piece(piece, arrival.packed, arrival.bytes));
    if (arrival.bytes > piece.bytes) note(caller().truncated);
  }
  note(exchange_with_self());  // last: it may use the memory of late arrivals
  return first_error;
}

}  // namespace plait::runtime
