#include "plan/lower/rank_groups.h"

#include <algorithm>

#include "plan/algorithm/algorithm.h"

namespace plait::plan {

namespace {

Segments united(std::vector<SegmentRun> runs) {
  std::ranges::sort(runs, {}, &SegmentRun::first);
  Segments segments;
  for (const SegmentRun& run : runs) append(segments, run);
  return segments;
}

}  // namespace

// Whose groups are asked for, and the levels below the range at which the members' children differ: scattered, of
// groups of different sizes.
struct RankGroups::Search {
  int rank;
  Coordinates coordinates;
  std::vector<int> children;  // by level: of the rank's group
  std::vector<int> open;
};

// A rank takes part where it holds the segment, were the levels of the instruction full.
std::vector<WorkGroup> RankGroups::of(int rank) const {
  Search search{rank, {}, {}, {}};
  Ownership::Shares shares{};
  Grid::Branch branch = grid_.root();
  for (int level = 0; level < grid_.levels(); ++level) {
    search.coordinates.push_back(grid_.child_with(branch, grid_.vrank_of(rank)));
    search.children.push_back(grid_.children(branch));
    branch = grid_.child(branch, search.coordinates.back());
    if (covers(level)) continue;
    if (state_.at(level) == LevelStatus::rooted && search.coordinates.back() != 0) return {};
    if (state_.at(level) != LevelStatus::scattered) continue;
    if (level > instruction_.last && grid_.uneven(level))
      search.open.push_back(level);
    else
      shares[static_cast<std::size_t>(level)] = {search.coordinates.back(), search.children.back()};
  }
  std::vector<WorkGroup> groups;
  choose_digits(search, 0, shares, groups);
  for (WorkGroup& group : groups) group.segments = united(std::move(group.segments));
  std::ranges::sort(groups, {}, [](const WorkGroup& group) { return group.segments.front().first; });
  return groups;
}

// Each digit that this rank's child keeps: other members' groups may keep it in another child.
void RankGroups::choose_digits(const Search& search, std::size_t open, Ownership::Shares shares,
                               std::vector<WorkGroup>& groups) const {
  if (open < search.open.size()) {
    const int level = search.open[open];
    const auto l = static_cast<std::size_t>(level);
    for (int digit = 0; digit < ownership_.digits(level); ++digit)
      if (ownership_.child(level, digit, search.children[l]) == search.coordinates[l]) {
        shares[l] = ownership_.exactly(level, digit);
        choose_digits(search, open + 1, shares, groups);
      }
    return;
  }
  const Segments segments = ownership_.segments(shares);
  if (segments.empty()) return;
  std::vector<int> members;
  collect_members(search, shares, grid_.branch_of(search.rank, instruction_.first), true, true, members);
  if (std::ranges::find(members, search.rank) == members.end()) return;
  auto group = std::ranges::find(groups, members, &WorkGroup::members);
  if (group == groups.end()) group = groups.insert(group, {std::move(members), {}, {}});
  group->segments.insert(group->segments.end(), segments.begin(), segments.end());
  group->shares.push_back(shares);
}

// In a broadcast over levels of which some are full, those who have the data already (`holds`) take no part, unless the
// algorithm does nothing without them.
void RankGroups::collect_members(const Search& search, const Ownership::Shares& shares, const Grid::Branch& branch,
                                 bool holds, bool root, std::vector<int>& members) const {
  if (branch.level > instruction_.last) {
    const bool all = instruction_.what != Instruct::broadcast || instruction_.algorithm->needs_whole_node;
    if (all || root || !holds) members.push_back(counterpart(search, shares, branch));
    return;
  }
  const bool rooted = state_.at(branch.level) == LevelStatus::rooted;
  const int children = grid_.children(branch);
  for (int child = 0; child < children; ++child)
    collect_members(search, shares, grid_.child(branch, child), holds && (!rooted || child == 0), root && child == 0,
                    members);
}

// The rank below the range that works on the same segments.
int RankGroups::counterpart(const Search& search, const Ownership::Shares& shares, Grid::Branch branch) const {
  while (branch.level < grid_.levels()) {
    const auto l = static_cast<std::size_t>(branch.level);
    int child = search.coordinates[l];
    if (std::ranges::find(search.open, branch.level) != search.open.end())
      child = ownership_.child(branch.level, shares[l].child, grid_.children(branch));
    branch = grid_.child(branch, child);
  }
  return grid_.rank_at(branch.first);
}

Segments RankGroups::cut(const WorkGroup& group, int number, int pieces) const {
  std::vector<SegmentRun> runs;
  for (const Ownership::Shares& shares : group.shares) {
    const Segments all = group.shares.size() == 1 ? group.segments : ownership_.segments(shares);
    const std::int64_t count = count_of(all);
    const Segments part =
        slice(all, static_cast<int>(count * number / pieces), static_cast<int>(count * (number + 1) / pieces));
    runs.insert(runs.end(), part.begin(), part.end());
  }
  return group.shares.size() == 1 ? runs : united(std::move(runs));
}

Segments RankGroups::piece(const WorkGroup& group, int member) const {
  std::vector<SegmentRun> runs;
  for (Ownership::Shares shares : group.shares) {
    for (int level = instruction_.first; level <= instruction_.last; ++level)
      shares[static_cast<std::size_t>(level)] = {grid_.coordinate(member, level), grid_.children(member, level)};
    const Segments more = ownership_.segments(shares);
    runs.insert(runs.end(), more.begin(), more.end());
  }
  return group.shares.size() == 1 ? runs : united(std::move(runs));
}

}  // namespace plait::plan
