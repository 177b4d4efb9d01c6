// Numbers by rank, of few among many ranks: what a channel keeps of the peers that it has messages with, wherever their
// number has nothing to do with that of the communicator's ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tl/layer.h"

namespace plait::tl {

// A table with open addressing, half empty. Where the ranks are fewer than its room, each is found at its place.
class RankIndex {
 public:
  static constexpr std::int32_t none = -1;

  std::int32_t find(std::int32_t rank) const {
    for (std::size_t place = home(rank);; ++place) {
      const Entry& entry = entries_[place & mask()];
      if (entry.rank == rank) return entry.number;
      if (entry.rank == none) return none;
    }
  }
  // Precondition: it has none yet, and neither is negative.
  void add(std::int32_t rank, std::int32_t number) {
    reserve(size_ + 1);
    put({rank, number});
    ++size_;
  }
  // Up to so many ranks take no more memory.
  void reserve(std::size_t ranks) {
    std::size_t room = entries_.size();
    while (room < 2 * ranks) room *= 2;
    if (room > entries_.size()) grow(room);
  }
  std::size_t size() const { return size_; }

 private:
  struct Entry {
    std::int32_t rank = none, number = none;
  };
  static constexpr std::size_t least_room = 16;

  std::size_t mask() const { return entries_.size() - 1; }
  // Ranks that are a power of two apart meet in all of a table that is no larger.
  static std::size_t home(std::int32_t rank) {
    const auto bits = static_cast<std::uint32_t>(rank);
    return bits ^ bits >> 6 ^ bits >> 12;
  }
  void put(Entry entry) {
    std::size_t place = home(entry.rank);
    while (entries_[place & mask()].rank != none) ++place;
    entries_[place & mask()] = entry;
  }
  void grow(std::size_t room) {
    const std::vector<Entry> before = std::exchange(entries_, std::vector<Entry>(room));
    for (const Entry& entry : before)
      if (entry.rank != none) put(entry);
  }

  std::vector<Entry> entries_ = std::vector<Entry>(least_room);
  std::size_t size_ = 0;
};

}  // namespace plait::tl
