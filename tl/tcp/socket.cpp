#include "tl/tcp/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace plait {
namespace {

// What was sent must be acknowledged, and a silent peer's kernel must answer, within so long: a cut link is an error
// then, and not a wait of many minutes.
constexpr int give_up_ms = 10'000;
constexpr int silent_s = 5, probe_s = 2, probes = 3;

Status failed(const char* what) { return {Code::unavailable, std::string("tcp: ") + what + ": " + std::strerror(errno)}; }

sockaddr_in internet(Endpoint endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(endpoint.address);
  address.sin_port = htons(endpoint.port);
  return address;
}

bool bind_to(int descriptor, Endpoint endpoint) {
  const sockaddr_in address = internet(endpoint);
  return bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

void set(int descriptor, int level, int option, int value) {
  setsockopt(descriptor, level, option, &value, sizeof value);
}

void make_prompt(int descriptor) {
  set(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, give_up_ms);
  set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, silent_s);
  set(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, probe_s);
  set(descriptor, IPPROTO_TCP, TCP_KEEPCNT, probes);
}

Socket make_socket() { return Socket(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<Socket> listen_at(std::uint32_t address, int backlog) {
  Socket made = make_socket();
  if (!made.open()) return failed("making a socket");
  if (!bind_to(made.descriptor(), {address, 0}) || listen(made.descriptor(), backlog) != 0) return failed("listening");
  return made;
}

Result<Endpoint> endpoint_of(const Socket& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return failed("asking for a socket's port");
  return Endpoint{ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
}

Result<Socket> connect_to(std::uint32_t from, Endpoint to) {
  Socket made = make_socket();
  if (!made.open()) return failed("making a socket");
  make_prompt(made.descriptor());
  if (!bind_to(made.descriptor(), {from, 0})) return failed("binding to a rail");
  const sockaddr_in address = internet(to);
  if (connect(made.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS)
    return failed("connecting");
  return made;
}

Result<Socket> accept_one(const Socket& listener) {
  Socket made(accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const bool none = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED;
  if (!made.open()) return none ? Result<Socket>(Socket()) : Result<Socket>(failed("accepting a connection"));
  make_prompt(made.descriptor());
  return made;
}

}  // namespace plait
