#include "tuner/text/mapping_advice.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

namespace plait::tuner {
namespace {

using Node = std::vector<const RankPlace*>;

std::map<int, Node> by_node(const std::vector<RankPlace>& ranks) {
  std::map<int, Node> nodes;
  for (const RankPlace& rank : ranks) nodes[rank.node].push_back(&rank);
  return nodes;
}

// Its ranks may all run on the same processors, of which there are enough for each to have its own.
bool unbound(const Node& node) {
  const auto place = [](const RankPlace& rank) {
    return std::tuple(rank.package, rank.numa, rank.l3, rank.core, rank.cores_allowed);
  };
  const RankPlace& first = *node.front();
  return node.size() > 1 && first.core < 0 && first.cores_allowed >= static_cast<int>(node.size()) &&
         std::all_of(node.begin(), node.end(), [&](const RankPlace* rank) { return place(*rank) == place(first); });
}

std::string binding(const std::map<int, Node>& nodes, Launcher launcher) {
  std::size_t free = 0;
  for (const auto& [number, node] : nodes)
    if (unbound(node)) free += node.size();
  if (free == 0) return "";
  return "binding: " + std::to_string(free) +
         " ranks may move between the cores of their node: " + bound_to_cores(launcher) + " keeps each on its own";
}

struct Uneven {
  int fewest, most, even;  // even: of each, were they dealt out evenly
};

// Nothing where the numbers are equal, or cannot be.
std::optional<Uneven> uneven(const std::vector<int>& counts) {
  int all = 0;
  for (const int count : counts) all += count;
  const auto groups = static_cast<int>(counts.size());
  const auto [fewest, most] = std::minmax_element(counts.begin(), counts.end());
  if (groups < 2 || *fewest == *most || all % groups != 0) return std::nullopt;
  return Uneven{*fewest, *most, all / groups};
}

std::string sentence(const Uneven& counts, const std::string& what, const std::string& option) {
  return "mapping: " + std::to_string(counts.fewest) + " to " + std::to_string(counts.most) + " ranks on " + what +
         ", " + std::to_string(counts.even) + " on each would be even: " + option;
}

struct Part {
  const char *level, *article;
  int RankPlace::*index;
};
constexpr std::array parts = {Part{"package", "a", &RankPlace::package}, Part{"numa", "a", &RankPlace::numa},
                              Part{"l3", "an", &RankPlace::l3}};

// Of one level in a node, whose ranks all know their place there.
std::optional<Uneven> uneven_within(const Node& node, const Part& part) {
  std::map<int, int> ranks_in;
  for (const RankPlace* rank : node) {
    if (rank->*part.index < 0) return std::nullopt;
    ++ranks_in[rank->*part.index];
  }
  std::vector<int> counts;
  for (const auto& [index, count] : ranks_in) counts.push_back(count);
  return uneven(counts);
}

std::string within_nodes(const std::map<int, Node>& nodes, Launcher launcher) {
  for (const Part& part : parts)
    for (const auto& [number, node] : nodes)
      if (const auto found = uneven_within(node, part)) {
        const std::string name = part.level == std::string("l3") ? "L3 cache" : std::string(part.level);
        const std::string what = std::string(part.article) + " " + (name == "numa" ? "NUMA domain" : name);
        return sentence(*found, what + " of a node", dealt_out_to(launcher, part.level));
      }
  return "";
}

}  // namespace

std::vector<std::string> mapping_advice(const std::vector<RankPlace>& ranks, Launcher launcher) {
  const std::map<int, Node> nodes = by_node(ranks);
  std::vector<int> on_node;
  for (const auto& [number, node] : nodes) on_node.push_back(static_cast<int>(node.size()));
  std::vector<std::string> said;
  const auto say = [&](const std::string& words) {
    if (!words.empty()) said.push_back(words);
  };
  say(binding(nodes, launcher));
  if (const auto found = uneven(on_node)) say(sentence(*found, "a node", ranks_a_node(launcher, found->even)));
  say(within_nodes(nodes, launcher));
  return said;
}

}  // namespace plait::tuner
