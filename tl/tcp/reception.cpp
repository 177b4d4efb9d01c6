#include "tl/tcp/reception.h"

#include <poll.h>

#include <cstring>
#include <utility>

#include "tl/trace.h"

namespace plait::tl::detail {
namespace {

constexpr int most_accepted = 16;                    // at a glance
constexpr std::uint64_t short_pause_ns = 5'000'000;  // where nothing can be accepted, until the next try

bool somebody_waits(const Socket& listener) {
  pollfd waiting = {.fd = listener.descriptor(), .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, 0) > 0;
}

}  // namespace

Reception::Reception(Socket listener, std::int32_t rank, const SharedKey& key, const ReceptionLimits& limits)
    : listener_(std::move(listener)), rank_(rank), key_(key), limits_(limits) {
  limits_.strangers += static_cast<std::size_t>(rank);
}

// What has come is heard first, however long ago: a rank may have answered while this one computed.
Status Reception::look(std::vector<Guest>& guests) {
  now_ns_ = monotonic_ns();
  std::erase_if(strangers_, [&](Stranger& stranger) { return hear(stranger, guests); });
  return now_ns_ < pause_until_ns_ ? Status() : let_in();
}

Status Reception::let_in() {
  for (int count = 0; count < most_accepted && has_place(); ++count) {
    Result<Opened> accepted = accept_one(listener_);
    if (!accepted.ok()) return accepted.status();
    if (accepted->outcome == Opening::short_of) return out_of_files(accepted->error);
    short_since_ns_ = 0;
    if (accepted->outcome == Opening::none_waits) break;
    if (accepted->outcome == Opening::made) challenge(std::move(accepted->socket));
  }
  return {};
}

// False where all that wait came only just now: others wait in the kernel meanwhile.
bool Reception::has_place() const {
  return strangers_.size() < limits_.strangers || now_ns_ - strangers_.front().since_ns >= limits_.patience_ns;
}

// Strangers give their files back first. The kernel says this also where nobody waits.
Status Reception::out_of_files(int error) {
  if (!strangers_.empty() && now_ns_ - strangers_.front().since_ns >= limits_.patience_ns)
    strangers_.erase(strangers_.begin());
  pause_until_ns_ = now_ns_ + short_pause_ns;
  if (short_since_ns_ == 0 || !somebody_waits(listener_)) short_since_ns_ = now_ns_;
  if (now_ns_ - short_since_ns_ < limits_.shortage_ns) return {};
  return {Code::unavailable, std::string("its connection cannot be accepted: ") + std::strerror(error)};
}

// A new connection takes these few bytes at once, or is of no use.
void Reception::challenge(Socket socket) {
  Parcel<Challenge> challenge;
  if (!fill_random(challenge.message.nonce).ok() || challenge.send(socket) != Passage::whole) return;
  if (strangers_.size() >= limits_.strangers) strangers_.erase(strangers_.begin());
  strangers_.push_back({.socket = std::move(socket), .since_ns = now_ns_, .challenge = challenge.message.nonce});
}

// True when it is no stranger any more, or sent away.
bool Reception::hear(Stranger& stranger, std::vector<Guest>& guests) const {
  const Passage passage = stranger.answer.receive(stranger.socket);
  if (passage == Passage::ended) return true;
  if (passage == Passage::partly) return now_ns_ - stranger.since_ns >= limits_.silence_ns;
  const Answer& answer = stranger.answer.message;
  if (answer.rank < 0 || answer.rank >= rank_) return true;
  const Meeting meeting{
      .connector = answer.rank, .acceptor = rank_, .connectors = answer.nonce, .acceptors = stranger.challenge};
  if (!same_hash(answer.proof, proof_of(Role::connector, meeting, key_))) return true;
  Parcel<Acceptance> acceptance{.message = {proof_of(Role::acceptor, meeting, key_)}};
  if (acceptance.send(stranger.socket) == Passage::whole)
    guests.push_back({.rank = answer.rank, .socket = std::move(stranger.socket)});
  return true;
}

// A descriptor stays ready until it is read from: nothing else to arm.
bool Reception::arm(WakeUp& wake_up) const {
  const auto add = [&](const Socket& socket) { wake_up.descriptors.push_back({socket.descriptor(), POLLIN, 0}); };
  for (const Stranger& stranger : strangers_) add(stranger.socket);
  if (monotonic_ns() < pause_until_ns_) return false;
  add(listener_);
  return true;
}

void Reception::close() {
  listener_ = Socket();
  strangers_.clear();
}

}  // namespace plait::tl::detail
