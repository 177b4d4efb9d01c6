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

// After that long in silence, this often: the third question without an answer ends the connection, 10 s after the
// first silent moment. TCP_USER_TIMEOUT is no way to do that: it also ends connections whose other side lives but has
// not read for so long.
constexpr int silent_s = 4, probe_s = 2, probes = 3;

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

void make_prompt(const Socket& socket) { set(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, 1); }

bool is_shortage(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

// Of ports, too, which strangers may have taken.
bool is_shortage_at_connect(int error) { return is_shortage(error) || error == EADDRNOTAVAIL || error == EAGAIN; }

Result<Opened> not_now(Opening outcome) { return Opened{.outcome = outcome, .socket = {}, .error = errno}; }

Result<Opened> not_connected(const char* what) {
  if (is_shortage_at_connect(errno)) return not_now(Opening::short_of);
  return is_unreachable(errno) ? not_now(Opening::unreachable) : failed(what);
}

Socket make_socket() { return Socket(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<Socket> listen_at(std::uint32_t address) {
  Socket made = make_socket();
  if (!made.open()) return failed("making a socket");
  if (!bind_to(made.descriptor(), {address, 0}) || listen(made.descriptor(), SOMAXCONN) != 0)
    return failed("listening");
  return made;
}

Result<Endpoint> endpoint_of(const Socket& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return failed("asking for a socket's port");
  return Endpoint{ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
}

bool is_unreachable(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN || error == EHOSTDOWN || error == ENONET ||
         error == ETIMEDOUT;
}

std::string describe_failure(int error) {
  if (error == EMFILE) return "cannot connect: this process can open no more files";
  if (error == ENFILE) return "cannot connect: this machine can open no more files";
  return std::strerror(error);
}

Result<Opened> connect_to(std::uint32_t from, Endpoint to) {
  Socket made = make_socket();
  if (!made.open()) return not_connected("making a socket");
  make_prompt(made);
  // The port is chosen at connect(), where one may serve connections to several peers.
  set(made.descriptor(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  if (!bind_to(made.descriptor(), {from, 0})) return not_connected("binding to a rail");
  const sockaddr_in address = internet(to);
  if (connect(made.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS)
    return not_connected("connecting");
  return Opened{.outcome = Opening::made, .socket = std::move(made)};
}

// accept() also hands on what has gone wrong with the connection since, and what the network has (accept(2)): the
// listener is as good as before.
Result<Opened> accept_one(const Socket& listener) {
  Socket made(accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (made.open()) {
    make_prompt(made);
    return Opened{.outcome = Opening::made, .socket = std::move(made)};
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Opened{};
  if (is_shortage(errno)) return not_now(Opening::short_of);
  const bool no_listener = errno == EBADF || errno == ENOTSOCK || errno == EINVAL || errno == EFAULT;
  return no_listener ? failed("accepting a connection") : not_now(Opening::lost);
}

// A probe of a window that its reader keeps closed counts as answered when the kernel there says so.
Unanswered unanswered(const Socket& socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket.descriptor(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return {.attempts = std::max<int>(info.tcpi_retransmits, info.tcpi_probes),
          .connecting = info.tcpi_state == TCP_SYN_SENT};
}

void ask_for_life(const Socket& socket, bool asks) {
  if (asks) {
    set(socket.descriptor(), IPPROTO_TCP, TCP_KEEPIDLE, silent_s);
    set(socket.descriptor(), IPPROTO_TCP, TCP_KEEPINTVL, probe_s);
    set(socket.descriptor(), IPPROTO_TCP, TCP_KEEPCNT, probes);
  }
  set(socket.descriptor(), SOL_SOCKET, SO_KEEPALIVE, asks ? 1 : 0);
}

}  // namespace plait::tl
