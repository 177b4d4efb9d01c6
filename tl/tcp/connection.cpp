#include "tl/tcp/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tl/memory.h"

namespace plait::tl::detail {
namespace {

constexpr std::size_t length_bytes = sizeof(std::uint32_t);
constexpr std::size_t spans_a_call = 16;

struct IoList {
  std::array<iovec, spans_a_call + 1> entries;
  std::size_t count = 0;
  // Of a payload in short runs: as many of its bytes as fit. At most some iovecs' worth of them would go in a call
  // else.
  std::array<std::byte, 8192> dense;
  std::size_t dense_bytes = 0;

  void add(void* address, std::size_t bytes) { entries[count++] = {address, bytes}; }
  // The rest of a message's payload, or as much of it as fits.
  void add_payload(const Memory& memory, std::uint64_t offset, std::uint64_t left, bool sends) {
    if (MemoryCursor cursor(memory, offset); cursor.in_short_runs()) {
      dense_bytes = std::min<std::uint64_t>(left, dense.size());
      if (sends) cursor.take(dense.data(), dense_bytes);
      return add(dense.data(), dense_bytes);
    }
    for (MemoryCursor cursor(memory, offset); cursor.contiguous() > 0 && count < entries.size();
         cursor.advance(cursor.contiguous()))
      add(cursor.data(), cursor.contiguous());
  }
  msghdr header() {
    msghdr header{};
    header.msg_iov = entries.data();
    header.msg_iovlen = count;
    return header;
  }
};

bool must_wait(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

Status broken() {
  const bool cut = errno == ECONNRESET || errno == EPIPE;
  return {cut ? Code::peer_left : Code::peer_failed, std::strerror(errno)};
}

}  // namespace

pollfd Connection::awaited() const {
  pollfd result{.fd = socket_.descriptor(), .events = 0, .revents = 0};
  if (sends()) result.events |= POLLOUT;
  if (receives()) result.events |= POLLIN;
  return result;
}

Result<bool> Connection::send_some(bool& moved) {
  Transfer& transfer = *sends_.head;
  const std::uint64_t all = length_bytes + transfer.bytes;
  while (transfer.progressed < all) {
    const std::uint64_t taken = std::max<std::uint64_t>(transfer.progressed, length_bytes) - length_bytes;
    auto length = static_cast<std::uint32_t>(transfer.bytes);
    IoList list;
    if (transfer.progressed < length_bytes)
      list.add(reinterpret_cast<std::byte*>(&length) + transfer.progressed, length_bytes - transfer.progressed);
    if (transfer.bytes > 0) list.add_payload(transfer.memory, taken, transfer.bytes - taken, true);
    const msghdr header = list.header();
    const ssize_t sent = sendmsg(socket_.descriptor(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return must_wait(errno) ? Result<bool>(false) : Result<bool>(broken());
    transfer.progressed += static_cast<std::uint64_t>(sent);
    moved = true;
  }
  sends_.pop();
  return true;
}

Result<bool> Connection::receive_some(bool& moved) {
  Transfer& transfer = *receives_.head;
  const bool reduces = transfer.kind == StepKind::recv_reduce;
  const std::uint64_t all = length_bytes + transfer.bytes;
  if (reduces) staged_.reserve(transfer.bytes);
  while (transfer.progressed < all) {
    const std::uint64_t taken = std::max<std::uint64_t>(transfer.progressed, length_bytes) - length_bytes;
    IoList list;
    if (transfer.progressed < length_bytes)
      list.add(reinterpret_cast<std::byte*>(&incoming_length_) + transfer.progressed,
               length_bytes - transfer.progressed);
    if (reduces)
      list.add(staged_.data() + taken, transfer.bytes - taken);
    else if (transfer.bytes > 0)
      list.add_payload(transfer.memory, taken, transfer.bytes - taken, false);
    msghdr header = list.header();
    const ssize_t arrived = recvmsg(socket_.descriptor(), &header, MSG_DONTWAIT);
    if (arrived < 0) return must_wait(errno) ? Result<bool>(false) : Result<bool>(broken());
    if (arrived == 0) return Status(Code::peer_left, "it closed the connection");
    transfer.progressed += static_cast<std::uint64_t>(arrived);
    const std::uint64_t now_taken = std::max<std::uint64_t>(transfer.progressed, length_bytes) - length_bytes;
    if (list.dense_bytes > 0) copy_in(transfer.memory, taken, list.dense.data(), now_taken - taken);
    moved = true;
    if (transfer.progressed >= length_bytes && incoming_length_ != transfer.bytes)
      return Status(Code::peer_failed, "a message of " + std::to_string(incoming_length_) + " bytes where one of " +
                                           std::to_string(transfer.bytes) + " was expected");
  }
  if (reduces && transfer.bytes > 0) reduce_in(transfer, 0, staged_.data(), transfer.bytes);
  receives_.pop();
  return true;
}

}  // namespace plait::tl::detail
