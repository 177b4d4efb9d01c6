// One connection of a TCP channel: the messages to and from one rank.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/aligned_bytes.h"
#include "tl/channel.h"
#include "tl/tcp/link_watch.h"
#include "tl/tcp/socket.h"
#include "tl/transfer_queue.h"

namespace plait::tl::detail {

class Connection {
 public:
  bool open() const { return socket_.open(); }
  void use(Socket socket) { socket_ = std::move(socket); }
  // In a long wait, every now and then; costs system calls. Precondition: open().
  bool cut() { return watch_.cut(socket_); }
  // Nothing is awaited on it any more.
  void rest() {
    if (watch_.on() && open()) watch_.end(socket_);
  }

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
  Socket socket_;
  LinkWatch watch_;
  TransferQueue sends_, receives_;  // progressed: bytes of length and payload together
  std::uint32_t incoming_length_ = 0;
  AlignedBytes staged_;  // of a recv_reduce
};

}  // namespace plait::tl::detail
