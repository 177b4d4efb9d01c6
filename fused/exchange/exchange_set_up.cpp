// How the ranks of an exchange find each other's memory, step by step; each step is one of all ranks.
#include <algorithm>
#include <utility>

#include "core/attempt.h"
#include "core/channel_kind.h"
#include "core/log.h"
#include "fused/exchange/exchange.h"

namespace plait::fused {
namespace {

// Where a rank's output lies, for those that can map its shared heap.
struct OutputOffer {
  SharedHeapOffer heap;
  std::uint64_t offset = 0;
  std::uint64_t named = 0;  // 1: it lies there
};

OutputOffer offer_of(const Output& output) {
  const auto offset = SharedHeap::offset_of(output.data, output.bytes);
  if (!offset) return {};
  return {.heap = SharedHeap::current_offer(), .offset = *offset, .named = 1};
}

// By rank, 1 where all ranks say so.
Status all_say(Oob& oob, std::vector<std::uint8_t>& mine, std::string_view what) {
  std::vector<std::uint8_t> all;
  const Status room = attempt([&]() -> Status {
    all.resize(mine.size());
    return {};
  });
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  const Status met = oob.reduce_all(mine.data(), all.data(), mine.size(), Element::u8, Op::min, what);
  if (met.ok()) mine.swap(all);
  return met;
}

}  // namespace

Result<std::unique_ptr<Exchange>> Exchange::make(Team* team, ExchangeRequest request) noexcept {
  std::unique_ptr<Exchange> made;
  const Status ready = attempt([&]() -> Status {
    made.reset(new Exchange(team, std::move(request)));
    made->keep_own();
    return {};
  });
  const Status all = team != nullptr ? team->oob->go_on_together(ready) : ready;
  if (!all.ok()) return all;
  if (Status status = attempt([&] { return made->connect(); }); !status.ok()) return status;
  return made;
}

// What this rank keeps of its own lies as if it came from another.
void Exchange::keep_own() {
  Owner& owner = owners_[index(rank_)];
  Source& source = sources_[index(rank_)];
  const Blocks& blocks = request_.incoming[index(rank_)];
  owner.notes = own_notes_.reserve(2 * aligned(request_.notes_to[index(rank_)]));
  source.notes = owner.notes;
  if (blocks.empty()) return;
  owner.places = source.places = packed(blocks, Packs::kept);
  own_flags_ = std::make_unique<std::atomic<std::uint32_t>[]>(request_.outgoing[index(rank_)].size());
  owner.flags = own_flags_.get();
  source.flags = own_flags_.get();
  owner.inbox_slices = own_kept_.reserve(std::max<std::uint64_t>(owner.places.back(), 1));
  source.slices = owner.inbox_slices;
}

// Throws nothing between two steps.
Status Exchange::connect() {
  owners_[index(rank_)].base = request_.output.data;
  if (team_ == nullptr) return {};
  Oob& oob = *team_->oob;
  std::vector<std::uint8_t> near, direct;
  const Status ready = attempt([&]() -> Status {
    near = ranks_that_share_memory();
    direct.assign(near.size(), 1);
    return {};
  });
  if (Status status = oob.go_on_together(ready); !status.ok()) return status;
  if (Status status = find_outputs(near, direct); !status.ok()) return status;
  const Result<bool> shared = share_inboxes(near, direct);
  if (!shared.ok()) return shared.status();
  const Status taken = attempt([&]() -> Status {
    if (!*shared) std::ranges::fill(near, std::uint8_t{0});
    take_messages(near);
    return {};
  });
  return oob.go_on_together(taken);
}

std::vector<std::uint8_t> Exchange::ranks_that_share_memory() const {
  std::vector<std::uint8_t> near(owners_.size());
  const Hierarchy& hierarchy = team_->planner.hierarchy();
  for (int rank = 0; rank < ranks_; ++rank)
    near[index(rank)] = rank != rank_ && hierarchy.node_of(rank) == hierarchy.node_of(rank_) &&
                        traits(team_->routes().between(rank_, rank)).segment;
  return near;
}

// `direct`, by rank, becomes whether its output is mapped by all that share memory with it, or is nobody else's affair.
Status Exchange::find_outputs(const std::vector<std::uint8_t>& near, std::vector<std::uint8_t>& direct) {
  std::vector<OutputOffer> offers;
  const Status room = attempt([&]() -> Status {
    offers.resize(owners_.size());
    return {};
  });
  Oob& oob = *team_->oob;
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  const OutputOffer mine = offer_of(request_.output);
  if (Status met = oob.gather_all(&mine, sizeof mine, offers.data(), "exchange where their outputs are"); !met.ok())
    return met;
  const Status found = attempt([&]() -> Status {
    direct[index(rank_)] = static_cast<std::uint8_t>(mine.named);
    for (std::size_t rank = 0; rank < near.size(); ++rank) {
      if (near[rank] == 0) continue;
      direct[rank] = 0;
      if (offers[rank].named == 0) continue;
      Result<PeerSharedHeap> heap = PeerSharedHeap::attach(offers[rank].heap);
      if (!heap.ok()) continue;
      // All outputs have the same pitch; how long this one is its owner knows.
      std::uint64_t bytes = 0;
      for (const Block& block : request_.outgoing[rank])
        if (!block.kept)
          bytes = std::max(bytes, block.offset + (block.rows - 1) * request_.output.pitch + block.row_bytes);
      std::byte* base = heap->at(offers[rank].offset, bytes);
      if (base == nullptr) continue;
      heap->ensure_mapped(offers[rank].offset, bytes);
      owners_[rank].base = base;
      owners_[rank].heap = std::move(*heap);
      direct[rank] = 1;
    }
    return {};
  });
  if (!found.ok()) std::ranges::fill(direct, std::uint8_t{0});
  return all_say(oob, direct, "agree on whose outputs are shared");
}

// False: some rank could not, and nobody uses them. The first such says why.
Result<bool> Exchange::share_inboxes(const std::vector<std::uint8_t>& near, const std::vector<std::uint8_t>& direct) {
  Oob& oob = *team_->oob;
  SegmentOffer offer;
  std::vector<SegmentOffer> offers;
  std::vector<InboxPart> parts;
  InboxShape shape;
  const bool any = std::ranges::find(near, std::uint8_t{1}) != near.end();
  const Status room = attempt([&]() -> Status {
    offers.resize(owners_.size());
    parts.resize(owners_.size() * owners_.size());
    shape = inbox_shape(request_.incoming, request_.notes_from, near, direct[index(rank_)] == 0);
    return {};
  });
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  Status shared = attempt([&]() -> Status {
    if (!any) return {};
    Result<SharedSegment> memory = SharedSegment::create(shape.bytes);
    if (!memory.ok()) return memory.status();
    inbox_ = Inbox(std::move(*memory));
    offer = inbox_.offer();
    return {};
  });
  if (Status met = oob.gather_all(&offer, sizeof offer, offers.data(), "exchange their inboxes"); !met.ok()) return met;
  if (Status met = oob.gather_all(shape.parts.data(), shape.parts.size() * sizeof(InboxPart), parts.data(),
                                  "exchange what is where in their inboxes");
      !met.ok())
    return met;
  if (shared.ok()) shared = attempt([&] { return attach_inboxes(near, direct, offers, parts); });
  const std::array<int, 1> mine = {shared.ok() ? ranks_ : rank_};
  std::array<int, 1> all = {0};
  if (Status met = reduce_all(oob, mine, all, Op::min, "share their inboxes"); !met.ok()) return met;
  if (all[0] == rank_) warn("a fused plan's slices go by messages, which is slower: " + shared.message());
  if (inbox_.exists()) inbox_.all_attached();
  const bool all_could = all[0] == ranks_;
  if (!all_could) forget_inboxes(near);
  return all_could;
}

// Those of some ranks may be attached.
void Exchange::forget_inboxes(const std::vector<std::uint8_t>& near) {
  for (std::size_t rank = 0; rank < near.size(); ++rank) {
    if (near[rank] == 0) continue;
    Owner& owner = owners_[rank];
    owner.flags = nullptr;
    owner.notes = owner.inbox_slices = nullptr;
    owner.inbox = {};
    Source& source = sources_[rank];
    source.flags = nullptr;
    source.notes = source.slices = nullptr;
  }
  inbox_ = {};
}

Status Exchange::attach_inboxes(const std::vector<std::uint8_t>& near, const std::vector<std::uint8_t>& direct,
                                std::span<const SegmentOffer> offers, std::span<const InboxPart> parts) {
  const auto part_of = [&](std::size_t inbox, std::size_t source) { return parts[inbox * near.size() + source]; };
  for (std::size_t rank = 0; rank < near.size(); ++rank) {
    if (near[rank] == 0) continue;
    Result<SharedSegment> memory = SharedSegment::attach(offers[rank]);
    if (!memory.ok()) return memory.status();
    memory->close_descriptor();
    Owner& owner = owners_[rank];
    owner.inbox = Inbox(std::move(*memory));
    owner.reach = direct[rank] != 0 ? Reach::direct : Reach::staged;
    const InboxPart& theirs = part_of(rank, index(rank_));
    owner.flags = owner.inbox.flags(theirs);
    owner.notes = owner.inbox.notes(theirs);
    owner.inbox_slices = owner.inbox.slices(theirs);
    owner.places = packed(request_.outgoing[rank], owner.reach == Reach::staged ? Packs::all : Packs::kept);
    Source& source = sources_[rank];
    const InboxPart& own = part_of(index(rank_), rank);
    source.near = true;
    source.flags = inbox_.flags(own);
    source.staged = direct[index(rank_)] == 0;
    source.notes = inbox_.notes(own);
    source.slices = inbox_.slices(own);
    source.places = packed(request_.incoming[rank], source.staged ? Packs::all : Packs::kept);
  }
  return {};
}

// For all that share no memory, by what connects the pair.
void Exchange::take_messages(const std::vector<std::uint8_t>& near) {
  std::vector<Messages::Partner> partners;
  for (int rank = 0; rank < ranks_; ++rank) {
    Owner& owner = owners_[index(rank)];
    Source& source = sources_[index(rank)];
    if (source.staged && near[index(rank)] != 0) {
      staged_sources_.push_back(rank);
      staged_slices_ += request_.incoming[index(rank)].size();
    }
    if (rank == rank_ || near[index(rank)] != 0) continue;
    source.near = source.staged = false;
    owner.reach = Reach::messages;
    owner.lane = partners.size();
    partners.push_back({.rank = rank,
                        .channel = team_->connections.of(team_->routes().between(rank_, rank)),
                        .outgoing = &request_.outgoing[index(rank)],
                        .incoming = &request_.incoming[index(rank)],
                        .note_to = request_.notes_to[index(rank)],
                        .note_from = request_.notes_from[index(rank)],
                        .varies = request_.listener != nullptr});
  }
  if (!partners.empty()) messages_ = std::make_unique<Messages>(partners, request_.output);
}

}  // namespace plait::fused
