// How the ranks of a plan on devices find each other's memory, step by step; each step is one of all ranks.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/attempt.h"
#include "core/log.h"
#include "fused/device/device_run.h"
#include "fused/device/plan_data.h"

namespace plait::fused {

DeviceRun::DeviceRun(Team* team, Oob& oob, DeviceWork& work, DeviceRunRequest request)
    : team_(team), work_(work), request_(std::move(request)), rank_(oob.rank()), ranks_(oob.ranks()) {
  outputs_.resize(index(ranks_));
  their_parts_.resize(index(ranks_));
  seen_.resize(index(ranks_));
}

// Nothing goes through the processors' memory but words: slices of no bytes.
ExchangeRequest DeviceRun::flags_alone() {
  const auto words = [](std::size_t count) { return Blocks(count, Block{.kept = true}); };
  const std::size_t shares = request_.parts_to == PartsTo::all ? 1 : 0;
  ExchangeRequest request = std::move(request_.words);
  for (int other = 0; other < ranks_; ++other) {
    const bool self = other == rank_;
    request.outgoing.push_back(words(self ? 0 : request_.panes[index(other)].slices.size() + shares));
    request.incoming.push_back(words(self ? 0 : request_.coming[index(other)] + shares));
  }
  return request;
}

Result<std::unique_ptr<DeviceRun>> DeviceRun::make(Team* team, Oob& oob, DeviceWork& work, DeviceRunRequest request) {
  std::unique_ptr<DeviceRun> made;
  ExchangeRequest flags;
  std::vector<Offer> offers;
  const Status ready = attempt([&]() -> Status {
    made.reset(new DeviceRun(team, oob, work, std::move(request)));
    flags = made->flags_alone();
    offers.resize(index(made->ranks_));
    return {};
  });
  if (Status status = oob.go_on_together(ready); !status.ok()) return status;
  Result<std::unique_ptr<Exchange>> exchange = Exchange::make(team, std::move(flags));
  if (!exchange.ok()) return exchange.status();
  made->exchange_ = std::move(*exchange);
  Offer mine;
  Status able = attempt([&] { return made->prepare_own(mine); });
  mine.able = able.ok() ? 1 : 0;
  if (Status met = oob.gather_all(&mine, sizeof mine, offers.data(), "exchange where their devices' memory is");
      !met.ok())
    return met;
  if (able.ok()) able = attempt([&] { return made->reach_all(offers); });
  const Result<bool> all = made->all_can(oob, able);
  if (!all.ok()) return all.status();
  if (!*all) made = nullptr;
  return made;
}

// Whether all can; the user hears of it where this rank cannot.
Result<bool> DeviceRun::all_can(Oob& oob, const Status& mine) {
  if (!mine.ok()) info("a fused plan's data go through the processor's memory: " + mine.message());
  const std::array<std::uint8_t, 1> can = {static_cast<std::uint8_t>(mine.ok() ? 1 : 0)};
  std::array<std::uint8_t, 1> all = {0};
  if (Status met = reduce_all(oob, can, all, Op::min, "agree on whether devices compute"); !met.ok()) return met;
  return all[0] != 0;
}

// What this rank has for itself and for the others.
Status DeviceRun::prepare_own(Offer& offer) {
  offer.process = process_number();
  if (!computes()) {
    const bool takes_part = std::ranges::any_of(request_.panes, [](const Pane& pane) { return !pane.slices.empty(); });
    return takes_part || request_.part_bytes != 0 ? Status(Code::unavailable, "this rank has no data on a device")
                                                  : Status();
  }
  const DeviceGround& ground = request_.ground;
  offer.device = ground.driver->device_number(ground.memory);
  Result<std::unique_ptr<DeviceStream>> stream = ground.driver->make_stream(ground.memory);
  if (!stream.ok()) return stream.status();
  stream_ = std::move(*stream);
  for (std::unique_ptr<DeviceEvent>* event : {&program_, &end_}) {
    Result<std::unique_ptr<DeviceEvent>> one = ground.driver->make_event(ground.memory);
    if (!one.ok()) return one.status();
    *event = std::move(*one);
  }
  if (request_.part_bytes > most_given_bytes / index(ranks_))
    return {Code::unsupported, "the parts of all ranks are more than any memory has"};
  Result<DeviceBytes> parts = DeviceBytes::make(ground, request_.part_bytes * part_count());
  if (!parts.ok()) return parts.status();
  parts_ = std::move(*parts);
  if (Status status = work_.prepare(ground); !status.ok()) return status;
  if (ranks_ == 1) return {};
  std::byte* const output = request_.parts_to != PartsTo::owner ? request_.output : nullptr;
  struct Side {
    const std::byte* memory;
    std::uint64_t bytes;
    SharedPlace* place;
  };
  for (const auto& [memory, bytes, place] :
       {Side{output, request_.output_bytes, &offer.output}, {parts_.data(), parts_.bytes(), &offer.parts}}) {
    if (memory == nullptr) continue;
    const Result<SharedPlace> shared = exports_.place_of(*ground.driver, memory, bytes);
    if (!shared.ok()) return shared.status();
    *place = *shared;
  }
  return {};
}

// Ranks that are threads of one process have one driver, and its addresses.
Result<std::byte*> DeviceRun::reach(const Offer& offer, const SharedPlace& place) {
  const DeviceGround& ground = request_.ground;
  if (offer.process != process_number()) return maps_.find(offer.process, place, *ground.driver, ground.memory);
  auto* address = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(place.address));
  if (ground.driver->memory_at(address).context == ground.memory.context) return address;
  return Status(Code::unsupported, "device memory: another device's in the same process");
}

// What this rank's device stores to. It stays mapped as long as the plan is there.
Status DeviceRun::reach_all(const std::vector<Offer>& offers) {
  if (std::ranges::any_of(offers, [](const Offer& one) { return one.able == 0; }))
    return {Code::unavailable, "another rank's device cannot"};
  for (std::size_t one = 1; one < offers.size(); ++one)
    for (std::size_t other = 0; other < one; ++other)
      shares_device_ = shares_device_ || offers[one].device == offers[other].device;
  outputs_[index(rank_)] = request_.output;
  if (request_.has_own_part) their_parts_[index(rank_)] = parts_.data() + place_of(rank_, rank_) * request_.part_bytes;
  for (int owner = 0; owner < ranks_ && computes(); ++owner) {
    if (owner == rank_) continue;
    const Offer& offer = offers[index(owner)];
    const bool has_slices = !request_.panes[index(owner)].slices.empty();
    if (takes_parts() ? request_.parts_to == PartsTo::all : has_slices) {
      const Result<std::byte*> output = reach(offer, offer.output);
      if (!output.ok()) return output.status();
      outputs_[index(owner)] = *output;
    }
    if (!takes_parts() || !has_slices || offer.parts.allocation == 0) continue;
    const Result<std::byte*> parts = reach(offer, offer.parts);
    if (!parts.ok()) return parts.status();
    their_parts_[index(owner)] = *parts + place_of(rank_, owner) * request_.part_bytes_of[index(owner)];
  }
  if (takes_parts()) {
    for (int source = 0; source < ranks_; ++source)
      sum_.parts.push_back(source == rank_ && !request_.has_own_part
                               ? nullptr
                               : parts_.data() + place_of(source, rank_) * request_.part_bytes);
    sum_.outputs = outputs_;
  }
  if (Status status = pin_inboxes(); !status.ok()) return status;
  return lay_out_tiles();
}

Status DeviceRun::pin_inbox(std::span<std::byte> inbox) {
  if (inbox.empty()) return {Code::unavailable, "ranks that share no memory"};
  Result<Pin> pin = Pin::make(*request_.ground.driver, inbox.data(), inbox.size());
  if (!pin.ok()) return pin.status();
  pins_.push_back(std::move(*pin));
  return {};
}

// Where the flags are that this rank's device sets, and waits for.
Status DeviceRun::pin_inboxes() {
  for (int owner = 0; owner < ranks_ && computes(); ++owner)
    if (owner != rank_ && !request_.panes[index(owner)].slices.empty())
      if (Status status = pin_inbox(exchange_->inbox(owner)); !status.ok()) return status;
  const bool waits = computes() && ranks_ > 1 && takes_parts() && work_.follows() != DeviceWork::Follows::behind &&
                     request_.part_bytes != 0;
  return waits ? pin_inbox(exchange_->own_inbox()) : Status();
}

// For a kernel that follows what comes.
Status DeviceRun::prepare_following(const std::vector<DeviceTile>& tiles) {
  using Follows = DeviceWork::Follows;
  follows_ = takes_parts() && work_.follows() != Follows::behind && request_.part_bytes != 0;
  if (!follows_) return {};
  // Short where others need the device for what is waited for; else what a late rank is given. Not measured.
  constexpr std::uint64_t on_shared_ns = 100'000, on_own_ns = 5'000'000;
  const Result<std::byte*> missed = missed_.reserve(request_.ground, sizeof(std::uint32_t));
  if (!missed.ok()) return missed.status();
  std::memset(*missed, 0, sizeof(std::uint32_t));
  std::vector<const std::uint32_t*> flags;
  for (int source = 0; source < ranks_; ++source)
    flags.push_back(source == rank_ ? reinterpret_cast<const std::uint32_t*>(own_flags_.data())
                                    : reinterpret_cast<const std::uint32_t*>(exchange_->flags_from(source)));
  const DeviceArrivals arrivals{.parts = sum_.parts,
                                .flags = flags,
                                .missed = reinterpret_cast<std::uint32_t*>(*missed),
                                .most_wait_ns = shares_device_ ? on_shared_ns : on_own_ns};
  return work_.follows() == Follows::in_shares ? prepare_shares(tiles, arrivals) : work_.expect(arrivals);
}

// What the kernel needs that adds the parts of this rank's own tiles, behind all tiles.
Status DeviceRun::prepare_shares(const std::vector<DeviceTile>& tiles, const DeviceArrivals& arrivals) {
  const auto is_own = [&](const DeviceTile& tile) {
    const std::uint32_t slices = static_cast<std::uint32_t>(request_.panes[index(rank_)].slices.size());
    return tile.slice - first_own_slice_ < slices;
  };
  const auto first = std::ranges::find_if(tiles, is_own);
  std::vector<std::byte*> outputs;
  for (std::byte* output : outputs_)
    if (output != nullptr) outputs.push_back(output);
  Status status = flag_lists_.take_list(request_.ground, arrivals.flags);
  if (status.ok()) status = output_list_.take_list(request_.ground, outputs);
  shares_ = {.flags = reinterpret_cast<const std::uint32_t* const*>(flag_lists_.data()),
             .outputs = reinterpret_cast<std::byte* const*>(output_list_.data()),
             .missed = arrivals.missed,
             .part_bytes = request_.part_bytes,
             .output_pitch = work_.output_pitch(),
             .most_wait_ns = arrivals.most_wait_ns,
             .first = static_cast<std::uint32_t>(first - tiles.begin()),
             .count = static_cast<std::uint32_t>(std::ranges::count_if(tiles, is_own)),
             .first_slice = first_own_slice_,
             .sources = static_cast<std::uint32_t>(ranks_),
             .self = static_cast<std::uint32_t>(rank_),
             .output_count = static_cast<std::uint32_t>(outputs.size())};
  return status;
}

// In the order in which they leave.
Status DeviceRun::lay_out_tiles() {
  std::vector<DeviceTile> tiles;
  std::vector<DeviceSlice> slices;
  // Its own slices' flags, for the kernel alone.
  if (computes() && takes_parts() && work_.follows() == DeviceWork::Follows::in_shares) {
    const std::vector<std::uint32_t> none(request_.panes[index(rank_)].slices.size());
    if (Status status = own_flags_.take_list(request_.ground, none); !status.ok()) return status;
  }
  for (const int owner : request_.order) {
    const Pane& pane = request_.panes[index(owner)];
    const auto first = static_cast<std::uint32_t>(slices.size());
    if (owner == rank_) first_own_slice_ = first;
    std::byte* base = takes_parts() ? their_parts_[index(owner)] : outputs_[index(owner)];
    for (const Slice& slice : pane.slices) {
      const std::size_t number = slices.size() - first;
      auto* flags = owner == rank_ ? reinterpret_cast<std::uint32_t*>(own_flags_.data())
                                   : reinterpret_cast<std::uint32_t*>(exchange_->flags(owner));
      slices.push_back({.flag = flags != nullptr ? flags + number : nullptr, .tiles = slice.tiles});
    }
    for (const Tile& tile : pane.tiles) {
      DeviceTile placed = work_.place(owner, pane.slices[tile.slice], tile, base);
      placed.slice = first + tile.slice;
      aligned_ = aligned_ && begins_a_vector(placed.target) && placed.pitch % vector_bytes == 0;
      tiles.push_back(placed);
    }
  }
  tile_count_ = tiles.size();
  slice_count_ = slices.size();
  if (!computes()) return {};
  const std::vector<std::uint32_t> zeros(tile_counters + slices.size());
  Status status = tiles_.take_list(request_.ground, tiles);
  if (status.ok()) status = slices_.take_list(request_.ground, slices);
  if (status.ok()) status = counters_.take_list(request_.ground, zeros);
  if (status.ok()) status = prepare_following(tiles);
  return status.ok() && request_.varies ? reserve_for_runs(slices) : status;
}

// For tiles that vary.
Status DeviceRun::reserve_for_runs(const std::vector<DeviceSlice>& slices) {
  constexpr std::uint64_t most = std::uint64_t{1} << 31;
  if (request_.most_tiles == 0) return {};
  if (request_.most_tiles > most) return {Code::unsupported, "more tiles than a device counts"};
  const std::size_t bytes = request_.most_tiles * sizeof(DeviceTile);
  cut_slices_ = slices;
  cut_tiles_.reserve(request_.most_tiles);
  Status status = sent_tiles_.reserve(request_.ground, bytes).status();
  if (status.ok()) status = sent_slices_.reserve(request_.ground, slices.size() * sizeof(DeviceSlice)).status();
  if (!status.ok()) return status;
  Result<DeviceBytes> tiles = DeviceBytes::make(request_.ground, bytes);
  if (tiles.ok()) tiles_ = std::move(*tiles);
  return tiles.status();
}

}  // namespace plait::fused
