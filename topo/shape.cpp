#include "topo/shape.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace plait::topo {
namespace {

constexpr std::int64_t most_ranks = std::int64_t{1} << 16;
constexpr double most_siblings = 1 << 20;

template <class Number>
std::optional<Number> whole(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string joined(const std::vector<int>& numbers, char separator) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : std::string(1, separator)) + std::to_string(number);
  return text;
}

// "2,3,1": every number between two separators, from `least` on.
std::optional<std::vector<int>> numbers_in(std::string_view text, char separator, int least) {
  std::vector<int> numbers;
  std::int64_t product = 1;
  for (bool more = true; more;) {
    const std::size_t end = text.find(separator);
    const std::optional<int> number = whole<int>(text.substr(0, end));
    if (!number || *number < least || *number > most_ranks) return std::nullopt;
    product *= separator == ',' ? 1 : *number;
    if (product > most_ranks || static_cast<std::int64_t>(numbers.size()) > most_ranks) return std::nullopt;
    numbers.push_back(*number);
    more = end != text.npos;
    if (more) text.remove_prefix(end + 1);
  }
  return numbers;
}

// Which of Location's members tell the inner levels apart, outermost first, for so many of them.
std::vector<std::int32_t Location::*> members_for(std::size_t inner) {
  switch (inner) {
    case 0:
      return {};
    case 1:
      return {&Location::core};
    case 2:
      return {&Location::package, &Location::core};
    case 3:
      return {&Location::package, &Location::l3, &Location::core};
    default:
      return {&Location::package, &Location::numa, &Location::l3, &Location::core};
  }
}

// `cardinalities`: nodes of a switch (of all where there is one), then the levels within a node.
Hierarchy even_hierarchy(int switches, const std::vector<int>& cardinalities) {
  const std::vector<int> inner(cardinalities.begin() + 1, cardinalities.end());
  int on_node = 1;
  for (const int cardinality : inner) on_node *= cardinality;
  const auto members = members_for(inner.size());
  std::vector<Location> locations(static_cast<std::size_t>(switches * cardinalities.front() * on_node));
  for (std::size_t rank = 0; rank < locations.size(); ++rank) {
    Location& location = locations[rank];
    const int node = static_cast<int>(rank) / on_node;
    location.host.low = static_cast<std::uint64_t>(node);
    location.leaf_switch = switches > 1 ? static_cast<std::uint64_t>(node / cardinalities.front()) + 1 : 0;
    int below = on_node;
    for (std::size_t level = 0; level < members.size(); ++level) {
      below /= inner[level];
      location.*members[level] = static_cast<std::int32_t>(rank) / below;
    }
  }
  return Hierarchy::from_locations(locations);
}

// Nodes of unequal numbers of ranks that nothing else tells apart.
std::string uneven_text(const Hierarchy& hierarchy) {
  const auto levels = hierarchy.levels();
  if (levels.size() != 2 || levels[0].kind != LevelKind::node || levels[0].cardinality == 0) return {};
  std::vector<int> ranks;
  for (int node = 0; node < hierarchy.nodes(); ++node)
    ranks.push_back(static_cast<int>(hierarchy.ranks_on_node(node).size()));
  return joined(ranks, ',');
}

Status wrong(std::string_view text) {
  return {Code::invalid, "shape \"" + std::string(text.substr(0, 64)) +
                             "\": expected nodes, then what each is split into, such as 4x2x8 or 1x8 (docs/tuning.md)"};
}

// What a text says, in its usual form.
struct Numbers {
  int switches = 1;
  std::vector<int> even;      // nodes (of a switch), then the levels within one; empty: `per_node`
  std::vector<int> per_node;  // ranks of each node, where they differ
  double siblings = 1;
};

std::optional<Numbers> even_numbers(std::string_view text) {
  Numbers numbers;
  if (const std::size_t slash = text.find('/'); slash != text.npos) {
    const auto switches = whole<int>(text.substr(0, slash));
    if (!switches || *switches < 2 || *switches > most_ranks) return std::nullopt;
    numbers.switches = *switches;
    text.remove_prefix(slash + 1);
  }
  const auto given = numbers_in(text, 'x', 1);
  if (!given) return std::nullopt;
  std::int64_t ranks = numbers.switches;
  for (std::size_t i = 0; i < given->size(); ++i) {
    ranks *= (*given)[i];
    if (i == 0 || (*given)[i] > 1) numbers.even.push_back((*given)[i]);
  }
  if (ranks > most_ranks || numbers.even.size() > 1 + most_levels_within_node) return std::nullopt;
  // A switch of one node says nothing.
  if (numbers.even.front() == 1) numbers.even.front() = std::exchange(numbers.switches, 1);
  return numbers;
}

std::optional<Numbers> uneven_numbers(std::string_view text) {
  Numbers numbers;
  auto given = numbers_in(text, ',', 1);
  if (!given) return std::nullopt;
  std::int64_t sum = 0;
  for (const int number : *given) sum += number;
  if (sum > most_ranks) return std::nullopt;
  const bool same = std::adjacent_find(given->begin(), given->end(), std::not_equal_to<>()) == given->end();
  if (!same) {
    numbers.per_node = std::move(*given);
    return numbers;
  }
  numbers.even = {static_cast<int>(given->size())};
  if (given->front() > 1) numbers.even.push_back(given->front());
  return numbers;
}

std::optional<Numbers> understood(std::string_view text) {
  double siblings = 1;
  if (const std::size_t star = text.rfind('*'); star != text.npos) {
    const auto number = whole<double>(text.substr(star + 1));
    if (!number || !(*number >= 1) || *number > most_siblings) return std::nullopt;
    siblings = *number;
    text = text.substr(0, star);
  }
  std::optional<Numbers> numbers = text.find(',') != text.npos ? uneven_numbers(text) : even_numbers(text);
  if (numbers) numbers->siblings = siblings;
  return numbers;
}

std::string with_siblings(const std::string& text, double siblings) {
  if (text.empty() || siblings == 1) return text;
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "*%.6g", siblings);
  return text + number.data();
}

std::string even_text(int switches, std::vector<int> numbers) {
  if (numbers.size() == 1) numbers.push_back(1);
  return (switches > 1 ? std::to_string(switches) + '/' : std::string()) + joined(numbers, 'x');
}

// Empty where there are too many levels.
std::string even_text(const Hierarchy& hierarchy) {
  int switches = 1;
  std::vector<int> numbers = {1};
  for (const Level& level : hierarchy.levels()) {
    if (level.kind == LevelKind::leaf_switch)
      switches = level.cardinality;
    else if (level.kind == LevelKind::node)
      numbers.front() = level.cardinality;
    else
      numbers.push_back(level.cardinality);
  }
  return numbers.size() > 1 + most_levels_within_node ? std::string() : even_text(switches, numbers);
}

}  // namespace

std::string shape_text(const Hierarchy& hierarchy, double siblings) {
  return with_siblings(hierarchy.uniform() ? even_text(hierarchy) : uneven_text(hierarchy), siblings);
}

Result<std::string> usual_shape(std::string_view text) {
  const std::optional<Numbers> numbers = understood(text);
  if (!numbers) return wrong(text);
  return with_siblings(
      numbers->per_node.empty() ? even_text(numbers->switches, numbers->even) : joined(numbers->per_node, ','),
      numbers->siblings);
}

Result<CommunicatorShape> parse_shape(std::string_view text) {
  const std::optional<Numbers> numbers = understood(text);
  if (!numbers) return wrong(text);
  return CommunicatorShape{numbers->per_node.empty() ? even_hierarchy(numbers->switches, numbers->even)
                                                     : Hierarchy::nodes_of(numbers->per_node),
                           numbers->siblings};
}

}  // namespace plait::topo
