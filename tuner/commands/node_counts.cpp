#include "tuner/commands/node_counts.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

constexpr std::size_t most_counts = 32;

Result<int> parse_count(const std::string& text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 2 || count > most_nodes)
    return {Code::invalid, "--nodes: \"" + text + "\": expected 2 to 65536, such as 16..2048 or 16,64,256"};
  return count;
}

}  // namespace

Result<std::vector<int>> parse_nodes(const std::string& text) {
  std::vector<int> counts;
  if (const std::size_t dots = text.find(".."); dots != text.npos) {
    const auto first = parse_count(text.substr(0, dots)), last = parse_count(text.substr(dots + 2));
    if (!first.ok()) return first.status();
    if (!last.ok()) return last.status();
    for (int count = *first; count <= *last; count *= 2) counts.push_back(count);
  } else {
    for (const std::string& word : split(text, ',')) {
      const auto count = parse_count(word);
      if (!count.ok()) return count.status();
      counts.push_back(*count);
    }
  }
  if (counts.empty() || counts.size() > most_counts || !std::is_sorted(counts.begin(), counts.end()))
    return {Code::invalid, "--nodes: \"" + text + "\": expected ascending numbers, at most 32"};
  return counts;
}

}  // namespace plait::tuner
