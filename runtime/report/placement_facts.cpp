#include "runtime/report/placement_facts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/synthesis/process_grid.h"

namespace plait::runtime {
namespace {

using Rank = PlacementFacts::Rank;
using Ranks = std::vector<Rank>;

std::map<int, int> ranks_by_node(const Ranks& ranks) {
  std::map<int, int> count;
  for (const Rank& rank : ranks) ++count[rank.node];
  return count;
}

bool some_may_move(const Ranks& ranks) {
  const std::map<int, int> on_node = ranks_by_node(ranks);
  return std::ranges::any_of(ranks, [&](const Rank& rank) {
    const int together = on_node.at(rank.node);
    return rank.core < 0 && together > 1 && rank.cores_allowed >= together;
  });
}

template <class Key>
bool unequal(const std::map<Key, int>& count) {
  return std::ranges::any_of(count, [&](const auto& entry) { return entry.second != count.begin()->second; });
}

bool some_are_uneven(const Ranks& ranks) {
  if (unequal(ranks_by_node(ranks))) return true;
  for (int Rank::*index : {&Rank::package, &Rank::numa, &Rank::l3}) {
    std::map<std::pair<int, int>, int> count;
    for (const Rank& rank : ranks)
      if (rank.*index >= 0) ++count[{rank.node, rank.*index}];
    if (unequal(count)) return true;
  }
  return false;
}

// Whether two neighbours along an axis are on different nodes.
bool crosses_nodes(const Ranks& ranks, const GridAxis& axis) {
  const auto all = std::ssize(ranks);
  for (std::int64_t rank = 0; rank < all; ++rank) {
    const std::int64_t next = rank + axis.stride;
    const bool last = rank / axis.stride % axis.size == axis.size - 1;
    if (!last && next < all && ranks[static_cast<std::size_t>(rank)].node != ranks[static_cast<std::size_t>(next)].node)
      return true;
  }
  return false;
}

bool crosses_nodes(const Ranks& ranks, const PlacementFacts::Row& row) {
  const auto axes = parse_grid_axes(row.axes);
  if (!axes.has_value() || row.bytes == 0) return false;
  std::int64_t members = 1;
  for (const GridAxis& axis : *axes) members *= axis.size;
  if (members >= std::ssize(ranks)) return false;  // all ranks: wherever they are
  return std::ranges::any_of(*axes, [&](const GridAxis& axis) { return crosses_nodes(ranks, axis); });
}

}  // namespace

bool worth_asking(const PlacementFacts& facts) {
  if (facts.accelerated && (some_may_move(facts.ranks) || some_are_uneven(facts.ranks))) return true;
  const std::map<int, int> on_node = ranks_by_node(facts.ranks);
  const bool one_way = on_node.size() < 2 || std::ssize(on_node) == std::ssize(facts.ranks);
  return !one_way && std::ranges::any_of(facts.rows, [&](const auto& row) { return crosses_nodes(facts.ranks, row); });
}

SortedJson placement_json(const PlacementFacts& facts) {
  SortedJson ranks = SortedJson::array(), rows = SortedJson::array();
  for (const Rank& rank : facts.ranks)
    ranks.push_back({rank.node, rank.package, rank.numa, rank.l3, rank.core, rank.cores_allowed});
  for (const PlacementFacts::Row& row : facts.rows)
    rows.push_back(
        {{"axes", row.axes}, {"collective", name(row.collective)}, {"calls", row.calls}, {"bytes", row.bytes}});
  return {{"network_seconds_per_byte", facts.network_seconds_per_byte},
          {"ranks_per_core", facts.ranks_per_core},
          {"ranks", std::move(ranks)},
          {"rows", std::move(rows)}};
}

std::string placement_question(const std::string& file) {
  const std::string asked = "placement: whether the ranks would better be elsewhere, or bound, says `plait advise ";
  return file.empty() ? asked + "FILE.json` of a run with PLAIT_REPORT=FILE.json" : asked + file + "`";
}

}  // namespace plait::runtime
