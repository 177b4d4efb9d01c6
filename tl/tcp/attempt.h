// A rank's attempt to connect to another one: connects, proves itself, and has the other one prove itself. Until that
// has succeeded nothing of a message is sent, so that it can begin anew where it is cut short: among many strangers it
// may have been sent away as one.
#pragma once

#include <cstdint>
#include <optional>

#include "tl/channel.h"
#include "tl/peer_watch.h"
#include "tl/tcp/handshake.h"
#include "tl/tcp/link_watch.h"

namespace plait::tl::detail {

// How to get to a rank.
struct Way {
  std::uint32_t from = 0;        // IPv4 address in host order
  Endpoint to;                   // of its listener
  std::uint16_t probe_port = 0;  // peer_watch.h; 0: none
};

// Not thread-safe.
class Attempt {
 public:
  Attempt(std::int32_t own_rank, std::int32_t peer, const Way& way, const SharedKey& key);
  std::int32_t peer() const { return meeting_.acceptor; }
  // A glance: true once both have proven themselves. Fails where the peer does not listen any more, somebody else does
  // in its place, it cannot be reached for ten seconds, or this process is short of files or memory for a minute.
  Result<bool> advance();
  // Precondition: advance() said true.
  Socket take();
  // As Channel::arm.
  bool arm(WakeUp& wake_up) const;
  // In a long wait: whether the peer's host can be reached at all.
  Status look_at_link();

 private:
  enum class Phase : std::uint8_t { challenge, acceptance };

  Status begin();
  Result<bool> hear_challenge();
  Result<bool> hear_acceptance();
  Result<bool> ended(int error);
  Status try_later(int error, std::uint64_t limit_ns);
  void try_again(std::uint64_t pause_ns);
  Status probe();

  SharedKey key_;
  Way way_;
  Meeting meeting_;
  Socket socket_;
  Phase phase_ = Phase::challenge;
  Parcel<Challenge> challenge_;
  Parcel<Acceptance> acceptance_;
  LinkWatch watch_;
  std::optional<ReachabilityProbe> probe_;
  std::uint64_t probed_ns_ = 0;
  std::uint64_t next_ns_ = 0;           // not before
  std::uint64_t failing_since_ns_ = 0;  // 0: not
  int tries_ = 0;
};

}  // namespace plait::tl::detail
