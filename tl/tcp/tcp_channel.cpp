#include "tl/tcp/tcp_channel.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tl/stall_clock.h"
#include "tl/tcp/connection.h"

namespace plait {
namespace {

class TcpChannel final : public Channel {
 public:
  TcpChannel(Socket listener, std::vector<TcpPeer> peers, TcpChannelOptions options)
      : listener_(std::move(listener)),
        peers_(std::move(peers)),
        options_(std::move(options)),
        connections_(peers_.size()),
        listed_(peers_.size()) {
    busy_.reserve(peers_.size());
  }

  ChannelKind kind() const override { return ChannelKind::ucx; }
  int active() const override { return active_; }
  Result<bool> start(Transfer& transfer) override;
  Result<bool> progress(std::vector<Transfer*>& completed) override;
  bool arm(WakeUp& wake_up) override;
  void announce_failure(const Status& cause) override { abandon(cause); }
  void abandon(const Status& cause) override;

 private:
  // A connection that was accepted and has not said yet whose it is.
  struct Stranger {
    Socket socket;
    detail::Greeting greeting;
    std::size_t heard = 0;
  };

  detail::Connection& connection(std::int32_t peer) { return connections_[static_cast<std::size_t>(peer)]; }
  Status ensure_connected(std::int32_t peer);
  Status accept_waiting();
  Result<bool> hear(Stranger& stranger);
  Result<bool> advance(std::int32_t peer, std::vector<Transfer*>& completed);
  Status look_at_links() const;
  Status failure(std::int32_t peer, const Status& cause) const;

  Socket listener_;
  std::vector<TcpPeer> peers_;
  TcpChannelOptions options_;
  std::vector<detail::Connection> connections_;  // by rank
  std::vector<Stranger> strangers_;
  std::vector<std::int32_t> busy_;  // peers with transfers under way
  std::vector<char> listed_;
  StallClock clock_;
  int active_ = 0;
  int awaited_ = 0;  // peers that must connect before their transfers can go on
  bool abandoned_ = false;
};

Status TcpChannel::failure(std::int32_t peer, const Status& cause) const {
  return {Code::peer_failed, "tcp: rank " + std::to_string(peer) + " on " +
                                 peers_[static_cast<std::size_t>(peer)].host + ", rail " + options_.rail + ": " +
                                 cause.message()};
}

Status TcpChannel::ensure_connected(std::int32_t peer) {
  detail::Connection& there = connection(peer);
  if (there.open()) return {};
  if (peer < options_.rank) {
    if (!there.sends() && !there.receives()) ++awaited_;
    return {};
  }
  const auto self = static_cast<std::size_t>(options_.rank);
  Result<Socket> made = connect_to(peers_[self].endpoint.address, peers_[static_cast<std::size_t>(peer)].endpoint);
  if (!made.ok()) return failure(peer, made.status());
  const detail::Greeting greeting{.token = options_.token, .rank = options_.rank};
  there.use(std::move(*made), &greeting);
  return {};
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
  if (awaited_ > 0)
    if (Status status = accept_waiting(); !status.ok()) return status;
  const std::size_t before = completed.size();
  bool moved = false;
  for (std::size_t i = busy_.size(); i-- > 0;) {
    const std::int32_t peer = busy_[i];
    const Result<bool> advanced = advance(peer, completed);
    if (!advanced.ok()) return advanced;
    moved |= *advanced;
    if (connection(peer).sends() || connection(peer).receives()) continue;
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
  const auto add = [&](const Socket& socket) { wake_up.descriptors.push_back({socket.descriptor(), POLLIN, 0}); };
  for (const std::int32_t peer : busy_)
    if (connection(peer).open()) wake_up.descriptors.push_back(connection(peer).awaited());
  if (awaited_ == 0) return true;
  add(listener_);
  for (const Stranger& stranger : strangers_) add(stranger.socket);
  return true;
}

Status TcpChannel::look_at_links() const {
  for (const std::int32_t peer : busy_) {
    const detail::Connection& there = connections_[static_cast<std::size_t>(peer)];
    if (there.open() && there.cut()) return failure(peer, {Code::peer_failed, "its host cannot be reached"});
  }
  return {};
}

Status TcpChannel::accept_waiting() {
  while (true) {
    Result<Socket> accepted = accept_one(listener_);
    if (!accepted.ok()) return accepted.status();
    if (!accepted->open()) break;
    strangers_.push_back({std::move(*accepted), {}, 0});
  }
  for (std::size_t i = strangers_.size(); i-- > 0;) {
    const Result<bool> known = hear(strangers_[i]);
    if (!known.ok() || *known) {  // who says nothing sensible is sent away
      std::swap(strangers_[i], strangers_.back());
      strangers_.pop_back();
    }
  }
  return {};
}

Result<bool> TcpChannel::hear(Stranger& stranger) {
  auto* to = reinterpret_cast<std::byte*>(&stranger.greeting);
  const ssize_t heard =
      recv(stranger.socket.descriptor(), to + stranger.heard, sizeof stranger.greeting - stranger.heard, MSG_DONTWAIT);
  if (heard < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  if (heard <= 0) return Status(Code::peer_failed, "gone");
  stranger.heard += static_cast<std::size_t>(heard);
  if (stranger.heard < sizeof stranger.greeting) return false;
  const std::int32_t rank = stranger.greeting.rank;
  if (stranger.greeting.token != options_.token || rank < 0 || rank >= options_.rank || connection(rank).open())
    return Status(Code::invalid, "a stranger");
  detail::Connection& there = connection(rank);
  if (there.sends() || there.receives()) --awaited_;
  there.use(std::move(stranger.socket), nullptr);
  return true;
}

// Also when nothing is under way here: the peers learn from the closed connections that this rank has failed, and those
// that are about to connect from the closed port.
void TcpChannel::abandon(const Status&) {
  listener_ = Socket();
  for (detail::Connection& each : connections_) each = detail::Connection();
  busy_.clear();
  strangers_.clear();
  active_ = awaited_ = 0;
  abandoned_ = true;
}

class SplitChannel final : public Channel {
 public:
  SplitChannel(std::unique_ptr<Channel> short_messages, std::unique_ptr<Channel> long_messages,
               std::uint64_t short_bytes)
      : short_(std::move(short_messages)), long_(std::move(long_messages)), short_bytes_(short_bytes) {}

  ChannelKind kind() const override { return long_->kind(); }
  int active() const override { return short_->active() + long_->active(); }
  Result<bool> start(Transfer& transfer) override {
    if (transfer.bytes <= short_bytes_) return short_->start(transfer);
    transfer.last_of_lane = true;  // those that follow it may be short
    return long_->start(transfer);
  }
  Result<bool> progress(std::vector<Transfer*>& completed) override {
    bool moved = false;
    for (Channel* channel : {short_.get(), long_.get()}) {
      if (channel->active() == 0) continue;
      const Result<bool> progressed = channel->progress(completed);
      if (!progressed.ok()) return progressed;
      moved |= *progressed;
    }
    return moved;
  }
  bool arm(WakeUp& wake_up) override {
    bool all = true;
    for (Channel* channel : {short_.get(), long_.get()})
      if (channel->active() > 0 && !channel->arm(wake_up)) all = false;
    return all;
  }
  void make_room(const BoundSchedule& schedule, std::uint64_t longer_than) override {
    short_->make_room(schedule, longer_than);
    long_->make_room(schedule, std::max(longer_than, short_bytes_));
  }
  void disarm() override {
    short_->disarm();
    long_->disarm();
  }
  void announce_failure(const Status& cause) override {
    short_->announce_failure(cause);
    long_->announce_failure(cause);
  }
  void abandon(const Status& cause) override {
    short_->abandon(cause);
    long_->abandon(cause);
  }

 private:
  std::unique_ptr<Channel> short_, long_;
  std::uint64_t short_bytes_;
};

}  // namespace

std::unique_ptr<Channel> make_tcp_channel(Socket listener, std::vector<TcpPeer> peers, TcpChannelOptions options) {
  return std::make_unique<TcpChannel>(std::move(listener), std::move(peers), options);
}

std::unique_ptr<Channel> make_split_channel(std::unique_ptr<Channel> short_messages,
                                            std::unique_ptr<Channel> long_messages, std::uint64_t short_bytes) {
  return std::make_unique<SplitChannel>(std::move(short_messages), std::move(long_messages), short_bytes);
}

}  // namespace plait
