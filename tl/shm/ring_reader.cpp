#include "tl/shm/ring_reader.h"

#include <algorithm>
#include <span>

#include "tl/memory.h"
#include "tl/shm/failure_marks.h"
#include "tl/shm/peer_process.h"
#include "tl/shm/single_copy.h"
#include "tl/shm/stream_copy.h"

namespace plait::tl::detail {

Result<bool> RingReader::start(Transfer& transfer, bool sending) {
  if (queue_.empty()) {
    Result<Taken> taken = take(transfer, sending);
    if (!taken.ok()) return taken.status();
    if (*taken == Taken::whole) return true;
  }
  queue_.push(transfer);
  return false;
}

Status RingReader::progress(std::vector<Transfer*>& completed, bool& moved, bool sending) {
  Result<Taken> taken = take(*queue_.head, sending);
  if (!taken.ok()) return taken.status();
  if (*taken == Taken::whole) completed.push_back(queue_.pop());
  moved |= *taken != Taken::nothing;
  return {};
}

Result<RingReader::Taken> RingReader::take(Transfer& transfer, bool sending) {
  if (pull_.active) return pull_piece(transfer);
  Slot& slot = ring_.slot(drained_);
  if (slot.sequence.load(std::memory_order_acquire) != drained_ + 1) return Taken::nothing;
  if (slot.kind() == SlotKind::single_copy) {
    if (Status status = answer(transfer, slot, sending); !status.ok()) return status;
    return Taken::part;
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
  if (transfer.kind == StepKind::recv) {
    if (transfer.past_caches && bytes >= stream_from)
      stream_in(transfer.memory, transfer.progressed, data, bytes);
    else
      copy_in(transfer.memory, transfer.progressed, data, bytes);
  } else if (transfer.element_bytes <= ring_.area_bytes()) {
    reduce_in(transfer, transfer.progressed, data, bytes);
  } else {
    take_part_of_element(transfer, data, bytes);
  }
  transfer.progressed += bytes;
  return {};
}

void RingReader::take_part_of_element(Transfer& transfer, const std::byte* data, std::size_t bytes) {
  const std::size_t element = transfer.element_bytes;
  std::byte* whole = partial_.reserve(element);
  std::uint64_t at = transfer.progressed;
  while (bytes > 0) {
    const std::size_t have = at % element;
    const std::size_t piece = std::min(bytes, element - have);
    std::copy_n(data, piece, whole + have);
    at += piece;
    data += piece;
    bytes -= piece;
    if (at % element == 0) reduce_in(transfer, at - element, whole, element);
  }
}

// Slots are faster for a reduction (the peer's core moves the data close, and this one adds them up from there) and
// where both sides send and receive: 1 MiB allreduce of two ranks in halves, slots of 5 KiB: 155 us; its second half by
// single copies: 254. A single copy is for a receiver with nothing else to do.
Status RingReader::answer(Transfer& transfer, Slot& slot, bool sending) {
  const std::span<const RemoteSpan> announcement = spans_in(slot);
  pull_.source.assign(announcement.begin(), announcement.end());
  std::uint64_t announced = 0;
  for (const RemoteSpan& span : pull_.source) announced += span.bytes;
  if (announced != transfer.bytes || transfer.progressed != 0)
    return wrong_message(transfer, "the announcement of " + std::to_string(announced) + " bytes");
  const std::uint32_t mark = drained_ + 1;
  pull_.active = transfer.kind == StepKind::recv && !sending && write_spans(ring_, slot, transfer.memory);
  pull_.pulled = 0;
  pull_.pieces = Pieces(transfer).count();
  ring_.control->claims.store(claims_of(mark, pull_.active ? 0 : refused), std::memory_order_release);
  ring_.wake_peer();
  if (!pull_.active) release_slot();
  return {};
}

bool RingReader::claim() {
  const std::uint64_t claims = ring_.control->claims.load(std::memory_order_acquire);
  if (static_cast<std::uint32_t>(claims) >= pull_.pieces) return false;
  return static_cast<std::uint32_t>(ring_.control->claims.fetch_add(1, std::memory_order_acq_rel)) < pull_.pieces;
}

Result<RingReader::Taken> RingReader::pull_piece(Transfer& transfer) {
  const Pieces pieces(transfer);
  const bool claimed = claim();
  if (claimed) {
    const std::uint32_t index = pull_.pulled++;
    const RemotePiece piece{&ring_, pull_.source, pieces.offset(index), pieces.bytes(index)};
    if (Status status = pull(piece, transfer.memory); !status.ok()) return status;
    if (pull_.pulled < pieces.count()) return Taken::part;
  }
  const std::uint64_t pushed_after = pull_.pushed_before + (pieces.count() - pull_.pulled);
  if (ring_.control->pushed.load(std::memory_order_acquire) != pushed_after)
    return claimed ? Taken::part : Taken::nothing;
  // A peer that has failed is back in its program, which may have changed the data while it was read.
  if (ring_.failures->is_set(ring_.peer))
    return Status(Code::peer_left, "shm: rank " + std::to_string(ring_.peer_rank) + " has failed");
  pull_.pushed_before = pushed_after;
  pull_.active = false;
  release_slot();
  return Taken::whole;
}

// Further claims are made impossible; the pieces that the peer has already claimed are waited for, unless it has failed
// at one.
void RingReader::forget() {
  queue_ = {};
  if (!std::exchange(pull_.active, false)) return;
  const std::uint64_t claims = ring_.control->claims.exchange(0, std::memory_order_acq_rel);
  const std::uint32_t claimed = std::min(static_cast<std::uint32_t>(claims), pull_.pieces);
  const std::uint64_t expected = pull_.pushed_before + (claimed - pull_.pulled);
  wait_for_process(ring_.peer_process, [&] {
    return ring_.control->pushed.load(std::memory_order_acquire) == expected || ring_.failures->is_set(ring_.peer);
  });
}

Status RingReader::wrong_message(const Transfer& transfer, const std::string& found) const {
  return {Code::internal, "shm: rank " + std::to_string(ring_.peer_rank) + " sent " + found + " where a message of " +
                              std::to_string(transfer.bytes) + " bytes has " + std::to_string(transfer.progressed)};
}

}  // namespace plait::tl::detail
