// One connection of a TCP channel: the messages to and from one rank.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/aligned_bytes.h"
#include "tl/channel.h"
#include "tl/tcp/socket.h"
#include "tl/transfer_queue.h"

namespace plait::tl::detail {

// The first bytes from who connects.
struct Greeting {
  std::uint64_t token = 0;
  std::int32_t rank = -1;
  std::int32_t unused = 0;
};

class Connection {
 public:
  bool open() const { return socket_.open(); }
  // Costs a system call. Precondition: open().
  bool cut() const { return is_cut(socket_); }
  // `greeting`: what must be sent first; nullptr where the peer did that.
  void use(Socket socket, const Greeting* greeting);

  void add_send(Transfer& transfer) { sends_.push(transfer); }
  void add_receive(Transfer& transfer) { receives_.push(transfer); }
  bool sends() const { return !sends_.empty(); }
  bool receives() const { return !receives_.empty(); }
  void forget() { sends_ = receives_ = {}; }
  // What makes send_some() or receive_some() move. Precondition: open().
  pollfd awaited() const;

  // What can be sent, or has arrived, of the first message: true when all of it; then it is no longer queued. `moved`
  // is set when anything was. Precondition: open(), and sends() or receives().
  Result<bool> send_some(bool& moved);
  Result<bool> receive_some(bool& moved);
  Transfer* first_send() const { return sends_.head; }
  Transfer* first_receive() const { return receives_.head; }

 private:
  Result<bool> send_greeting();

  Socket socket_;
  std::vector<std::byte> greeting_;  // as far as it is not sent
  TransferQueue sends_, receives_;   // progressed: bytes of length and payload together
  std::uint32_t incoming_length_ = 0;
  AlignedBytes staged_;  // of a recv_reduce
};

}  // namespace plait::tl::detail
