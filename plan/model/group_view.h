// One rank's shared-memory collective, spelt out: its members, and the blocks that the rank gives and gets.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "plan/model/schedule.h"

namespace plait::plan {

class GroupView {
 public:
  // The lists of `group` lie within `schedule`, which must outlive the view.
  GroupView(const Schedule& schedule, const ShmCollective& group, int rank)
      : group_(&group),
        members_(std::span(schedule.group_members).subspan(group.members.first, group.members.count)),
        blocks_(std::span(schedule.group_blocks).subspan(group.blocks.first, group.blocks.count)),
        pieces_(std::span(schedule.group_pieces).subspan(group.pieces.first, group.pieces.count)),
        self_(static_cast<std::size_t>(std::find(members_.begin(), members_.end(), rank) - members_.begin())) {}

  GroupKind kind() const { return group_->kind; }
  std::span<const std::int32_t> members() const { return members_; }
  std::span<const BlockId> blocks() const { return blocks_; }

  // Two or more different ranks, this one among them, and one of them the root.
  bool members_are_ranks(int ranks) const {
    std::vector<std::int32_t> sorted(members_.begin(), members_.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted.size() >= 2 && self_ < sorted.size() && sorted.front() >= 0 && sorted.back() < ranks &&
           std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() && group_->root >= 0 &&
           static_cast<std::size_t>(group_->root) < sorted.size();
  }

  bool pieces_fit() const {
    if (group_->kind == GroupKind::all_to_all) return pieces_.empty() && blocks_.size() % members_.size() == 0;
    if (!has_pieces(group_->kind)) return pieces_.empty();
    std::size_t all = 0;
    for (const std::uint32_t piece : pieces_) all += piece;
    return pieces_.size() == members_.size() && all == blocks_.size();
  }

  // Precondition of what follows: pieces_fit() and members_are_ranks().
  std::vector<BlockId> given() const {
    switch (group_->kind) {
      case GroupKind::broadcast:
      case GroupKind::scatter:
        return is_root() ? all() : std::vector<BlockId>();
      case GroupKind::all_gather:
      case GroupKind::gather:
        return piece(self_);
      default:
        return all();
    }
  }

  // Not for all_to_all, whose blocks the others know.
  std::vector<BlockId> taken() const {
    switch (group_->kind) {
      case GroupKind::reduce:
        return is_root() ? all() : std::vector<BlockId>();
      case GroupKind::broadcast:
        return is_root() ? std::vector<BlockId>() : all();
      case GroupKind::reduce_scatter:
        return piece(self_);
      case GroupKind::scatter:
        return group_->takes_own ? piece(self_) : std::vector<BlockId>();
      case GroupKind::gather:
        return is_root() ? all_but_own() : std::vector<BlockId>();
      case GroupKind::all_gather:
        return all_but_own();
      default:
        return all();
    }
  }

  // Whether another member means the same operation.
  bool agrees_with(const GroupView& other) const {
    return group_->kind == other.group_->kind && group_->root == other.group_->root &&
           std::ranges::equal(members_, other.members_) && std::ranges::equal(pieces_, other.pieces_) &&
           (group_->kind == GroupKind::all_to_all ? blocks_.size() == other.blocks_.size()
                                                  : std::ranges::equal(blocks_, other.blocks_));
  }

 private:
  bool is_root() const { return self_ == static_cast<std::size_t>(group_->root); }
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
      if (member == self_ && !group_->takes_own) continue;
      const std::vector<BlockId> more = piece(member);
      blocks.insert(blocks.end(), more.begin(), more.end());
    }
    return blocks;
  }

  const ShmCollective* group_;
  std::span<const std::int32_t> members_;
  std::span<const BlockId> blocks_;
  std::span<const std::uint32_t> pieces_;
  std::size_t self_;
};

}  // namespace plait::plan
