// Buffers for pieces of messages that cannot be sent or received in place, each from a cache line on. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/aligned_bytes.h"
#include "tl/memory.h"

namespace plait::tl {

// All are of one size, which only grows.
class StagingPool {
 public:
  using Buffer = Lines;

  Buffer take(std::size_t bytes) {
    if (bytes > buffer_bytes_) {
      free_.clear();
      buffer_bytes_ = bytes;
      ++generation_;
    }
    if (free_.empty()) return make_lines(buffer_bytes_);
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void reserve(std::size_t buffers, std::size_t bytes) {
    std::vector<Buffer> taken;
    while (taken.size() < buffers) taken.push_back(take(bytes));
    free_.reserve(free_.size() + taken.size());
    for (Buffer& buffer : taken) free_.push_back(std::move(buffer));
  }
  // `generation` as it was when the buffer was taken: those from before the last growth are too small now.
  void give_back(Buffer buffer, std::uint32_t generation) {
    if (generation == generation_) free_.push_back(std::move(buffer));
  }
  std::uint32_t generation() const { return generation_; }

 private:
  std::vector<Buffer> free_;
  std::size_t buffer_bytes_ = 0;
  std::uint32_t generation_ = 0;
};

// A channel's `Piece` of a message has: transfer, offset, bytes, and where it is staged, staging (empty: it is in
// place) and generation.

// Where the piece is sent from, or received: in place where its memory is contiguous, else in a buffer of `room` bytes,
// filled already for a send. nullptr where it has no bytes.
template <class Piece>
std::byte* place_piece(StagingPool& pool, Piece& piece, std::size_t room) {
  const Transfer& transfer = *piece.transfer;
  const auto bytes = static_cast<std::size_t>(piece.bytes);
  if (bytes == 0) return nullptr;
  MemoryCursor cursor(transfer.memory, piece.offset);
  if (transfer.kind != StepKind::recv_reduce && cursor.contiguous() >= bytes) return cursor.data();
  piece.staging = pool.take(room);
  piece.generation = pool.generation();
  if (transfer.kind == StepKind::send) copy_out(transfer.memory, piece.offset, piece.staging.get(), bytes);
  return piece.staging.get();
}

// The piece is sent, or its bytes are here: brings them where they belong and gives the buffer back.
template <class Piece>
void land_piece(StagingPool& pool, Piece& piece) {
  if (piece.staging == nullptr) return;
  const Transfer& transfer = *piece.transfer;
  const auto bytes = static_cast<std::size_t>(piece.bytes);
  if (transfer.kind == StepKind::recv_reduce)
    reduce_in(transfer, piece.offset, piece.staging.get(), bytes);
  else if (transfer.kind != StepKind::send)
    copy_in(transfer.memory, piece.offset, piece.staging.get(), bytes);
  pool.give_back(std::move(piece.staging), piece.generation);
}

}  // namespace plait::tl
