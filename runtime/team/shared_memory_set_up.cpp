// The part of the set-up that makes the memory which the ranks of a node share, and learns from which size on private
// data goes without it.

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/attempt.h"
#include "core/log.h"
#include "runtime/job/job.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "runtime/record/node_counts.h"
#include "runtime/record/report_rows.h"
#include "runtime/team/segment_share.h"
#include "runtime/team/set_up_steps.h"
#include "runtime/team/single_copy.h"
#include "tl/shm/copy_probe.h"
#include "tl/shm/shared_heap_buffers.h"
#include "tl/shm/shm_channel.h"
#include "tl/shm/xpmem_buffers.h"
#include "tl/trace.h"
#include "topo/crowding.h"

namespace plait::runtime {

// What the others measure with, and reach this process's memory by.
void SetUp::offer_single_copy(Offer& offer) {
  const std::string& wanted = job().config.single_copy;
  if ((wanted == "auto" || wanted == "xpmem") && system_xpmem().ok()) {
    const Result<std::int64_t>& segment = own_xpmem_segment(*system_xpmem());
    if (segment.ok()) offer.xpmem_segment = *segment;
  }
  if (!offer.known.known() && job().config.single_copy != "none" && measures_single_copy()) {
    probe_source_ = std::make_unique<ProbeSource>();
    offer.probe_address = reinterpret_cast<std::uintptr_t>(probe_source_->data());
  }
}

// Of the segment that this rank makes for its node, the sizes to try. What pays where each rank has a core is much
// where there are many communicators.
std::vector<std::size_t> SetUp::segment_sizes() const {
  constexpr std::size_t much = std::size_t{128} << 20;
  const int ranks = static_cast<int>(neighbours_.size());
  if (job().config.segment_bytes != 0) return {job().config.segment_bytes};
  if (short_) return {SharedSegment::least_bytes(ranks, short_call_bytes)};
  const std::size_t usual = SharedSegment::default_bytes(ranks), roomy = SharedSegment::roomy_bytes(ranks);
  if (roomy == usual || crowding_ > 1 || mapped_segment_bytes() + roomy > much) return {usual};
  return {roomy, usual};
}

Status SetUp::offer_segment(Offer& offer) {
  offer.process = static_cast<std::int32_t>(getpid());
  if (neighbours_.size() < 2) return {};
  if (!short_) offer_single_copy(offer);
  if (neighbours_.front() != rank_) return {};
  std::vector<int> numa;
  for (const Location& neighbour : near_) numa.push_back(neighbour.numa);
  Status failure;
  for (const std::size_t bytes : segment_sizes()) {
    if (bytes > job().most_mapped_bytes && job().config.segment_bytes == 0) {  // it grows with the square of the ranks
      failure = {Code::unavailable, "shm: the segment of " + std::to_string(numa.size()) + " ranks is too large"};
      continue;
    }
    Result<SharedSegment> made = SharedSegment::create(bytes, numa);
    failure = made.status();
    if (!made.ok()) continue;
    segment_ = std::move(*made);
    offer.segment = segment_.offer();
    break;
  }
  return failure;
}

Status SetUp::take_segment(std::span<const Offer> offers) {
  if (neighbours_.size() < 2 || neighbours_.front() == rank_) return {};
  const Offer& offer = offers.front();
  if (offer.segment.bytes == 0) return {Code::unavailable, "the node's first rank has no segment"};
  Result<SharedSegment> attached = SharedSegment::attach(offer.segment);
  if (!attached.ok()) return attached.status();
  segment_ = std::move(*attached);
  return {};
}

// Each rank reads the node's first one and is read by it: the same kernel, user and limits stand between all others.
bool SetUp::single_copy_works(std::span<const Offer> offers) const {
  const std::string& wanted = job().config.single_copy;
  if (wanted == "none" || wanted == "xpmem") return false;
  const auto readable = [](const Offer& offer) {
    return can_read_process(offer.process, reinterpret_cast<const void*>(offer.word_address), offer.word);
  };
  if (neighbours_.front() != rank_) return readable(offers.front());
  return std::all_of(offers.begin() + 1, offers.end(), readable);
}

std::size_t SetUp::own_index() const {
  return static_cast<std::size_t>(std::ranges::find(neighbours_, rank_) - neighbours_.begin());
}

// From what all ranks have in common: they decide alike. One measurement serves all later communicators of its ranks.
Status SetUp::choose_single_copy(std::span<const Offer> offers, bool kernel) {
  const Config& config = job().config;
  const bool mapped = reachable_;
  sizes_ = forced_single_copy(config, kernel, mapped);
  if (!sizes_.known()) {
    SingleCopySizes measured = known_sizes_;
    if (!measured.known()) {
      const Result<SingleCopySizes> agreed = measure_single_copy(offers, kernel);
      if (!agreed.ok()) return agreed.status();
      measured = *agreed;
    }
    remember_single_copy(measured);
    sizes_ = allowed_single_copy(measured, config, kernel, mapped);
  }
  if (sizes_.mapped_from != never && xpmem_ != nullptr) {
    xpmem_->set_least_bytes(sizes_.mapped_from);
    connections_.buffers = join_buffers(std::move(connections_.buffers), std::move(xpmem_));
  }
  xpmem_.reset();
  note_single_copy(std::min(sizes_.kernel_from, sizes_.pair_from), sizes_.mapped_from);
  debug("set-up: single copies by the kernel " + size_text(sizes_.kernel_from) + ", of what two ranks move " +
        size_text(sizes_.pair_from) + ", by XPMEM " + size_text(sizes_.mapped_from));
  return {};
}

// The ranks of a node measure in pairs, at the same time.
Result<SingleCopySizes> SetUp::measure_single_copy(std::span<const Offer> offers, bool kernel) {
  if (Status met = oob().meet("measure single copies"); !met.ok()) return met;
  SingleCopySizes mine;
  const Status measured = attempt([&]() -> Status {
    mine = own_measurement(offers, kernel);
    return {};
  });
  if (!measured.ok()) mine = no_single_copy;
  return agree_on_single_copy(oob(), mine);
}

// Not where this rank has no partner, or its turn on a core would only make others wait.
bool SetUp::measures_single_copy() const {
  const std::size_t self = own_index(), partner = self ^ 1;
  const auto at_once = static_cast<std::size_t>(std::max(location().cores_allowed, 2));
  return partner < neighbours_.size() && self / 2 < at_once / 2;
}

// Not known where this rank does not measure.
SingleCopySizes SetUp::own_measurement(std::span<const Offer> offers, bool kernel) const {
  if (!measures_single_copy()) return {};
  const std::size_t self = own_index(), partner = self ^ 1;
  const Offer& theirs = offers[partner];
  const auto stages = [this](std::size_t local) {
    return stage_memory(segment_, static_cast<int>(neighbours_.size()), static_cast<int>(local));
  };
  if (probe_source_ == nullptr || theirs.probe_address == 0 || stages(self).empty()) return {};
  const std::byte* mapped =
      xpmem_ == nullptr ? nullptr : xpmem_->find(partner, theirs.probe_address, probed_bytes.back());
  const Result<MeasuredCopies> copies = measure_copies({.source = probe_source_->data(),
                                                        .own_stages = stages(self).data(),
                                                        .peer_stages = stages(partner).data(),
                                                        .stages_bytes = stages(self).size(),
                                                        .peer = {theirs.process, neighbours_[partner]},
                                                        .peer_source = theirs.probe_address,
                                                        .kernel = kernel,
                                                        .peer_mapped = mapped});
  if (!copies.ok()) return no_single_copy;
  return sizes_of(*copies);
}

Status SetUp::open_shm(bool single_copy) {
  if (neighbours_.size() < 2) return {};
  segment_.close_descriptor();
  std::vector<ShmPeer> peers;
  for (std::size_t local = 0; local < neighbours_.size(); ++local)
    peers.push_back({neighbours_[local], near_[local].process});
  connections_.share = SegmentShare(segment_.bytes(), own_index() == 0);
  Result<std::unique_ptr<Channel>> channel =
      make_shm_channel(std::move(segment_), peers, static_cast<int>(own_index()),
                       {.single_copy = single_copy,
                        .single_copy_threshold = job().config.single_copy_threshold,
                        .crowded = crowding_ > 1,
                        .collective_single_copy_from = sizes_.kernel_from,
                        .pair_single_copy_from = sizes_.pair_from,
                        .buffers = connections_.buffers.get(),
                        .ways = &shm_collective_ways()});
  if (!channel.ok()) return channel.status();
  connections_.take(std::move(*channel));
  return {};
}

// On all ranks or on none, because the way of a shared-memory collective depends on it.
Status SetUp::share_buffers(std::span<const Offer> offers) {
  const Status mapped = attempt([&]() -> Status {
    if (neighbours_.size() < 2) return {};
    std::vector<SharedHeapOffer> shared_heaps;
    for (const Offer& offer : offers) shared_heaps.push_back(offer.shared_heap);
    auto made = make_shared_heap_buffers(shared_heaps, own_index());
    if (made.ok()) connections_.buffers = std::move(*made);
    return made.status();
  });
  const Status attached = attempt([&] { return attach_peers(offers); });
  bool usable = mapped.ok(), reachable = attached.ok();
  if (!usable) debug("set-up: " + mapped.message());
  if (!reachable) debug("set-up: " + attached.message());
  if (Status met = lowest(usable, reachable); !met.ok()) return met;
  if (!usable) connections_.buffers.reset();
  if (!reachable) xpmem_.reset();
  reachable_ = reachable;
  return {};
}

// Through XPMEM. It counts only where a word of every neighbour's memory is found.
Status SetUp::attach_peers(std::span<const Offer> offers) {
  const std::string& wanted = job().config.single_copy;
  if (wanted != "auto" && wanted != "xpmem") return {Code::unavailable, "xpmem: not wanted"};
  if (neighbours_.size() < 2) return {};
  const Result<XpmemLibrary>& library = system_xpmem();
  if (!library.ok()) return library.status();
  std::vector<std::int64_t> segments;
  for (const Offer& offer : offers) segments.push_back(offer.xpmem_segment);
  if (std::ranges::count(segments, 0) > 0) return {Code::unavailable, "xpmem: a rank of this node has no segment"};
  auto made = XpmemBuffers::connect(*library, segments, own_index());
  if (!made.ok()) return made.status();
  xpmem_ = std::move(*made);
  for (std::size_t peer = 0; peer < neighbours_.size(); ++peer) {
    if (peer == own_index()) continue;
    const Offer& offer = offers[peer];
    const std::byte* word = xpmem_->find(peer, offer.word_address, sizeof offer.word);
    if (word == nullptr || std::memcmp(word, &offer.word, sizeof offer.word) != 0)
      return {Code::unavailable, "xpmem: the memory of rank " + std::to_string(neighbours_[peer]) + " is not reached"};
  }
  return {};
}

// Precondition: all ranks come here, those that are alone on their node as well, because all agree. `offered` is what
// became of this rank's own part. `offers` are those of the node's ranks.
Status SetUp::exchange_offers(Offer& mine, std::vector<Offer>& offers, Status& offered) {
  constexpr std::string_view what = "exchange their segments";
  offered = attempt([&] { return offer_segment(mine); });
  std::vector<Offer> told(node_ == nullptr ? static_cast<std::size_t>(ranks_) : neighbours_.size());
  Oob& all = node_ == nullptr ? oob() : *node_;
  if (Status met = all.gather_all(&mine, sizeof mine, told.data(), what); !met.ok()) return met;
  known_sizes_ = {};
  for (const Offer& offer : told) {
    known_sizes_.kernel_from = std::max(known_sizes_.kernel_from, offer.known.kernel_from);
    known_sizes_.mapped_from = std::max(known_sizes_.mapped_from, offer.known.mapped_from);
    known_sizes_.pair_from = std::max(known_sizes_.pair_from, offer.known.pair_from);
  }
  offers.clear();
  for (const int rank : neighbours_)
    offers.push_back(told[node_ == nullptr ? static_cast<std::size_t>(rank) : among_node(rank)]);
  if (node_ == nullptr) return {};
  const Result<SingleCopySizes> agreed = agree_on_single_copy(oob(), known_sizes_);
  if (agreed.ok()) known_sizes_ = *agreed;
  return agreed.status();
}

Status SetUp::share_memory() {
  const std::uint64_t word = monotonic_ns() ^ static_cast<std::uint64_t>(getpid()) << 40;
  Offer mine{.process = 0,
             .segment = {},
             .word_address = reinterpret_cast<std::uintptr_t>(&word),
             .word = word,
             .shared_heap = SharedHeap::current_offer(),
             .known = known_single_copy(),
             .probe_address = 0,
             .xpmem_segment = 0};
  std::vector<Offer> offers;
  Status offered;
  if (Status status = exchange_offers(mine, offers, offered); !status.ok()) return status;
  const Status taken = offered.ok() ? attempt([&] { return take_segment(offers); }) : offered;
  if (!taken.ok()) debug("set-up: " + taken.message());
  bool attached = taken.ok(), single_copy = taken.ok() && single_copy_works(offers);
  if (Status met = lowest(attached, single_copy); !met.ok()) return met;
  if (!attached) return {Code::unavailable, "shared memory is not available on every node"};
  if (Status status = share_buffers(offers); !status.ok()) return status;
  if (Status status = choose_single_copy(offers, single_copy); !status.ok()) return status;
  return agree(attempt([&] { return open_shm(single_copy); }), "shared memory cannot be used on every node");
}

}  // namespace plait::runtime
