// One rank's shared-memory collective, spelt out: its members, and the blocks that the rank gives and gets.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "plan/model/schedule.h"

namespace plait::plan {

class ShmCollectiveView {
 public:
  // The lists of `collective` lie within `schedule`, which must outlive the view.
  ShmCollectiveView(const Schedule& schedule, const ShmCollective& collective, int rank)
      : collective_(&collective),
        members_(std::span(schedule.collective_members).subspan(collective.members.first, collective.members.count)),
        blocks_(std::span(schedule.collective_blocks).subspan(collective.blocks.first, collective.blocks.count)),
        pieces_(std::span(schedule.collective_pieces).subspan(collective.pieces.first, collective.pieces.count)),
        self_(static_cast<std::size_t>(std::find(members_.begin(), members_.end(), rank) - members_.begin())) {}

  ShmCollectiveKind kind() const { return collective_->kind; }
  std::span<const std::int32_t> members() const { return members_; }
  std::span<const BlockId> blocks() const { return blocks_; }

  // Two or more different ranks, this one among them, and one of them the root.
  bool members_are_ranks(int ranks) const {
    std::vector<std::int32_t> sorted(members_.begin(), members_.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted.size() >= 2 && self_ < sorted.size() && sorted.front() >= 0 && sorted.back() < ranks &&
           std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() && collective_->root >= 0 &&
           static_cast<std::size_t>(collective_->root) < sorted.size();
  }

  bool pieces_fit() const {
    if (collective_->kind == ShmCollectiveKind::all_to_all)
      return pieces_.empty() && blocks_.size() % members_.size() == 0;
    if (!has_pieces(collective_->kind)) return pieces_.empty();
    std::size_t all = 0;
    for (const std::uint32_t piece : pieces_) all += piece;
    return pieces_.size() == members_.size() && all == blocks_.size();
  }

  // Precondition of what follows: pieces_fit() and members_are_ranks().
  std::vector<BlockId> given() const {
    switch (collective_->kind) {
      case ShmCollectiveKind::broadcast:
      case ShmCollectiveKind::scatter:
        return is_root() ? all() : std::vector<BlockId>();
      case ShmCollectiveKind::all_gather:
      case ShmCollectiveKind::gather:
        return piece(self_);
      default:
        return all();
    }
  }

  // Not for all_to_all, whose blocks the others know.
  std::vector<BlockId> taken() const {
    switch (collective_->kind) {
      case ShmCollectiveKind::reduce:
        return is_root() ? all() : std::vector<BlockId>();
      case ShmCollectiveKind::broadcast:
        return is_root() ? std::vector<BlockId>() : all();
      case ShmCollectiveKind::reduce_scatter:
        return piece(self_);
      case ShmCollectiveKind::scatter:
        return collective_->takes_own ? piece(self_) : std::vector<BlockId>();
      case ShmCollectiveKind::gather:
        return is_root() ? all_but_own() : std::vector<BlockId>();
      case ShmCollectiveKind::all_gather:
        return all_but_own();
      default:
        return all();
    }
  }

  // Whether another member means the same operation.
  bool agrees_with(const ShmCollectiveView& other) const {
    return collective_->kind == other.collective_->kind && collective_->root == other.collective_->root &&
           std::ranges::equal(members_, other.members_) && std::ranges::equal(pieces_, other.pieces_) &&
           (collective_->kind == ShmCollectiveKind::all_to_all ? blocks_.size() == other.blocks_.size()
                                                               : std::ranges::equal(blocks_, other.blocks_));
  }

 private:
  bool is_root() const { return self_ == static_cast<std::size_t>(collective_->root); }
  std::vector<BlockId> all() const { return {blocks_.begin(), blocks_.end()}; }
  std::vector<BlockId> piece(std::size_t member) const {
    std::size_t first = 0;
    for (std::size_t i = 0; i < member; ++i) first += pieces_[i];
    const auto begin = blocks_.begin() + static_cast<std::ptrdiff_t>(first);
    return {begin, begin + pieces_[member]};
  }
  std::vector<BlockId> all_but_own() const {
    std::vector<BlockId> blocks;
    for (std::size_t member = 0; member < members_.size(); ++member) {
      if (member == self_ && !collective_->takes_own) continue;
      const std::vector<BlockId> more = piece(member);
      blocks.insert(blocks.end(), more.begin(), more.end());
    }
    return blocks;
  }

  const ShmCollective* collective_;
  std::span<const std::int32_t> members_;
  std::span<const BlockId> blocks_;
  std::span<const std::uint32_t> pieces_;
  std::size_t self_;
};

}  // namespace plait::plan
