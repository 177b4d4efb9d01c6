#include "tl/shm/ring_reader.h"

#include <algorithm>

#include "tl/memory.h"
#include "tl/trace.h"

namespace plait::detail {
namespace {

constexpr std::uint64_t longest_farewell_ns = 100'000'000;

}  // namespace

Result<bool> RingReader::start(Transfer& transfer) {
  if (queue_.empty()) {
    Result<Taken> taken = take(transfer);
    if (!taken.ok()) return taken.status();
    if (*taken == Taken::whole) return true;
  }
  queue_.push(transfer);
  return false;
}

Status RingReader::progress(std::vector<Transfer*>& completed, bool& moved) {
  Result<Taken> taken = take(*queue_.head);
  if (!taken.ok()) return taken.status();
  if (*taken == Taken::whole) completed.push_back(queue_.pop());
  moved |= *taken != Taken::nothing;
  return {};
}

Result<RingReader::Taken> RingReader::take(Transfer& transfer) {
  if (pull_.active) return pull_piece(transfer);
  Slot& slot = ring_.slot(drained_);
  if (slot.sequence.load(std::memory_order_acquire) != drained_ + 1) return Taken::nothing;
  if (slot.kind() == SlotKind::single_copy) {
    if (Status status = begin_pull(transfer, slot); !status.ok()) return status;
    return pull_piece(transfer);
  }
  if (Status status = take_fragment(transfer, slot); !status.ok()) return status;
  release_slot();
  return transfer.progressed == transfer.bytes ? Taken::whole : Taken::part;
}

Status RingReader::take_fragment(Transfer& transfer, Slot& slot) {
  const std::size_t bytes = slot.length();
  if (bytes > transfer.bytes - transfer.progressed || (bytes == 0 && transfer.bytes > 0))
    return wrong_message(transfer, "a fragment of " + std::to_string(bytes) + " bytes");
  const std::byte* data = slot.content(bytes);
  if (transfer.kind == StepKind::recv) copy_in(transfer.memory, transfer.progressed, data, bytes);
  else if (transfer.element_bytes <= ring_.shape.area_bytes) reduce_in(transfer, transfer.progressed, data, bytes);
  else take_part_of_element(transfer, data, bytes);
  transfer.progressed += bytes;
  return {};
}

void RingReader::take_part_of_element(Transfer& transfer, const std::byte* data, std::size_t bytes) {
  const std::size_t element = transfer.element_bytes;
  if (partial_.size() < element) partial_.resize(element);
  std::uint64_t at = transfer.progressed;
  while (bytes > 0) {
    const std::size_t have = at % element;
    const std::size_t piece = std::min(bytes, element - have);
    std::copy_n(data, piece, partial_.data() + have);
    at += piece;
    data += piece;
    bytes -= piece;
    if (at % element == 0) reduce_in(transfer, at - element, partial_.data(), element);
  }
}

Status RingReader::begin_pull(Transfer& transfer, Slot& slot) {
  read_spans(slot, pull_.source);
  std::uint64_t announced = 0;
  for (const RemoteSpan& span : pull_.source) announced += span.bytes;
  if (announced != transfer.bytes || transfer.progressed != 0)
    return wrong_message(transfer, "the announcement of " + std::to_string(announced) + " bytes");
  pull_.active = true;
  pull_.all_claimed = false;
  pull_.pulled = 0;
  pull_.pieces = Pieces(transfer).count();
  // The peer can take part where the bytes go straight to their place.
  pull_.cooperative =
      tuning_.cooperate && transfer.kind == StepKind::recv && write_spans(ring_, slot, transfer.memory);
  if (pull_.cooperative) ring_.control->claims.store(claims_of(drained_ + 1, 0), std::memory_order_release);
  else if (transfer.kind == StepKind::recv_reduce) bounce_.resize(std::max(bounce_.size(), Pieces(transfer).largest()));
  return {};
}

bool RingReader::claim(const Pieces& pieces) {
  if (pull_.all_claimed) return false;
  const std::uint32_t before =
      pull_.cooperative
          ? static_cast<std::uint32_t>(ring_.control->claims.fetch_add(1, std::memory_order_acq_rel))
          : pull_.pulled;
  pull_.all_claimed = before >= pieces.count();
  return !pull_.all_claimed;
}

Result<RingReader::Taken> RingReader::pull_piece(Transfer& transfer) {
  const Pieces pieces(transfer);
  const bool claimed = claim(pieces);
  if (claimed) {
    const std::uint32_t index = pull_.pulled++;
    const RemotePiece piece{&ring_, &pull_.source, pieces.offset(index), pieces.bytes(index)};
    const bool reduced = transfer.kind == StepKind::recv_reduce;
    Status status = reduced ? pull(piece, bounce_.data()) : pull(piece, transfer.memory);
    if (!status.ok()) return status;
    if (reduced) reduce_in(transfer, piece.offset, bounce_.data(), piece.bytes);
    if (pull_.pulled < pieces.count()) return Taken::part;
  }
  const std::uint64_t pushed_after = pull_.pushed_before + (pieces.count() - pull_.pulled);
  if (ring_.control->pushed.load(std::memory_order_acquire) != pushed_after)
    return claimed ? Taken::part : Taken::nothing;
  pull_.pushed_before = pushed_after;
  pull_.active = false;
  release_slot();
  return Taken::whole;
}

// Further claims are made impossible; the pieces that the peer has already claimed are waited for.
void RingReader::forget() {
  queue_ = {};
  if (!std::exchange(pull_.active, false) || !pull_.cooperative) return;
  const std::uint64_t claims = ring_.control->claims.exchange(0, std::memory_order_acq_rel);
  const std::uint32_t claimed = std::min(static_cast<std::uint32_t>(claims), pull_.pieces);
  const std::uint64_t expected = pull_.pushed_before + (claimed - pull_.pulled);
  const std::uint64_t until = monotonic_ns() + longest_farewell_ns;
  while (ring_.control->pushed.load(std::memory_order_acquire) != expected && monotonic_ns() < until) {}
}

Status RingReader::wrong_message(const Transfer& transfer, const std::string& found) const {
  return {Code::internal, "shm: rank " + std::to_string(ring_.peer_rank) + " sent " + found + " where a message of " +
                              std::to_string(transfer.bytes) + " bytes has " + std::to_string(transfer.progressed)};
}

}  // namespace plait::detail
