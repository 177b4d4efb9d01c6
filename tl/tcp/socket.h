// Sockets that do not block.
#pragma once

#include <cstdint>
#include <utility>

#include "core/status.h"

namespace plait::tl {

// Owns a descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();
  bool open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// An IPv4 address in host order, and a port.
struct Endpoint {
  std::uint32_t address = 0;
  std::uint16_t port = 0;
};

// Waits for connections at a port that the kernel chooses.
Result<Socket> listen_at(std::uint32_t address, int backlog);
Result<Endpoint> endpoint_of(const Socket& socket);

// Begins to connect, from the address `from`.
Result<Socket> connect_to(std::uint32_t from, Endpoint to);

// The next connection that waits; not open when there is none.
Result<Socket> accept_one(const Socket& listener);

// Whether the peer's kernel has not answered several attempts in a row to bring it what was sent, or to connect: the
// link is cut, or the host is gone. A peer that is merely slow or stopped has a kernel that answers.
bool is_cut(const Socket& socket);

}  // namespace plait::tl
