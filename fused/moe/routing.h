// Which of a rank's tokens go to which experts, in the order in which they go: a row for each, to each rank those for
// its experts one after the other, and those for an expert in the order of the tokens. A counting sort.
#pragma once

#include <cstdint>
#include <vector>

#include "fused/exchange/announcement.h"
#include "fused/layer.h"
#include "fused/moe/moe_arguments.h"

namespace plait::fused {

class Routing {
 public:
  static constexpr std::int32_t dropped = -1;

  struct Shape {
    std::int64_t entries = 0;                 // tokens * choices
    std::int64_t capacity = 0;                // rows for one rank at most
    std::vector<std::int64_t> first_experts;  // by rank; and how many there are
  };
  Routing() = default;
  // Throws where memory is short.
  explicit Routing(const Shape& shape);

  // Of a run: by entry the number of an expert, or `dropped`. True: there is a complaint, and no routing.
  bool sort(const std::int32_t* experts, Complaint& complaint);

  std::int64_t rows(int owner) const { return rows_[static_cast<std::size_t>(owner)]; }
  // By expert of the owner.
  const std::int64_t* counts(int owner) const { return counts_.data() + first_expert(owner); }
  std::int64_t experts(int owner) const { return first_expert(owner + 1) - first_expert(owner); }
  // The entry that a row of an owner's is of.
  std::int64_t entry(int owner, std::int64_t row) const {
    return entries_[static_cast<std::size_t>(first_rows_[static_cast<std::size_t>(owner)] + row)];
  }
  // Where an entry goes; of one that is dropped: owner -1.
  struct Place {
    std::int32_t owner = dropped, row = 0;
  };
  Place place(std::int64_t entry) const { return places_[static_cast<std::size_t>(entry)]; }

  // Of an owner's experts, among all ranks'.
  std::int64_t first_expert(int owner) const { return shape_.first_experts[static_cast<std::size_t>(owner)]; }

 private:
  int ranks() const { return static_cast<int>(rows_.size()); }
  bool count(const std::int32_t* experts, Complaint& complaint);

  Shape shape_;
  std::vector<std::int32_t> owners_;      // by expert
  std::vector<std::int64_t> counts_;      // by expert
  std::vector<std::int64_t> next_;        // by expert: the next row among its owner's
  std::vector<std::int64_t> rows_;        // by owner
  std::vector<std::int64_t> first_rows_;  // by owner, in entries_
  std::vector<std::int64_t> entries_;     // an owner's rows after the other's
  std::vector<Place> places_;             // by entry
};

}  // namespace plait::fused
