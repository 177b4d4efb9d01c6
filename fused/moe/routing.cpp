#include "fused/moe/routing.h"

#include <algorithm>

namespace plait::fused {

Routing::Routing(const Shape& shape) : shape_(shape) {
  const std::size_t ranks = shape.first_experts.size() - 1;
  const auto experts = static_cast<std::size_t>(shape.first_experts.back());
  rows_.resize(ranks);
  first_rows_.resize(ranks);
  counts_.resize(experts);
  next_.resize(experts);
  for (int owner = 0; owner < this->ranks(); ++owner)
    owners_.insert(owners_.end(), static_cast<std::size_t>(this->experts(owner)), owner);
  entries_.resize(static_cast<std::size_t>(shape.entries));
  places_.resize(static_cast<std::size_t>(shape.entries));
}

bool Routing::count(const std::int32_t* experts, Complaint& complaint) {
  std::ranges::fill(counts_, 0);
  const auto all = static_cast<std::int64_t>(counts_.size());
  for (std::int64_t entry = 0; entry < shape_.entries; ++entry) {
    const std::int32_t expert = experts[entry];
    if (expert < dropped || expert >= all) return complaint = wrong_expert(entry, expert, all), true;
    if (expert != dropped) ++counts_[static_cast<std::size_t>(expert)];
  }
  return false;
}

bool Routing::sort(const std::int32_t* experts, Complaint& complaint) {
  if (count(experts, complaint)) return true;
  std::int64_t all_rows = 0;
  for (int owner = 0; owner < ranks(); ++owner) {
    std::int64_t& rows = rows_[static_cast<std::size_t>(owner)];
    rows = 0;
    for (std::int64_t expert = first_expert(owner); expert < first_expert(owner + 1); ++expert) {
      next_[static_cast<std::size_t>(expert)] = rows;
      rows += counts_[static_cast<std::size_t>(expert)];
    }
    if (rows > shape_.capacity) return complaint = over_capacity(owner, rows, shape_.capacity), true;
    first_rows_[static_cast<std::size_t>(owner)] = all_rows;
    all_rows += rows;
  }
  for (std::int64_t entry = 0; entry < shape_.entries; ++entry) {
    Place place;
    if (const std::int32_t expert = experts[entry]; expert != dropped) {
      place.owner = owners_[static_cast<std::size_t>(expert)];
      place.row = static_cast<std::int32_t>(next_[static_cast<std::size_t>(expert)]++);
      entries_[static_cast<std::size_t>(first_rows_[static_cast<std::size_t>(place.owner)] + place.row)] = entry;
    }
    places_[static_cast<std::size_t>(entry)] = place;
  }
  return false;
}

}  // namespace plait::fused
