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

// Waits for connections at a port that the kernel chooses. As many may wait as the kernel allows: strangers take places
// as well.
Result<Socket> listen_at(std::uint32_t address);
Result<Endpoint> endpoint_of(const Socket& socket);

// What became of the wish for a socket. A Status instead where no later wish will do better.
enum class Opening {
  made,
  none_waits,   // nobody to accept
  lost,         // it was gone before it was accepted: others may follow
  unreachable,  // there is no way to the peer, for now
  short_of,     // file descriptors, memory or ports, for now
};
struct Opened {
  Opening outcome = Opening::none_waits;
  Socket socket;  // where made
  int error = 0;  // the system's, where not
};

// Whether it means that there is no way to the peer, for now.
bool is_unreachable(int error);
// Of an attempt to connect; `error`: an errno.
std::string describe_failure(int error);

// Begins to connect, from the address `from`.
Result<Opened> connect_to(std::uint32_t from, Endpoint to);

// The next connection that waits. Fails only where the listener is none any more.
Result<Opened> accept_one(const Socket& listener);

// Attempts in a row of this host's kernel that the peer's has not answered: to bring it what was sent, to connect, or
// to hear of it. A peer that is merely slow or stopped has a kernel that answers.
struct Unanswered {
  int attempts = 0;
  bool connecting = false;
};
Unanswered unanswered(const Socket& socket);

// Whether the kernel asks a peer that is silent for a sign of life, and ends the connection (ETIMEDOUT) after ten
// seconds without one. Where something is still to be sent it does not ask: unanswered() counts.
void ask_for_life(const Socket& socket, bool asks);

}  // namespace plait::tl
