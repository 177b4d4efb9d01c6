#include "runtime/team/slot_size.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace plait::runtime {
namespace {

// A message of its own costs about as much as so many bytes more in the slots.
constexpr std::size_t message_costs_bytes = 1536;
constexpr std::size_t shortest_slot_data = slot_bytes(0) - slot_header_bytes;

// The first class whose slots hold it; slot_classes: none does.
std::size_t class_for(std::size_t length, int ranks) {
  const auto wanted = static_cast<int>(std::bit_width((std::max<std::size_t>(length, 1) - 1) / shortest_slot_data));
  const bool fits = wanted < slot_classes && length + slot_header_bytes <= slot_bytes(wanted, ranks);
  return static_cast<std::size_t>(fits ? wanted : slot_classes);
}

// Of so many messages of that length.
int class_of_equal(std::size_t length, std::size_t messages, int ranks) {
  const std::size_t needed = class_for(length, ranks);
  if (needed == slot_classes) return 0;
  const auto all = static_cast<std::size_t>(ranks);
  const std::size_t apart = slot_bytes(0, ranks) * all + messages * (message_costs_bytes + length);
  return needed == 0 || slot_bytes(static_cast<int>(needed), ranks) * all < apart ? static_cast<int>(needed) : 0;
}

// Of messages that differ.
int class_of_mixed(std::span<const std::size_t> lengths, int self) {
  const int ranks = static_cast<int>(lengths.size());
  // By the class that a message needs; the last holds those that fit no slot.
  std::array<std::size_t, slot_classes + 1> messages{}, bytes{};
  std::size_t longest = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t length = lengths[static_cast<std::size_t>(rank)];
    if (rank == self || length == 0) continue;
    const std::size_t needed = class_for(length, ranks);
    ++messages[needed];
    bytes[needed] += length;
    longest = std::max(longest, std::min<std::size_t>(needed, slot_classes - 1));
  }
  int best = 0;
  std::size_t least = ~std::size_t{0};
  std::size_t longer = messages[slot_classes], longer_bytes = bytes[slot_classes];
  for (int slot_class = static_cast<int>(longest); slot_class >= 0; --slot_class) {
    const std::size_t all_slots = slot_bytes(slot_class, ranks) * static_cast<std::size_t>(ranks);
    const std::size_t cost = all_slots + longer * message_costs_bytes + longer_bytes;
    if (cost <= least) {
      least = cost;
      best = slot_class;
    }
    longer += messages[static_cast<std::size_t>(slot_class)];
    longer_bytes += bytes[static_cast<std::size_t>(slot_class)];
  }
  return best;
}

// An allgather that tells all is worth many short gathers.
int most_turns_of(Learns learns, int usual) { return learns == Learns::always ? usual : 4 * usual + 3; }

}  // namespace

int wished_class(std::span<const std::size_t> lengths, int self) {
  std::size_t length = 0, messages = 0;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    if (static_cast<int>(rank) == self || lengths[rank] == 0) continue;
    if (messages++ == 0) length = lengths[rank];
    if (lengths[rank] != length) return class_of_mixed(lengths, self);
  }
  return class_of_equal(length, messages, static_cast<int>(lengths.size()));
}

Wish wish_for(std::span<const std::size_t> lengths, int self, Collective collective, const HostSizes& hosts) {
  const std::size_t bytes = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
  const std::size_t mean =
      (bytes - lengths[static_cast<std::size_t>(self)]) / std::max<std::size_t>(lengths.size() - 1, 1);
  return {.slot_class = wished_class(lengths, self), .host = hosts.wished(collective, mean)};
}

void SlotSize::learn(const Wishes& wishes) {
  const int most = most_turns_of(learns_, most_turns);
  if (2 * wishes.for_host > wishes.ranks) {
    host_turns_ = next_turns_;
    next_turns_ = std::min(2 * next_turns_ + 1, most);
    next_own_turns_ = 1;
  } else {
    next_turns_ = first_turns;
    own_turns_ = next_own_turns_;
    next_own_turns_ = std::min(2 * next_own_turns_ + 1, most);
  }
  if (learns_ == Learns::now_and_then) return;  // longer slots would only spare messages that are faster here anyway
  const std::size_t mean = wishes.slot_bytes / static_cast<std::size_t>(std::max(wishes.ranks, 1));
  int wished = 0;
  while (wished + 1 < slot_classes && 4 * slot_bytes(wished) < 3 * mean) ++wished;
  recent_[calls_++ % recent_.size()] = static_cast<std::int8_t>(wished);
  class_ = *std::ranges::min_element(recent_);
}

}  // namespace plait::runtime
