#include "tl/ucx/stall_watch.h"

#include <algorithm>
#include <string>

#include "tl/trace.h"

namespace plait::tl {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t probe_every_ns = 2 * second_ns;
// A kernel repeats its attempt after 1, 3 and 7 s: four in a row are lost on a cut link, not on a busy one.
constexpr std::uint64_t silence_limit_ns = 10 * second_ns;
// A link that comes and goes, as when its other end is plugged in anew or a switch starts its port, is back by then.
constexpr std::uint64_t lost_link_ns = 5 * second_ns;
constexpr std::size_t most_suspects = 32;

}  // namespace

Status StallWatch::look(std::span<const Awaited> awaited) {
  const std::uint64_t now = monotonic_ns();
  if (Status status = check_links(awaited, now); !status.ok()) return status;
  if (!probes_) return {};
  std::erase_if(suspects_,
                [&](const Suspect& one) { return std::ranges::find(awaited, one.awaited) == awaited.end(); });
  for (const Awaited& one : awaited)
    if (Status status = probe_peer(one, now); !status.ok()) return status;
  return {};
}

Status StallWatch::check_links(std::span<const Awaited> awaited, std::uint64_t now) {
  std::uint32_t checked = 0;
  for (const Awaited& one : awaited) {
    if ((checked >> one.rail & 1u) != 0) continue;
    checked |= 1u << one.rail;
    const Rail& rail = rails_[static_cast<std::size_t>(one.rail)].worker->rail();
    std::uint64_t& since = down_since_ns_[static_cast<std::size_t>(one.rail)];
    if (link_is_up(rail))
      since = 0;
    else if (since == 0)
      since = now;
    else if (now - since >= lost_link_ns)
      return failure(one, "the link of this rank's own node is lost");
  }
  return {};
}

StallWatch::Suspect& StallWatch::suspect(const Awaited& awaited, std::uint64_t now) {
  const auto found = std::ranges::find(suspects_, awaited, &Suspect::awaited);
  if (found != suspects_.end()) return *found;
  suspects_.push_back({.awaited = awaited, .probe = probe(awaited), .probed_ns = now, .alive_ns = now});
  return suspects_.back();
}

ReachabilityProbe StallWatch::probe(const Awaited& awaited) const {
  const UcxRail& rail = rails_[static_cast<std::size_t>(awaited.rail)];
  const UcxPeer& peer = *peers_[static_cast<std::size_t>(awaited.peer)];
  const auto there = std::ranges::find(peer.rails, rail.network, &UcxPeer::OnRail::network);
  return ReachabilityProbe::at(rail.worker->rail().address, there->address, peer.probe_port);
}

Status StallWatch::probe_peer(const Awaited& awaited, std::uint64_t now) {
  const Rail& rail = rails_[static_cast<std::size_t>(awaited.rail)].worker->rail();
  if (rail.address == 0 || (suspects_.size() >= most_suspects &&
                            std::ranges::find(suspects_, awaited, &Suspect::awaited) == suspects_.end()))
    return {};
  Suspect& one = suspect(awaited, now);
  const ReachabilityProbe::Answer answer = one.probe.answer();
  if (answer == ReachabilityProbe::Answer::alive) one.alive_ns = now;
  if (answer != ReachabilityProbe::Answer::none_yet && now - one.probed_ns > probe_every_ns) {
    one.probe = probe(awaited);
    one.probed_ns = now;
  }
  if (now - one.alive_ns < silence_limit_ns) return {};
  return failure(awaited, "its host cannot be reached over this rail");
}

Status StallWatch::failure(const Awaited& awaited, const char* what) const {
  return {Code::peer_failed, "ucx: rank " + std::to_string(awaited.peer) + " on " +
                                 peers_[static_cast<std::size_t>(awaited.peer)]->host + ", rail " +
                                 rails_[static_cast<std::size_t>(awaited.rail)].worker->rail().name + ": " + what};
}

}  // namespace plait::tl
