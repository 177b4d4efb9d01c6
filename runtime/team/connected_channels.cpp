#include "runtime/team/connected_channels.h"

#include <span>
#include <string>

#include "core/attempt.h"
#include "core/log.h"

namespace plait::runtime {
namespace {

// What every rank offers, each after a byte that says whether it has something to offer.
struct GatheredOffers {
  bool complete = true;
  std::vector<std::byte> offers;
};

std::string describe(ChannelKind kind, const Status& failure) {
  return "set-up: " + std::string(name(kind)) + ": " + failure.message();
}

Result<GatheredOffers> gather_offers(Connector& connector, Oob& oob, const Surroundings& surroundings) {
  const std::size_t bytes = connector.offer_bytes(), ranks = static_cast<std::size_t>(oob.ranks());
  std::vector<std::byte> mine(1 + bytes), all(mine.size() * ranks);
  GatheredOffers gathered;
  gathered.offers.reserve(bytes * ranks);
  const Status offered = attempt([&] { return connector.offer(surroundings, std::span(mine).subspan(1)); });
  if (!offered.ok()) debug(describe(connector.kind(), offered));
  mine.front() = std::byte{offered.ok()};
  if (Status met = oob.gather_all(mine.data(), mine.size(), all.data(), "exchange what a channel needs"); !met.ok())
    return met;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto one = std::span(all).subspan(rank * mine.size(), mine.size());
    gathered.complete &= one.front() != std::byte{0};
    gathered.offers.insert(gathered.offers.end(), one.begin() + 1, one.end());
  }
  return gathered;
}

Result<bool> all_are(bool well, Oob& oob) {
  const std::array<int, 1> mine = {well};
  std::array<int, 1> all = {0};
  if (Status met = reduce_all(oob, mine, all, Op::min, "agree on a channel"); !met.ok()) return met;
  return all.front() != 0;
}

}  // namespace

ConnectedChannels::ConnectedChannels(std::vector<std::unique_ptr<Connector>> connectors) {
  for (auto& connector : connectors) {
    Slot& slot = slots_[index_of(connector->kind())];
    slot.connector = std::move(connector);
  }
}

Result<bool> ConnectedChannels::connect(ChannelKind kind, Oob& oob, const Surroundings& surroundings) {
  Slot& slot = slots_[index_of(kind)];
  if (slot.channel != nullptr || slot.connector->offer_bytes() == 0) return true;
  const Result<GatheredOffers> gathered = gather_offers(*slot.connector, oob, surroundings);
  if (!gathered.ok()) return gathered.status();
  Result<bool> connected = gathered->complete;
  if (gathered->complete) {
    const Status opened = attempt([&]() -> Status {
      Result<std::unique_ptr<Channel>> made = slot.connector->open(surroundings, gathered->offers);
      if (made.ok()) slot.channel = std::move(*made);
      return made.status();
    });
    if (!opened.ok()) debug(describe(kind, opened));
    connected = all_are(opened.ok(), oob);
  }
  if (!connected.ok() || *connected) return connected;
  debug("set-up: " + std::string(name(kind)) + " does not connect all ranks that it should: left out");
  leave(kind);
  return false;
}

Result<std::unique_ptr<Channel>> ConnectedChannels::take(ChannelKind kind, const Surroundings& surroundings) {
  Slot& slot = slots_[index_of(kind)];
  if (slot.channel != nullptr) return std::move(slot.channel);
  return slot.connector->open(surroundings, {});
}

}  // namespace plait::runtime
