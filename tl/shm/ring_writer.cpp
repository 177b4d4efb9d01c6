#include "tl/shm/ring_writer.h"

#include <algorithm>

#include "tl/memory.h"
#include "tl/shm/single_copy.h"
#include "tl/shm/stream_copy.h"

namespace plait::tl::detail {
namespace {

// Slot numbers wrap.
bool reached(std::uint32_t counter, std::uint64_t mark) {
  return static_cast<std::int32_t>(counter - static_cast<std::uint32_t>(mark)) >= 0;
}

}  // namespace

bool RingWriter::start(Transfer& transfer) {
  transfer.mark = 0;
  if (queue_.empty() && write(transfer) == Written::whole) return true;
  queue_.push(transfer);
  return false;
}

Status RingWriter::progress(std::vector<Transfer*>& completed, bool& moved) {
  if (awaiting_answer_) hear_answer(moved);
  if (!accepted_.empty()) {
    finish_accepted(completed, moved);
    if (!accepted_.empty())
      if (Status status = push_piece(*accepted_.head, moved); !status.ok()) return status;
  }
  if (queue_.empty() || awaiting_answer_) return {};
  const Written written = write(*queue_.head);
  if (written == Written::whole) completed.push_back(queue_.pop());
  moved |= written != Written::nothing;
  return {};
}

RingWriter::Written RingWriter::write(Transfer& transfer) {
  if (!has_free_slot()) return Written::nothing;
  Slot& slot = ring_.slot(written_);
  if (transfer.bytes >= ring_.single_copy_from && transfer.mark == 0 && announce(transfer, slot)) return Written::part;
  const std::size_t bytes = std::min<std::uint64_t>(fragment_bytes(transfer), transfer.bytes - transfer.progressed);
  if (bytes < stream_from)
    copy_out(transfer.memory, transfer.progressed, slot.content(bytes), bytes);
  else
    stream_out(transfer.memory, transfer.progressed, slot.content(bytes), bytes);
  slot.describe(SlotKind::fragment, bytes);
  publish(slot);
  transfer.progressed += bytes;
  return transfer.progressed == transfer.bytes ? Written::whole : Written::part;
}

// A full ring is left alone until a quarter of it is free: each look at the reader's counter takes the line away from
// it, and small messages would then cost a round trip each. The reader gets there without this message, because slots
// are drained in order and no proven schedule needs a later message of a lane to take an earlier one.
bool RingWriter::has_free_slot() {
  if (written_ - drained_ < ring_.shape.slots) return true;
  const std::uint32_t drained = ring_.control->drained.load(std::memory_order_acquire);
  if (written_ - drained > ring_.shape.slots - ring_.shape.slots / 4) return false;
  drained_ = drained;
  return written_ - drained_ < ring_.shape.slots;
}

// Whole elements, unless one is larger than a slot: then the reader puts it together.
std::size_t RingWriter::fragment_bytes(const Transfer& transfer) const {
  const std::size_t area = ring_.area_bytes(), element = transfer.element_bytes;
  return element <= 1 || element > area ? area : area / element * element;
}

// ---- single copies

// False when the message is in too many pieces for a slot.
bool RingWriter::announce(Transfer& transfer, Slot& slot) {
  if (!write_spans(ring_, slot, transfer.memory)) return false;
  publish(slot);
  transfer.mark = std::uint64_t{1} << 32 | written_;  // never 0: a message is announced once
  awaiting_answer_ = true;
  return true;
}

void RingWriter::hear_answer(bool& moved) {
  const std::uint64_t claims = ring_.control->claims.load(std::memory_order_acquire);
  if (claims >> 32 != static_cast<std::uint32_t>(queue_.head->mark)) return;
  awaiting_answer_ = false;
  moved = true;
  if (static_cast<std::uint32_t>(claims) != refused) accepted_.push(*queue_.pop());
}

void RingWriter::finish_accepted(std::vector<Transfer*>& completed, bool& moved) {
  drained_ = ring_.control->drained.load(std::memory_order_acquire);
  while (!accepted_.empty() && reached(drained_, accepted_.head->mark)) {
    completed.push_back(accepted_.pop());
    pushed_ = 0;
    moved = true;
  }
}

Status RingWriter::push_piece(Transfer& transfer, bool& moved) {
  const std::uint32_t mark = static_cast<std::uint32_t>(transfer.mark);
  const Pieces pieces(transfer);
  std::uint64_t claims = ring_.control->claims.load(std::memory_order_acquire);
  if (claims >> 32 != mark || static_cast<std::uint32_t>(claims) >= pieces.count()) return {};
  // A failed claim is left to the next glance. A successful one keeps the peer, and so the slot, waiting for this side.
  if (!ring_.control->claims.compare_exchange_strong(claims, claims + 1, std::memory_order_acq_rel)) return {};
  const std::uint32_t index = pieces.count() - ++pushed_;
  const RemotePiece piece{&ring_, spans_in(ring_.slot(mark - 1)), pieces.offset(index), pieces.bytes(index)};
  if (Status status = push(piece, transfer.memory); !status.ok()) return status;
  const std::uint64_t pushed = ring_.control->pushed.load(std::memory_order_relaxed);  // only this side writes it
  ring_.control->pushed.store(pushed + 1, std::memory_order_release);
  ring_.wake_peer();
  moved = true;
  return {};
}

}  // namespace plait::tl::detail
