#include "tl/shm/single_copy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "tl/memory.h"
#include "tl/shm/ring.h"

namespace plait::tl::detail {
namespace {

// A glance moves one piece. Several to a message, so that both sides find work until the end.
constexpr std::size_t largest_piece = 128 * 1024;
constexpr std::size_t smallest_piece = 16 * 1024;
constexpr std::size_t pieces_a_message = 8;
constexpr std::size_t page = 4096;

// Spans handed to one system call; more are covered by further calls.
constexpr std::size_t spans_a_call = 16;

using SystemCall = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

struct SpanBatch {
  std::array<iovec, spans_a_call> spans;
  std::size_t count = 0;
  std::size_t bytes = 0;

  // False when it is full or has as many bytes as wanted.
  bool add(std::byte* address, std::size_t span_bytes, std::size_t wanted) {
    const std::size_t piece = std::min(span_bytes, wanted - bytes);
    spans[count++] = {address, piece};
    bytes += piece;
    return bytes < wanted && count < spans_a_call;
  }
  void cut_to(std::size_t wanted) {
    while (bytes > wanted) {
      iovec& last = spans[count - 1];
      const std::size_t excess = std::min(bytes - wanted, last.iov_len);
      last.iov_len -= excess;
      bytes -= excess;
      if (last.iov_len == 0) --count;
    }
  }
};

SpanBatch local_batch(const Memory& memory, std::uint64_t offset, std::size_t wanted) {
  SpanBatch batch;
  MemoryCursor cursor(memory, offset);
  while (batch.add(cursor.data(), cursor.contiguous(), wanted)) cursor.advance(cursor.contiguous());
  return batch;
}

SpanBatch remote_batch(std::span<const RemoteSpan> remote, std::uint64_t offset, std::size_t wanted) {
  SpanBatch batch;
  for (const RemoteSpan& span : remote) {
    if (offset >= span.bytes) {
      offset -= span.bytes;
      continue;
    }
    if (!batch.add(reinterpret_cast<std::byte*>(span.address + offset), span.bytes - offset, wanted)) break;
    offset = 0;
  }
  return batch;
}

Status failure(const RemotePiece& piece, SystemCall call, const char* reason) {
  return {Code::peer_failed, std::string("shm: ") + (call == process_vm_readv ? "reading" : "writing") +
                                 " the memory of rank " + std::to_string(piece.ring->peer_rank) + " (process " +
                                 std::to_string(piece.ring->peer_process) + "): " + reason};
}

Status transfer(RemotePiece piece, const Memory& local, SystemCall call) {
  while (piece.bytes > 0) {
    SpanBatch here = local_batch(local, piece.offset, piece.bytes);
    const SpanBatch there = remote_batch(piece.remote, piece.offset, here.bytes);
    here.cut_to(there.bytes);
    const ssize_t done =
        call(piece.ring->peer_process, here.spans.data(), here.count, there.spans.data(), there.count, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failure(piece, call, std::strerror(errno));
    if (done == 0) return failure(piece, call, "nothing copied");
    piece.offset += static_cast<std::uint64_t>(done);
    piece.bytes -= static_cast<std::size_t>(done);
  }
  return {};
}

// More than `most` where the slots are better: the kernel takes longer over a short run than two copies do.
std::size_t spans_to_announce(const Memory& memory, std::size_t most) {
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < memory.count; ++i) {
    const BoundSpan& span = memory.spans[i];
    if (span.grid == no_grid) {
      ++count;
      continue;
    }
    const std::uint64_t run = memory.grids[span.grid].run;
    if (run < short_run) return most + 1;
    count += static_cast<std::size_t>((span.offset + span.bytes - 1) / run - span.offset / run + 1);
  }
  return count;
}

}  // namespace

bool write_spans(const Ring& ring, Slot& slot, const Memory& memory) {
  const std::size_t count = spans_to_announce(memory, ring.span_capacity());
  if (count > ring.span_capacity()) return false;
  std::byte* to = slot.content(count * sizeof(RemoteSpan));
  for (MemoryCursor cursor(memory, 0); cursor.contiguous() > 0; cursor.advance(cursor.contiguous())) {
    const RemoteSpan remote{reinterpret_cast<std::uintptr_t>(cursor.data()), cursor.contiguous()};
    std::memcpy(to, &remote, sizeof remote);
    to += sizeof remote;
  }
  slot.describe(SlotKind::single_copy, count);
  return true;
}

std::span<const RemoteSpan> spans_in(Slot& slot) {
  static_assert(alignof(RemoteSpan) <= 8, "a slot's content begins at a multiple of 8");
  const std::size_t count = slot.length();
  return {reinterpret_cast<const RemoteSpan*>(slot.content(count * sizeof(RemoteSpan))), count};
}

Pieces::Pieces(const Transfer& transfer) : total_(transfer.bytes) {
  const std::uint64_t share = total_ / pieces_a_message / page * page;
  piece_ = std::clamp<std::uint64_t>(share, smallest_piece, largest_piece);
}

Status pull(const RemotePiece& piece, const Memory& local) { return transfer(piece, local, process_vm_readv); }

Status push(const RemotePiece& piece, const Memory& local) { return transfer(piece, local, process_vm_writev); }

}  // namespace plait::tl::detail
