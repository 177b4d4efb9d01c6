// Prints the plan families of a hierarchy, a line each: the name, a tab, and the collectives that have it, with commas.
//
//   plan_families 5          five ranks on one node
//   plan_families 3,2,1      ranks by node
#include <charconv>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plan/collective.h"
#include "plan/family.h"
#include "topo/hierarchy.h"

namespace {

std::vector<int> parse_counts(std::string_view text) {
  std::vector<int> counts;
  while (!text.empty()) {
    int count = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || count < 1) return {};
    counts.push_back(count);
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    if (!text.empty() && text.front() != ',') return {};
    if (!text.empty()) text.remove_prefix(1);
  }
  return counts;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<int> counts = parse_counts(argc == 2 ? argv[1] : "");
  if (counts.empty()) {
    std::fprintf(stderr, "usage: plan_families RANKS[,RANKS]...\n");
    return 2;
  }
  const plait::Hierarchy hierarchy = plait::Hierarchy::nodes_of(counts);
  std::map<std::string, std::string> collectives_of;
  for (int i = 0; i < static_cast<int>(plait::Collective::count_); ++i) {
    const auto collective = static_cast<plait::Collective>(i);
    for (const bool commutative : {true, false})
      for (const plait::Candidate& candidate : plait::candidates(collective, hierarchy, commutative)) {
        std::string& collectives = collectives_of[candidate.name];
        const std::string name(plait::name(collective));
        if (("," + collectives + ",").find("," + name + ",") != std::string::npos) continue;
        collectives += (collectives.empty() ? "" : ",") + name;
      }
  }
  for (const auto& [name, collectives] : collectives_of) std::printf("%s\t%s\n", name.c_str(), collectives.c_str());
}
