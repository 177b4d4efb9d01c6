// The set-up for short calls: shared memory and plain sockets, or the host's messages, without UCX, rates and single
// copies. Two exchanges and two agreements.

#include <algorithm>
#include <atomic>
#include <map>

#include "core/attempt.h"
#include "core/log.h"
#include "runtime/job/job.h"
#include "runtime/layer.h"
#include "runtime/team/set_up_steps.h"

namespace plait::runtime {
namespace {

constexpr std::uint64_t sockets_limit_ns = 5'000'000'000;

// A trial that fails takes its whole limit: no later communicator of this process makes one.
constinit std::atomic<bool> sockets_failed{false};

// Of the job, as far as it is known.
bool one_node() {
  const std::vector<int>& nodes = job().world_nodes;
  return !nodes.empty() && *std::ranges::max_element(nodes) == 0;
}

}  // namespace

// Which ranks are on other nodes is not known yet, so that all are counted.
void SetUp::listen_early(EarlyListener& mine) {
  if (!may_use(ChannelKind::ucx) || !may_use(ChannelKind::tcp) || one_node() || sockets_failed.load()) return;
  const Status listening = attempt([&]() -> Status {
    first_rail_ = first_ethernet_rail();
    if (!first_rail_) return {Code::unavailable, "tcp: the first rail is no Ethernet interface"};
    mine.network = first_rail_->network;
    return listen_for(sockets_, mine.entry, first_rail_->address, static_cast<std::size_t>(ranks_));
  });
  if (listening.ok()) return;
  debug("set-up: " + listening.message());
  mine.entry = {};
}

// The same rail first on all ranks. An address that two hosts have is of a network within each of them.
bool SetUp::sockets_reach_all(std::span<const Entry> entries) const {
  std::map<std::uint32_t, HostId> holders;
  return std::ranges::all_of(entries, [&](const Entry& entry) {
    return entry.listener.entry.endpoint.port != 0 && entry.listener.network == entries.front().listener.network &&
           holders.try_emplace(entry.listener.entry.endpoint.address, entry.location.host).first->second ==
               entry.location.host;
  });
}

// From the entries, which all ranks have: they decide alike.
void SetUp::take_listeners(std::span<const Entry> entries) {
  const bool networked = candidates_.has(ChannelKind::ucx);
  if (!networked || !sockets_reach_all(entries)) {
    if (networked) short_ = false;
    sockets_ = {};
    return;
  }
  candidates_.remove(ChannelKind::ucx);
  candidates_.add(ChannelKind::tcp);
  groups_.set_usual(ChannelKind::tcp, hierarchy_);
  sockets_.key = entries.front().listener.entry.key;
  for (const Entry& entry : entries) add_peer(sockets_, entry.listener.entry, entry.location.hostname);
}

// A rank without a segment takes part in the trial nevertheless: others would wait for its message to no end.
Status SetUp::attach_short(std::span<const Offer> offers, const Status& offered) {
  const Status reached = uses(ChannelKind::tcp) ? check_sockets() : Status();
  if (!offered.ok()) return offered;
  const Status taken = uses(ChannelKind::shm) ? take_segment(offers) : Status();
  return taken.ok() ? reached : taken;
}

Status SetUp::check_sockets() {
  short_channel_ = make_tcp_channel(
      std::move(sockets_.listener), std::move(sockets_.peers),
      {.rank = rank_, .key = sockets_.key, .rail = first_rail_->name, .bytes_sent = first_rail_->bytes_sent});
  const TrialPartners partners = trial_partners(hierarchy_, rank_);
  if (trial_succeeds(*short_channel_, oob(), partners, sockets_limit_ns)) return {};
  sockets_failed.store(true);
  return {Code::unavailable, "tcp: a trial message did not come through"};
}

// What other communicators have measured, so that a call goes the same way, and rounds alike, on all of them.
void SetUp::take_known_network() {
  if (hierarchy_.nodes() == 1) return;
  network_ = known_network_;
  if (hierarchy_.levels().front().kind != LevelKind::leaf_switch) network_.across_switches = 0;
}

// Where this does not work on all ranks, everything is set up.
Status SetUp::connect_short() {
  if (Status status = connect_channels(); !status.ok()) return status;
  if (!uses(ChannelKind::tcp)) sockets_ = {};
  Offer mine{};
  std::vector<Offer> offers;
  Status offered;
  if (uses(ChannelKind::shm))
    if (Status status = exchange_offers(mine, offers, offered); !status.ok()) return status;
  const Status attached = attempt([&] { return attach_short(offers, offered); });
  bool connected = attached.ok(), unused = true;
  if (!attached.ok()) debug("set-up for short calls: " + attached.message());
  if (Status met = lowest(connected, unused); !met.ok()) return met;
  if (connected) {
    sizes_ = {never, never};
    take_known_network();
    return {};
  }
  short_ = false;
  short_channel_.reset();
  sockets_ = {};
  segment_ = {};
  return {};
}

}  // namespace plait::runtime
