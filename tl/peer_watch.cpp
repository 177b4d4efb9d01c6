#include "tl/peer_watch.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace plait::tl {
namespace {

int tcp_socket() { return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

sockaddr_in address_of(std::uint32_t address, std::uint16_t port) {
  sockaddr_in result = {};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = htonl(address);
  result.sin_port = htons(port);
  return result;
}

// A refusal is an answer too. Failures of this host, such as no free port, say nothing of the peer.
ReachabilityProbe::Answer meaning(int error) {
  switch (error) {
    case EINPROGRESS:
    case EALREADY:
      return ReachabilityProbe::Answer::none_yet;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case ETIMEDOUT:
      return ReachabilityProbe::Answer::unreachable;
    default:
      return ReachabilityProbe::Answer::alive;
  }
}

}  // namespace

ProbePort::ProbePort() : socket_(tcp_socket()) {
  sockaddr_in address = address_of(INADDR_ANY, 0);
  socklen_t bytes = sizeof address;
  if (socket_ < 0 || bind(socket_, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
    return;
  number_ = ntohs(address.sin_port);
}

ProbePort::~ProbePort() {
  if (socket_ >= 0) close(socket_);
}

ReachabilityProbe::ReachabilityProbe(ReachabilityProbe&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), answer_(other.answer_) {}

ReachabilityProbe& ReachabilityProbe::operator=(ReachabilityProbe&& other) noexcept {
  std::swap(socket_, other.socket_);
  answer_ = other.answer_;
  return *this;
}

ReachabilityProbe::~ReachabilityProbe() {
  if (socket_ >= 0) close(socket_);
}

ReachabilityProbe ReachabilityProbe::at(std::uint32_t from, std::uint32_t to, std::uint16_t port) {
  ReachabilityProbe probe;
  probe.socket_ = tcp_socket();
  const sockaddr_in own = address_of(from, 0), peer = address_of(to, port);
  if (probe.socket_ < 0 || bind(probe.socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
    probe.answer_ = Answer::alive;
    return probe;
  }
  const int result = connect(probe.socket_, reinterpret_cast<const sockaddr*>(&peer), sizeof peer);
  probe.answer_ = result == 0 ? Answer::alive : meaning(errno);
  return probe;
}

ReachabilityProbe::Answer ReachabilityProbe::answer() {
  if (answer_ != Answer::none_yet) return answer_;
  pollfd waiting = {.fd = socket_, .events = POLLOUT, .revents = 0};
  if (poll(&waiting, 1, 0) <= 0) return answer_;
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  answer_ = error == 0 ? Answer::alive : meaning(error);
  return answer_;
}

}  // namespace plait::tl
