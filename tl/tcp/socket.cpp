#include "tl/tcp/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace plait::tl {
namespace {

// A silent peer's kernel must answer within so long: a cut link is an error then, and not a wait of many minutes. Where
// something is still to be sent the kernel does not ask: is_cut() looks. TCP_USER_TIMEOUT is no way to do that: it also
// ends connections whose other side lives but has not read for so long.
constexpr int silent_s = 5, probe_s = 2, probes = 3;

// Attempts in a row that remain unanswered, each after twice as long as the one before: after 0.2, 0.6, 1.4, 3 and 6.2
// s, where the way there is short; those to connect after 1, 3, 7 and 15 s.
constexpr int lost_attempts = 5, lost_connects = 4;

Status failed(const char* what) {
  return {Code::unavailable, std::string("tcp: ") + what + ": " + std::strerror(errno)};
}

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
  // The port is chosen at connect(), where one may serve connections to several peers.
  set(made.descriptor(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
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

// A probe of a window that its reader keeps closed counts as answered when the kernel there says so.
bool is_cut(const Socket& socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket.descriptor(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  const int unanswered = std::max<int>(info.tcpi_retransmits, info.tcpi_probes);
  return unanswered >= (info.tcpi_state == TCP_SYN_SENT ? lost_connects : lost_attempts);
}

}  // namespace plait::tl
