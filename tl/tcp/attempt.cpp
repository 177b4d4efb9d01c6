#include "tl/tcp/attempt.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tl/trace.h"

namespace plait::tl::detail {
namespace {

constexpr std::uint64_t millisecond_ns = 1'000'000, second_ns = 1000 * millisecond_ns;
constexpr std::uint64_t unreachable_limit_ns = 10 * second_ns;
constexpr std::uint64_t shortage_limit_ns = 60 * second_ns;
constexpr std::uint64_t probe_limit_ns = 5 * second_ns;
constexpr int most_doublings = 8;  // of a pause of a millisecond

Status unreachable(const std::string& cause) { return {Code::peer_failed, cause}; }
Status host_unreachable() { return unreachable("its host cannot be reached"); }

}  // namespace

Attempt::Attempt(std::int32_t own_rank, std::int32_t peer, const Way& way, const SharedKey& key)
    : key_(key), way_(way), meeting_{.connector = own_rank, .acceptor = peer} {}

Result<bool> Attempt::advance() {
  if (!socket_.open()) {
    if (next_ns_ != 0 && monotonic_ns() < next_ns_) return false;
    if (Status status = begin(); !status.ok()) return status;
    if (!socket_.open()) return false;
  }
  return phase_ == Phase::challenge ? hear_challenge() : hear_acceptance();
}

Status Attempt::begin() {
  Result<Opened> opened = connect_to(way_.from, way_.to);
  if (!opened.ok()) return opened.status();
  if (opened->outcome == Opening::short_of) return try_later(opened->error, shortage_limit_ns);
  if (opened->outcome == Opening::unreachable) return try_later(opened->error, unreachable_limit_ns);
  socket_ = std::move(opened->socket);
  phase_ = Phase::challenge;
  challenge_ = {};
  acceptance_ = {};
  return fill_random(meeting_.connectors);
}

Result<bool> Attempt::hear_challenge() {
  const Passage heard = challenge_.receive(socket_);
  if (heard == Passage::ended) return ended(errno);
  if (heard == Passage::partly) return false;
  failing_since_ns_ = 0;
  meeting_.acceptors = challenge_.message.nonce;
  Parcel<Answer> answer{.message = {.rank = meeting_.connector,
                                    .nonce = meeting_.connectors,
                                    .proof = proof_of(Role::connector, meeting_, key_)}};
  // A new connection takes these few bytes at once.
  if (answer.send(socket_) != Passage::whole) return ended(errno);
  phase_ = Phase::acceptance;
  return false;
}

Result<bool> Attempt::hear_acceptance() {
  const Passage heard = acceptance_.receive(socket_);
  if (heard == Passage::ended) return ended(errno);
  if (heard == Passage::partly) return false;
  if (same_hash(acceptance_.message.proof, proof_of(Role::acceptor, meeting_, key_))) return true;
  return Status(Code::peer_failed, "somebody else listens in its place");
}

// The peer sends away whom it takes for a stranger: then it still listens.
Result<bool> Attempt::ended(int error) {
  const bool given_up = watch_.on() && error == ETIMEDOUT;
  if (given_up) return host_unreachable();
  if (error == ECONNREFUSED) return Status(Code::peer_left, "it does not listen any more");
  if (is_unreachable(error)) {
    if (Status status = try_later(error, unreachable_limit_ns); !status.ok()) return status;
    return false;
  }
  if (error != 0 && error != ECONNRESET && error != EPIPE && error != EAGAIN)
    return Status(Code::peer_failed, std::strerror(error));
  const std::uint64_t longest = millisecond_ns << std::min(tries_, most_doublings);
  try_again(longest / 2 + longest / 512 * std::to_integer<std::uint64_t>(meeting_.connectors.front()));
  return false;
}

Status Attempt::try_later(int error, std::uint64_t limit_ns) {
  const std::uint64_t now = monotonic_ns();
  if (failing_since_ns_ == 0) failing_since_ns_ = now;
  if (now - failing_since_ns_ >= limit_ns) return unreachable(describe_failure(error));
  constexpr std::uint64_t pause_ns = 50 * millisecond_ns;
  try_again(pause_ns);
  return {};
}

void Attempt::try_again(std::uint64_t pause_ns) {
  socket_ = Socket();
  watch_ = {};
  probe_.reset();
  next_ns_ = monotonic_ns() + pause_ns;
  ++tries_;
}

Socket Attempt::take() {
  if (watch_.on()) watch_.end(socket_);
  return std::move(socket_);
}

bool Attempt::arm(WakeUp& wake_up) const {
  if (!socket_.open()) return false;
  wake_up.descriptors.push_back({socket_.descriptor(), POLLIN, 0});
  return true;
}

Status Attempt::look_at_link() {
  if (!socket_.open() || !watch_.cut(socket_)) return {};
  return unanswered(socket_).connecting ? probe() : host_unreachable();
}

// A host answers no attempt to connect where it is cut off, or where strangers have taken all places in the kernel's
// queue; then it still answers at a port at which nobody listens.
Status Attempt::probe() {
  constexpr int lost_without_probe = 4;  // a doubling later: where nobody can be asked
  if (way_.probe_port == 0) return unanswered(socket_).attempts < lost_without_probe ? Status() : host_unreachable();
  if (!probe_) {
    probe_ = ReachabilityProbe::at(way_.from, way_.to.address, way_.probe_port);
    probed_ns_ = monotonic_ns();
  }
  switch (probe_->answer()) {
    case ReachabilityProbe::Answer::alive:
      try_again(0);
      return {};
    case ReachabilityProbe::Answer::none_yet:
      return monotonic_ns() - probed_ns_ < probe_limit_ns ? Status() : host_unreachable();
    case ReachabilityProbe::Answer::unreachable:
      break;
  }
  return host_unreachable();
}

}  // namespace plait::tl::detail
