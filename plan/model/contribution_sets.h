// What the proof knows of a value: whose contributions it holds. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace plait::plan {

// Which ranks contributed to a value, and by which combinations: a value is a number, the same for two values exactly
// when they were combined in the same way, so that they have the same bits. Combining two that share a rank, or, where
// the order counts, are not neighbours in rank order, is an error.
class ContributionSets {
 public:
  static constexpr std::int32_t none = -1;

  ContributionSets(int ranks, bool ordered) : ranks_(ranks), ordered_(ordered) {
    for (int rank = 0; rank < ranks; ++rank) sets_.push_back(singleton(rank));
  }

  std::int32_t of_rank(int rank) const { return rank; }

  // `none` when they cannot be combined in this order.
  std::int32_t combine(std::int32_t left, std::int32_t right) {
    const std::uint64_t key = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
    const auto [entry, is_new] = combined_.try_emplace(key, none);
    if (is_new) entry->second = compute(left, right);
    return entry->second;
  }

  bool is_all(std::int32_t set) const { return sets_[static_cast<std::size_t>(set)].size == ranks_; }

 private:
  using Bits = std::vector<std::uint64_t>;
  struct Set {
    Bits bits;
    int first = 0, size = 0;
  };

  Set singleton(int rank) const {
    Set set{Bits(static_cast<std::size_t>(ranks_ + 63) / 64), rank, 1};
    set.bits[static_cast<std::size_t>(rank) / 64] |= std::uint64_t{1} << (rank % 64);
    return set;
  }

  std::int32_t compute(std::int32_t left, std::int32_t right) {
    const Set& a = sets_[static_cast<std::size_t>(left)];
    const Set& b = sets_[static_cast<std::size_t>(right)];
    if (ordered_ && a.first + a.size != b.first) return none;
    Set both = a;
    for (std::size_t word = 0; word < both.bits.size(); ++word) {
      if ((a.bits[word] & b.bits[word]) != 0) return none;
      both.bits[word] |= b.bits[word];
    }
    both.first = std::min(a.first, b.first);
    both.size = a.size + b.size;
    sets_.push_back(std::move(both));
    return static_cast<std::int32_t>(sets_.size() - 1);
  }

  int ranks_;
  bool ordered_;
  std::vector<Set> sets_;
  std::unordered_map<std::uint64_t, std::int32_t> combined_;
};

}  // namespace plait::plan
