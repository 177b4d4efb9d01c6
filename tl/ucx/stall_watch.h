// Looks for cut links when a wait has become long.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tl/peer_watch.h"
#include "tl/stall_clock.h"
#include "tl/ucx/ucx_peer.h"

namespace plait::tl {

// A message that a channel waits for.
struct Awaited {
  int rail = 0;
  std::int32_t peer = -1;
  bool operator==(const Awaited&) const = default;
};

// Not thread-safe.
class StallWatch {
 public:
  // `probes`: whether peers may be probed. Not owned: both must outlive it.
  StallWatch(std::span<const UcxRail> rails, std::span<const std::shared_ptr<const UcxPeer>> peers, bool probes)
      : rails_(rails), peers_(peers), probes_(probes) {}

  void moved() {
    if (!clock_.moved()) return;
    suspects_.clear();
    down_since_ns_ = {};
  }
  // After a glance that moved nothing: whether it is time for look(). Costs a look at the clock now and then.
  bool due() { return clock_.due(); }
  // Fails when this host has no link on a rail for five seconds, or a peer cannot be reached over it for ten.
  Status look(std::span<const Awaited> awaited);

 private:
  struct Suspect {
    Awaited awaited;
    ReachabilityProbe probe;
    std::uint64_t probed_ns = 0;
    std::uint64_t alive_ns = 0;  // when it answered last, or was first suspected
  };
  Status check_links(std::span<const Awaited> awaited, std::uint64_t now);
  Status probe_peer(const Awaited& awaited, std::uint64_t now);
  Suspect& suspect(const Awaited& awaited, std::uint64_t now);
  ReachabilityProbe probe(const Awaited& awaited) const;
  Status failure(const Awaited& awaited, const char* what) const;

  std::span<const UcxRail> rails_;
  std::span<const std::shared_ptr<const UcxPeer>> peers_;
  bool probes_;
  StallClock clock_;
  std::vector<Suspect> suspects_;
  std::array<std::uint64_t, most_rails> down_since_ns_{};  // the links; 0: up, or not looked at
};

}  // namespace plait::tl
