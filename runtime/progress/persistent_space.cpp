#include "runtime/progress/persistent_space.h"

#include <array>
#include <bit>
#include <exception>
#include <string>
#include <utility>

#include "core/intern.h"
#include "runtime/execution/decide.h"
#include "runtime/oob/oob.h"

namespace plait::runtime {
namespace {

// Turns that brought nothing, between two looks whether a rank of another node has failed.
constexpr std::uint32_t notice_every = 256;

}  // namespace

PersistentSpace::PersistentSpace(std::unique_ptr<Communicator> communicator)
    : communicator_(std::move(communicator)), slots_(most_persistent), announced_(most_persistent) {}

void PersistentSpace::open(Result<SpaceConnections> made) noexcept {
  if (made.ok()) {
    communicator_->team = std::move(made->team);
    between_leaders_ = std::move(made->between_leaders);
    order_ = std::move(made->order);
    communicator_->road = Road::accelerated;
    return;
  }
  communicator_->host_reason = "persistent collectives cannot be set up";
  communicator_->road = Road::host;
  try {
    communicator_->host_reason = intern("persistent collectives: " + made.status().message());
  } catch (const std::exception&) {
  }
}

std::optional<std::uint32_t> PersistentSpace::take_slot(Operation* operation, bool wanted) {
  constexpr std::size_t word_bits = 64;
  std::array<std::uint64_t, most_persistent / word_bits> free_here{}, free{};
  for (std::size_t slot = 0; wanted && slot < most_persistent; ++slot)
    if (slots_[slot].load(std::memory_order_acquire) == nullptr)
      free_here[slot / word_bits] |= std::uint64_t{1} << (slot % word_bits);
  Oob& oob = *communicator_->team->oob;
  if (!reduce_all(oob, free_here, free, Op::band, "agree on a place").ok()) return {};
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
  if (is_broken(*communicator_)) return next_failed();
  auto slot = order_->next();
  if (!slot && between_leaders_ != nullptr &&
      (may_call_host || !traits(between_leaders_->routes().beyond()).needs_host)) {
    const Result<bool> told = order_->progress();
    if (!told.ok()) {
      communicator_->operations.failure = told.status();
      communicator_->road = Road::broken;
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
  Team& team = *communicator_->team;
  if (order_->failed()) {
    communicator_->operations.failure = team.reason_of({Code::peer_left, "another rank of this node has failed"});
  } else {
    if (++idle_turns_ % notice_every != 0) return;
    team.look_at_notice();
    if (team.notice->heard().ok()) return;
    communicator_->operations.failure = team.notice->heard();
  }
  communicator_->road = Road::broken;
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

}  // namespace plait::runtime
