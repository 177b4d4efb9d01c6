#include "runtime/team/slot_size.h"

#include <algorithm>
#include <numeric>

namespace plait::runtime {
namespace {

// A message of its own costs about as much as so many bytes more in the slots.
constexpr std::size_t message_costs_bytes = 1536;

}  // namespace

int wished_class(std::span<const std::size_t> lengths, int self) {
  const int ranks = static_cast<int>(lengths.size());
  std::array<std::size_t, slot_classes> slots{};
  for (int slot_class = 0; slot_class < slot_classes; ++slot_class)
    slots[static_cast<std::size_t>(slot_class)] = slot_bytes(slot_class, ranks);
  // By the class that a message needs; the last holds those that fit no slot.
  std::array<std::size_t, slot_classes + 1> messages{}, bytes{};
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t length = lengths[static_cast<std::size_t>(rank)];
    if (rank == self || length == 0) continue;
    const auto needed =
        static_cast<std::size_t>(std::ranges::lower_bound(slots, length + slot_header_bytes) - slots.begin());
    ++messages[needed];
    bytes[needed] += length;
  }
  int best = 0;
  std::size_t least = ~std::size_t{0}, longer = 0, longer_bytes = 0;
  for (int slot_class = slot_classes - 1; slot_class >= 0; --slot_class) {
    longer += messages[static_cast<std::size_t>(slot_class) + 1];
    longer_bytes += bytes[static_cast<std::size_t>(slot_class) + 1];
    const std::size_t all_slots = slots[static_cast<std::size_t>(slot_class)] * static_cast<std::size_t>(ranks);
    const std::size_t cost = all_slots + longer * message_costs_bytes + longer_bytes;
    if (cost > least) continue;
    least = cost;
    best = slot_class;
  }
  return best;
}

Wish wish_for(std::span<const std::size_t> lengths, int self, Collective collective, const HostSizes& hosts) {
  const std::size_t bytes = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
  const std::size_t mean =
      (bytes - lengths[static_cast<std::size_t>(self)]) / std::max<std::size_t>(lengths.size() - 1, 1);
  return {.slot_class = wished_class(lengths, self), .host = hosts.wished(collective, mean)};
}

void SlotSize::learn(const Wishes& wishes) {
  if (2 * wishes.for_host > wishes.ranks) {
    host_turns_ = next_turns_;
    next_turns_ = std::min(2 * next_turns_ + 1, most_turns);
  } else {
    next_turns_ = first_turns;
  }
  const std::size_t mean = wishes.slot_bytes / static_cast<std::size_t>(std::max(wishes.ranks, 1));
  int wished = 0;
  while (wished + 1 < slot_classes && 4 * slot_bytes(wished) < 3 * mean) ++wished;
  recent_[calls_++ % recent_.size()] = static_cast<std::int8_t>(wished);
  class_ = *std::ranges::min_element(recent_);
}

}  // namespace plait::runtime
