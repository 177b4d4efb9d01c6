#include "tl/tcp/tcp_channel.h"

#include <algorithm>
#include <utility>

#include "tl/stall_clock.h"
#include "tl/tcp/attempt.h"
#include "tl/tcp/connection.h"

namespace plait::tl {
namespace {

class TcpChannel final : public Channel {
 public:
  TcpChannel(Socket listener, std::vector<TcpPeer> peers, TcpChannelOptions options)
      : peers_(std::move(peers)),
        options_(std::move(options)),
        reception_(std::move(listener), options_.rank, options_.key, options_.limits),
        connections_(peers_.size()),
        listed_(peers_.size()) {
    busy_.reserve(peers_.size());
  }

  ChannelKind kind() const override { return ChannelKind::tcp; }
  int active() const override { return active_; }
  Result<bool> start(Transfer& transfer) override;
  Result<bool> progress(std::vector<Transfer*>& completed) override;
  bool arm(WakeUp& wake_up) override;
  void announce_failure(const Status& cause) override { abandon(cause); }
  void abandon(const Status& cause) override;

 private:
  detail::Connection& connection(std::int32_t peer) { return connections_[static_cast<std::size_t>(peer)]; }
  Status ensure_connected(std::int32_t peer);
  Result<bool> meet();
  Status receive_guests();
  Result<bool> advance(std::int32_t peer, std::vector<Transfer*>& completed);
  Status look_at_links();
  Status failure(std::int32_t peer, const Status& cause) const;

  std::vector<TcpPeer> peers_;
  TcpChannelOptions options_;
  detail::Reception reception_;
  std::vector<detail::Connection> connections_;  // by rank
  std::vector<detail::Attempt> attempts_;        // to connect to peers that messages wait for
  std::vector<detail::Guest> guests_;
  std::vector<std::int32_t> busy_;  // peers with transfers under way
  std::vector<char> listed_;
  StallClock clock_;
  int active_ = 0;
  int awaited_ = 0;  // peers that must connect before their transfers can go on
  bool abandoned_ = false;
};

Status TcpChannel::failure(std::int32_t peer, const Status& cause) const {
  return {cause.code(), "tcp: rank " + std::to_string(peer) + " on " + peers_[static_cast<std::size_t>(peer)].host +
                            ", rail " + options_.rail + ": " + cause.message()};
}

// A connection begins to be made at the first message of a peer.
Status TcpChannel::ensure_connected(std::int32_t peer) {
  detail::Connection& there = connection(peer);
  if (there.open() || there.sends() || there.receives()) return {};
  if (peer < options_.rank) {
    ++awaited_;
    return {};
  }
  const TcpPeer& other = peers_[static_cast<std::size_t>(peer)];
  const detail::Way way{.from = peers_[static_cast<std::size_t>(options_.rank)].endpoint.address,
                        .to = other.endpoint,
                        .probe_port = other.probe_port};
  attempts_.emplace_back(options_.rank, peer, way, options_.key);
  const Result<bool> begun = attempts_.back().advance();
  if (begun.ok()) return {};
  attempts_.pop_back();
  return failure(peer, begun.status());
}

Result<bool> TcpChannel::start(Transfer& transfer) {
  if (abandoned_) return {Code::peer_failed, "tcp: the channel was given up after an earlier failure"};
  if (transfer.peer < 0 || static_cast<std::size_t>(transfer.peer) >= peers_.size() || transfer.peer == options_.rank)
    return {Code::internal, "tcp: rank " + std::to_string(transfer.peer) + " is no other rank"};
  if (Status status = ensure_connected(transfer.peer); !status.ok()) return status;
  detail::Connection& there = connection(transfer.peer);
  if (transfer.kind == StepKind::send) {
    const bool first = !there.sends();
    there.add_send(transfer);
    if (options_.bytes_sent != nullptr) options_.bytes_sent->fetch_add(transfer.bytes, std::memory_order_relaxed);
    if (first && there.open()) {
      bool moved = false;
      Result<bool> sent = there.send_some(moved);
      if (!sent.ok()) return failure(transfer.peer, sent.status());
      if (*sent) return true;
    }
  } else {
    there.add_receive(transfer);
  }
  if (!std::exchange(listed_[static_cast<std::size_t>(transfer.peer)], 1)) busy_.push_back(transfer.peer);
  ++active_;
  return false;
}

// Up to one message in each direction.
Result<bool> TcpChannel::advance(std::int32_t peer, std::vector<Transfer*>& completed) {
  detail::Connection& there = connection(peer);
  if (!there.open()) return false;
  bool moved = false;
  if (there.sends()) {
    Transfer* transfer = there.first_send();
    const Result<bool> done = there.send_some(moved);
    if (!done.ok()) return failure(peer, done.status());
    if (*done) completed.push_back(transfer);
  }
  if (there.receives()) {
    Transfer* transfer = there.first_receive();
    const Result<bool> done = there.receive_some(moved);
    if (!done.ok()) return failure(peer, done.status());
    if (*done) completed.push_back(transfer);
  }
  return moved;
}

Result<bool> TcpChannel::progress(std::vector<Transfer*>& completed) {
  bool moved = false;
  if (awaited_ > 0 || !attempts_.empty()) {
    const Result<bool> met = meet();
    if (!met.ok()) return met;
    moved = *met;
  }
  const std::size_t before = completed.size();
  for (std::size_t i = busy_.size(); i-- > 0;) {
    const std::int32_t peer = busy_[i];
    const Result<bool> advanced = advance(peer, completed);
    if (!advanced.ok()) return advanced;
    moved |= *advanced;
    if (connection(peer).sends() || connection(peer).receives()) continue;
    connection(peer).rest();
    listed_[static_cast<std::size_t>(peer)] = 0;
    busy_[i] = busy_.back();
    busy_.pop_back();
  }
  active_ -= static_cast<int>(completed.size() - before);
  if (moved)
    clock_.moved();
  else if (clock_.due())
    if (Status status = look_at_links(); !status.ok()) return status;
  return moved;
}

// The kernel keeps a descriptor ready until it is read from, or written to: nothing to arm.
bool TcpChannel::arm(WakeUp& wake_up) {
  for (const std::int32_t peer : busy_)
    if (connection(peer).open()) wake_up.descriptors.push_back(connection(peer).awaited());
  bool all = true;
  for (const detail::Attempt& attempt : attempts_) all &= attempt.arm(wake_up);
  if (awaited_ > 0) all &= reception_.arm(wake_up);
  return all;
}

Status TcpChannel::look_at_links() {
  for (const std::int32_t peer : busy_) {
    detail::Connection& there = connection(peer);
    if (there.open() && there.cut()) return failure(peer, {Code::peer_failed, "its host cannot be reached"});
  }
  for (detail::Attempt& attempt : attempts_)
    if (Status status = attempt.look_at_link(); !status.ok()) return failure(attempt.peer(), status);
  return {};
}

// True when a connection has been made.
Result<bool> TcpChannel::meet() {
  bool met = false;
  if (awaited_ > 0) {
    if (Status status = receive_guests(); !status.ok()) return status;
    met = !guests_.empty();
    guests_.clear();
  }
  for (std::size_t i = attempts_.size(); i-- > 0;) {
    const Result<bool> advanced = attempts_[i].advance();
    if (!advanced.ok()) return failure(attempts_[i].peer(), advanced.status());
    if (!*advanced) continue;
    met = true;
    connection(attempts_[i].peer()).use(attempts_[i].take());
    std::swap(attempts_[i], attempts_.back());
    attempts_.pop_back();
  }
  return met;
}

Status TcpChannel::receive_guests() {
  if (Status status = reception_.look(guests_); !status.ok()) {
    const auto waits = std::ranges::find_if(busy_, [&](std::int32_t peer) { return !connection(peer).open(); });
    return waits != busy_.end() ? failure(*waits, status) : status;
  }
  for (detail::Guest& guest : guests_) {
    detail::Connection& there = connection(guest.rank);
    if (there.open()) continue;  // a rank connects once
    if (there.sends() || there.receives()) --awaited_;
    there.use(std::move(guest.socket));
  }
  return {};
}

// Also when nothing is under way here: the peers learn from the closed connections that this rank has failed, and those
// that are about to connect from the closed port.
void TcpChannel::abandon(const Status&) {
  reception_.close();
  for (detail::Connection& each : connections_) each = detail::Connection();
  busy_.clear();
  attempts_.clear();
  active_ = awaited_ = 0;
  abandoned_ = true;
}

}  // namespace

std::unique_ptr<Channel> make_tcp_channel(Socket listener, std::vector<TcpPeer> peers, TcpChannelOptions options) {
  return std::make_unique<TcpChannel>(std::move(listener), std::move(peers), options);
}

}  // namespace plait::tl
