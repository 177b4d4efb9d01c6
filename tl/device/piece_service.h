// Hands pieces of this process's device memory to the machine's other processes, as files: only a socket carries those.
// A process that offers something has a thread for it, which sleeps in accept() on a socket of the system's abstract
// names; who wants to map what another rank has told it of asks there, and waits for the answer, for some seconds at
// most. A rank that is gone refuses at once. Only processes of the same user are served, and asked.
//
// Nothing is held by an offer: the files are made when somebody asks, of what is there then.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "tl/device/device_pieces.h"
#include "tl/device_driver.h"

namespace plait::tl {

// An offer's number is none of an allocation, and never given again in the process.
inline constexpr std::uint64_t first_offer = std::uint64_t{1} << 63;
inline bool is_offer(std::uint64_t number) { return number >= first_offer; }

// All of this is thread-safe. The number by which other processes may ask for these pieces, until it has been withdrawn
// as often as it was given: the same pieces have the same one. Fails where there can be no socket, or no thread.
Result<std::uint64_t> offer_pieces(const DeviceDriver& driver, const std::vector<OwnPiece>& pieces);
void withdraw_offer(std::uint64_t number) noexcept;

// Another process's pieces; the files are closed at the end.
class FetchedPieces {
 public:
  FetchedPieces() = default;
  ~FetchedPieces();
  FetchedPieces(FetchedPieces&& other) noexcept : pieces_(std::move(other.pieces_)) { other.pieces_.clear(); }
  FetchedPieces& operator=(FetchedPieces&&) = delete;
  void add(const DevicePiece& piece) { pieces_.push_back(piece); }
  std::span<const DevicePiece> pieces() const { return pieces_; }

 private:
  std::vector<DevicePiece> pieces_;
};

// Of the process with that process_number(). Blocks, for some seconds at most. Fails where the process is gone or does
// not answer, is not of this user, or has such an offer no more.
Result<FetchedPieces> fetch_pieces(std::uint64_t process, std::uint64_t offer);

}  // namespace plait::tl
