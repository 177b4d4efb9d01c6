// The part of the set-up that decides which channels connect the ranks, and how fast the network is.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/units.h"
#include "runtime/job/job.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "runtime/team/connectors.h"
#include "runtime/team/set_up_steps.h"

namespace plait::runtime {

Surroundings SetUp::surroundings() const {
  return {.rank = rank_, .hierarchy = hierarchy_, .locations = locations_, .token = token_};
}

// Of a channel that this set-up can connect, by its connector or by steps of its own.
void SetUp::find_groups(ChannelKind kind) {
  const Connector* connector = registered_.connector(kind);
  const bool steps_here = kind == ChannelKind::shm || kind == ChannelKind::ucx;
  if (connector == nullptr && !steps_here) return groups_.set(kind, {});
  std::optional<std::vector<int>> own;
  if (connector != nullptr) own = connector->groups(surroundings());
  if (own)
    groups_.set(kind, std::move(*own));
  else
    groups_.set_usual(kind, hierarchy_);
}

// Whether a rank need not be told by all others what they are reached by.
bool SetUp::needs_no_table(ChannelKind kind) const {
  const Connector* connector = registered_.connector(kind);
  return connector != nullptr ? connector->offer_bytes() == 0 : kind == ChannelKind::shm;
}

// Shared memory that does not work fails the set-up: what it connects needs nothing else. Sockets come with ucx, or in
// its place.
Status SetUp::choose_channels() {
  candidates_ = used_ = {};
  registered_ = ConnectedChannels(make_connectors(oob()));
  ChannelSet certain;
  for (const ChannelKind kind : all_channel_kinds) {
    if (!may_use(kind) || !traits(kind).messages || !traits(kind).any_length || (by_node_ && !needs_no_table(kind)))
      continue;
    find_groups(kind);
    if (!groups_.adds(kind, certain)) continue;
    candidates_.add(kind);
    if (kind == ChannelKind::shm) certain.add(kind);
  }
  if (!groups_.connecting_all(candidates_))
    return {Code::unsupported, "PLAIT_CHANNELS names no channel between the ranks"};
  if (candidates_.has(ChannelKind::shm) && !affordable_)
    return {Code::unavailable, "enough shared memory is in use by other communicators"};
  return {};
}

// The nearest first, each that connects ranks which no nearer one does.
Status SetUp::connect_channels() {
  used_ = {};
  Status cause(Code::unavailable, "no channel connects the ranks");
  for (const ChannelKind kind : all_channel_kinds) {
    if (!candidates_.has(kind) || !groups_.adds(kind, used_)) continue;
    const Result<bool> connected = connect(kind, cause);
    if (!connected.ok()) return connected.status();
    if (*connected)
      used_.add(kind);
    else
      candidates_.remove(kind);
  }
  return groups_.connecting_all(used_) ? Status() : cause;
}

// False on all ranks where it does not work on some; of what is asked for by name, `cause` says why then. Shared memory
// and the sockets of short calls have steps of their own later on.
Result<bool> SetUp::connect(ChannelKind kind, Status& cause) {
  if (registered_.connector(kind) != nullptr) return registered_.connect(kind, oob(), surroundings());
  if (kind != ChannelKind::ucx || rails_) return true;
  cause = connect_rails();
  return cause.ok() || cause.code() == Code::unavailable ? Result<bool>(cause.ok()) : cause;
}

Status SetUp::look_at_network() {
  if (Status status = connect_channels(); !status.ok()) return status;
  const bool several = hierarchy_.nodes() > 1;
  if (several)
    if (Status status = measure_network(); !status.ok()) return status;
  if (rails_ && !several)
    if (Status status = rails_->measure_shares(hierarchy_); !status.ok()) return status;
  return rails_ && may_use(ChannelKind::tcp) ? open_listeners() : Status();
}

// Of what connects the nodes; none: there is nothing to measure by.
std::optional<RateMeter> SetUp::meter() {
  if (rails_) return rails_->meter();
  if (Channel* beyond = registered_.opened(*groups_.connecting_all(used_))) return meter_of(*beyond);
  if (HostMessages* messages = oob().messages()) return messages->meter();
  return {};
}

Status SetUp::measure_network() {
  while (const std::optional<RateMeter> by = meter()) {
    Result<NetworkRates> measured = network_rates(oob(), hierarchy_, *by, known_network_);
    if (measured.ok() && rails_)
      if (Status shares = rails_->measure_shares(hierarchy_); !shares.ok()) measured = shares;
    if (measured.ok()) {
      network_ = *measured;
      debug("set-up: between nodes a message takes " +
            (network_.way > 0 ? format_seconds(network_.way) : std::string("less than 1 ms")) + ", 1 MiB of bytes " +
            format_seconds(network_.node * (1 << 20)));
      return {};
    }
    if (measured.status().code() != Code::unavailable || !leave_beyond()) return measured.status();
    if (Status status = connect_channels(); !status.ok()) return status;
  }
  return {};
}

// Connections are only to ranks that shared memory does not reach.
Status SetUp::open_listeners() {
  const std::size_t near = uses(ChannelKind::shm) ? neighbours_.size() : 1;
  Result<Sockets> opened = open_sockets(oob(), rank_, static_cast<std::size_t>(ranks_) - near, *rails_);
  if (!opened.ok()) return opened.status();
  sockets_ = std::move(*opened);
  return {};
}

OwnRails& SetUp::own_rails() const { return request_.rails != nullptr ? request_.rails->get() : process_rails(); }

Status SetUp::connect_rails() {
  Result<RailNetwork> connected = RailNetwork::connect(oob(), own_rails(), hierarchy_, locations_);
  if (connected.ok()) {
    rails_ = std::move(*connected);
    debug("set-up: rails " + rails_->names());
    return {};
  }
  debug("set-up: " + connected.status().message());
  if (connected.status().code() == Code::peer_failed) oob().abandon();  // leave_trials()
  return connected.status();
}

// What connects the nodes has broken since its check. False where there is nothing else.
bool SetUp::leave_beyond() {
  const ChannelKind beyond = *groups_.connecting_all(used_);
  ChannelSet others = candidates_;
  others.remove(beyond);
  if (!groups_.connecting_all(others)) return false;
  if (job().first_rank)
    warn(std::string(name(beyond)) + ": the rates of the " + (rails_ ? "rails " + rails_->names() : "network") +
         " cannot be measured: left out");
  forget_network_rates();
  known_network_ = {};
  rails_.reset();
  registered_.leave(beyond);
  candidates_ = others;
  return true;
}

}  // namespace plait::runtime
