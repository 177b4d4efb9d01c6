#include "tl/shm/ring_writer.h"

#include <algorithm>

#include "tl/memory.h"
#include "tl/shm/stream_copy.h"

namespace plait::detail {
namespace {

// A message of several slots is cut finer at first sight of the peer's idleness: in this many fragments or more, none
// smaller than this, so that the peer drains the first while the next is written.
constexpr std::size_t fragments_a_message = 4;
constexpr std::size_t smallest_fragment = 8 * 1024;

// Fragment numbers wrap.
bool reached(std::uint32_t counter, std::uint32_t mark) { return static_cast<std::int32_t>(counter - mark) >= 0; }

}  // namespace

bool RingWriter::start(Transfer& transfer) {
  const Written written = queue_.empty() ? write(transfer) : Written::nothing;
  if (written == Written::whole) return true;
  if (written == Written::announced) announced_.push(transfer);
  else queue_.push(transfer);
  return false;
}

Status RingWriter::progress(std::vector<Transfer*>& completed, bool& moved) {
  if (!announced_.empty()) {
    drained_ = ring_.control->drained.load(std::memory_order_acquire);
    while (!announced_.empty() && reached(drained_, static_cast<std::uint32_t>(announced_.head->mark))) {
      completed.push_back(announced_.pop());
      pushed_ = 0;
      moved = true;
    }
    if (!announced_.empty())
      if (Status status = help(*announced_.head, moved); !status.ok()) return status;
  }
  if (queue_.empty()) return {};
  const Written written = write(*queue_.head);
  if (written == Written::whole) completed.push_back(queue_.pop());
  else if (written == Written::announced) announced_.push(*queue_.pop());
  moved |= written != Written::nothing;
  return {};
}

RingWriter::Written RingWriter::write(Transfer& transfer) {
  if (!has_free_slot()) return Written::nothing;
  Slot& slot = ring_.slot(written_);
  if (wants_single_copy(transfer) && write_spans(ring_, slot, transfer.memory)) {
    publish(slot);
    transfer.mark = written_;
    return Written::announced;
  }
  const std::size_t bytes = std::min<std::uint64_t>(fragment_bytes(transfer), transfer.bytes - transfer.progressed);
  if (bytes < stream_from) copy_out(transfer.memory, transfer.progressed, slot.content(bytes), bytes);
  else stream_out(transfer.memory, transfer.progressed, slot.content(bytes), bytes);
  slot.describe(SlotKind::fragment, bytes);
  publish(slot);
  transfer.progressed += bytes;
  return transfer.progressed == transfer.bytes ? Written::whole : Written::part;
}

bool RingWriter::has_free_slot() {
  if (written_ - drained_ < ring_.shape.slots) return true;
  drained_ = ring_.control->drained.load(std::memory_order_acquire);
  return written_ - drained_ < ring_.shape.slots;
}

bool RingWriter::wants_single_copy(const Transfer& transfer) const {
  return tuning_.single_copy && transfer.progressed == 0 && transfer.bytes >= tuning_.single_copy_from;
}

// Cut between elements, unless one is larger than a slot: then anywhere, and the reader puts it together.
std::size_t RingWriter::fragment_bytes(const Transfer& transfer) const {
  const std::size_t area = std::max<std::size_t>(ring_.shape.area_bytes, inline_bytes);
  const std::size_t least = std::min(smallest_fragment, area);
  const std::size_t wanted = std::clamp<std::size_t>(transfer.bytes / fragments_a_message, least, area);
  const std::size_t element = transfer.element_bytes;
  if (element <= 1) return wanted;
  if (element > area) return area;
  return std::max(wanted / element, std::size_t{1}) * element;
}

// The announced message's other end: once the peer has published where it wants the bytes, this side copies pieces from
// the back while the peer fetches them from the front.
Status RingWriter::help(Transfer& transfer, bool& moved) {
  const std::uint32_t mark = static_cast<std::uint32_t>(transfer.mark);
  const Pieces pieces(transfer);
  std::uint64_t claims = ring_.control->claims.load(std::memory_order_acquire);
  if (claims >> 32 != mark || static_cast<std::uint32_t>(claims) >= pieces.count()) return {};
  // A failed claim is left to the next glance. A successful one keeps the peer, and so the slot, waiting for this side.
  if (!ring_.control->claims.compare_exchange_strong(claims, claims + 1, std::memory_order_acq_rel)) return {};
  if (pushed_ == 0) read_spans(ring_.slot(mark - 1), target_);
  const std::uint32_t index = pieces.count() - 1 - pushed_++;
  Status status = push({&ring_, &target_, pieces.offset(index), pieces.bytes(index)}, transfer.memory);
  if (!status.ok()) return status;
  ring_.control->pushed.store(ring_.control->pushed.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  moved = true;
  return {};
}

}  // namespace plait::detail
