#include "plugin/persistent_space.h"

#include <algorithm>
#include <array>
#include <bit>
#include <exception>
#include <string>
#include <utility>

#include "core/intern.h"
#include "core/log.h"
#include "plugin/attempt.h"
#include "plugin/bootstrap_steps.h"
#include "plugin/cooperation.h"
#include "plugin/progress.h"

namespace plait::plugin {
namespace {

// Turns that brought nothing, between two looks whether a rank of another node has failed.
constexpr std::uint32_t notice_every = 256;

Site site_of(const Hierarchy& hierarchy, int rank, bool shared_memory) {
  Site site{.speakers = {}, .own = 0, .rank = rank, .ranks = 1};
  if (!shared_memory) {
    for (int other = 0; other < hierarchy.ranks(); ++other) site.speakers.push_back(other);
    site.own = rank;
    return site;
  }
  for (int node = 0; node < hierarchy.nodes(); ++node) site.speakers.push_back(hierarchy.ranks_on_node(node).front());
  site.own = hierarchy.node_of(rank);
  site.ranks = static_cast<std::uint32_t>(hierarchy.ranks_on_node(site.own).size());
  return site;
}

Channel* first_network(const Connections& connections) {
  return connections.ucx != nullptr ? connections.ucx.get() : connections.mpi.get();
}

}  // namespace

PersistentSpace::PersistentSpace(const Communicator& user)
    : communicator_(user.handle), slots_(most_persistent), announced_(most_persistent) {
  communicator_.channels = user.channels;
}

void PersistentSpace::open() noexcept {
  const Status made = attempt([this] { return set_up(); });
  if (!made.ok()) {
    communicator_.host_reason = "persistent collectives cannot be set up";
    communicator_.road = Road::host;
    try {
      communicator_.host_reason = intern("persistent collectives: " + made.message());
    } catch (const std::exception&) {
    }
    return;
  }
  communicator_.road = Road::accelerated;
  add_space(*this);
}

PersistentSpace::~PersistentSpace() { remove_space(*this); }

Status PersistentSpace::set_up() {
  Result<std::unique_ptr<Machinery>> made = plait::plugin::set_up(communicator_, Extent::all_calls, nullptr);
  if (!made.ok()) return made.status();
  Machinery& machinery = **made;
  Site site;
  const Status placed = attempt([&]() -> Status {
    site = site_of(machinery.planner.hierarchy(), communicator_.rank, bootstrap::may_use(communicator_, "shm"));
    return {};
  });
  if (Status status = go_on_together(machinery.connections.messages.handle(), placed); !status.ok()) return status;
  if (site.speakers.size() > 1) {
    auto speech = plait::plugin::set_up(communicator_, Extent::short_calls, nullptr);
    if (!speech.ok()) return speech.status();
    speech_ = std::move(*speech);
  }
  communicator_.machinery = std::move(*made);
  return share_table(site);
}

// The site's speaker makes it, the others attach.
Status PersistentSpace::share_table(const Site& site) {
  const MPI_Comm comm = communicator_.machinery->connections.messages.handle();
  const bool first = site.speakers[static_cast<std::size_t>(site.own)] == site.rank;
  Channel* channel = speech_ != nullptr ? first_network(speech_->connections) : nullptr;
  SharedSegment table;
  SegmentOffer mine;  // of the table
  Status shared = attempt([&]() -> Status {
    if (!first) return {};
    Result<SharedSegment> segment = SharedSegment::create(StartOrder::table_bytes);
    if (!segment.ok()) return segment.status();
    table = std::move(*segment);
    mine = table.offer();
    return {};
  });
  std::vector<SegmentOffer> offers;
  const Status room = attempt([&]() -> Status {
    offers.resize(static_cast<std::size_t>(communicator_.ranks));
    return {};
  });
  if (Status status = go_on_together(comm, room); !status.ok()) return status;
  if (Status met = gather_all(&mine, static_cast<int>(sizeof mine), offers.data(), comm, "exchange their tables");
      !met.ok())
    return met;
  if (shared.ok())
    shared = attempt([&]() -> Status {
      const SegmentOffer& offer = offers[static_cast<std::size_t>(site.speakers[static_cast<std::size_t>(site.own)])];
      Result<SharedSegment> segment = first ? std::move(table) : SharedSegment::attach(offer);
      if (!segment.ok()) return segment.status();
      if (site.speakers.size() > 1 && channel == nullptr)
        return {Code::unavailable, "the nodes have no channel to agree over"};
      order_ = std::make_unique<StartOrder>(site, std::move(*segment), channel);
      return {};
    });
  const int well = shared.ok() ? 1 : 0;
  int all_well = 0;
  if (Status met = reduce_all(&well, &all_well, 1, MPI_INT, MPI_MIN, comm, "share a table"); !met.ok()) return met;
  if (all_well == 0) {
    if (!shared.ok()) debug("set-up of persistent collectives: " + shared.message());
    return {Code::unavailable, "the ranks of a node could not share a table"};
  }
  order_->all_attached();
  return {};
}

std::optional<std::uint32_t> PersistentSpace::take_slot(Operation* operation, bool wanted) {
  constexpr std::size_t word_bits = 64;
  std::array<std::uint64_t, most_persistent / word_bits> free_here{}, free{};
  for (std::size_t slot = 0; wanted && slot < most_persistent; ++slot)
    if (slots_[slot].load(std::memory_order_acquire) == nullptr)
      free_here[slot / word_bits] |= std::uint64_t{1} << (slot % word_bits);
  const MPI_Comm comm = communicator_.machinery->connections.messages.handle();
  if (!reduce_all(free_here.data(), free.data(), static_cast<int>(free.size()), MPI_UINT64_T, MPI_BAND, comm,
                  "agree on a place")
           .ok())
    return {};
  for (std::size_t word = 0; word < free.size(); ++word) {
    if (free[word] == 0) continue;
    const auto slot =
        static_cast<std::uint32_t>(word * word_bits) + static_cast<std::uint32_t>(std::countr_zero(free[word]));
    slots_[slot].store(operation, std::memory_order_release);
    return slot;
  }
  return {};
}

void PersistentSpace::announce(std::uint32_t slot) {
  announced_[slot].store(true, std::memory_order_relaxed);
  waiting_.fetch_add(1, std::memory_order_release);
  order_->announce(slot);
}

Operation* PersistentSpace::next(bool may_call_host, bool& moved) {
  if (communicator_.road == Road::broken) return next_failed();
  auto slot = order_->next();
  if (!slot && speech_ != nullptr && (may_call_host || speech_->connections.ucx != nullptr)) {
    const Result<bool> told = order_->progress();
    if (!told.ok()) {
      communicator_.operations.failure = told.status();
      communicator_.road = Road::broken;
      return next_failed();
    }
    moved |= *told;
    if (*told) slot = order_->next();
  }
  if (!slot) {
    if (may_call_host) look_for_failures();
    return nullptr;
  }
  announced_[*slot].store(false, std::memory_order_relaxed);
  waiting_.fetch_sub(1, std::memory_order_release);
  return slots_[*slot].load(std::memory_order_acquire);
}

// A rank that has failed starts nothing any more.
void PersistentSpace::look_for_failures() {
  Machinery& machinery = *communicator_.machinery;
  if (order_->failed()) {
    communicator_.operations.failure = machinery.reason_of({Code::peer_left, "another rank of this node has failed"});
  } else {
    if (++idle_turns_ % notice_every != 0) return;
    machinery.look_at_notice();
    if (machinery.notice.heard().ok()) return;
    communicator_.operations.failure = machinery.notice.heard();
  }
  communicator_.road = Road::broken;
}

Operation* PersistentSpace::next_failed() {
  note_failure();
  for (std::size_t slot = 0; slot < announced_.size(); ++slot) {
    if (!announced_[slot].exchange(false, std::memory_order_acq_rel)) continue;
    waiting_.fetch_sub(1, std::memory_order_release);
    return slots_[slot].load(std::memory_order_acquire);
  }
  return nullptr;
}

}  // namespace plait::plugin
