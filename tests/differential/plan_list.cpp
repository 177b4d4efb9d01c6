// Prints the plans that small, middling and large calls on a hierarchy may get, a line each: the name, a tab, and the
// collectives that have it, with commas.
//
//   plan_list 5          five ranks on one node
//   plan_list 3,2,1      ranks by node
#include <charconv>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plan/choose/candidate.h"
#include "plan/model/collective.h"
#include "plan/motif/rewrite.h"
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

void add(std::string& collectives, plait::plan::Collective collective) {
  const std::string name(plait::plan::name(collective));
  if (("," + collectives + ",").find("," + name + ",") != std::string::npos) return;
  collectives += (collectives.empty() ? "" : ",") + name;
}

// A rule of each kind, and one that cuts what another one has cut.
void add_motifs(std::map<std::string, std::string>& collectives_of, plait::plan::Collective collective, int ranks) {
  using namespace plait::plan::motif;
  const auto whole = whole_collective(collective, ranks, 0);
  if (!whole.ok()) return;
  constexpr int segments[] = {3};
  std::set<Rule::Kind> seen;
  for (const std::vector<Rule>& rules : rewritings(*whole, 1, segments)) {
    if (rules.empty() || !seen.insert(rules.front().kind).second) continue;
    add(collectives_of["[" + text(rules) + "]"], collective);
    add(collectives_of["[" + text(rules) + ",segment:2]"], collective);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<int> counts = parse_counts(argc == 2 ? argv[1] : "");
  if (counts.empty()) {
    std::fprintf(stderr, "usage: plan_list RANKS[,RANKS]...\n");
    return 2;
  }
  const plait::topo::Hierarchy hierarchy = plait::topo::Hierarchy::nodes_of(counts);
  const plait::plan::Machine machine = plait::plan::default_machine();
  std::map<std::string, std::string> collectives_of;
  for (int i = 0; i < plait::plan::planned_collectives; ++i) {
    const auto collective = static_cast<plait::plan::Collective>(i);
    // Those with lists of counts have the plans of those without.
    if (collective == plait::plan::Collective::allgatherv || collective == plait::plan::Collective::reduce_scatter)
      continue;
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{16} << 10, std::size_t{1} << 20})
      for (const plait::plan::Candidate& candidate : plait::plan::candidates(
               {.collective = collective, .count = bytes}, {.hierarchy = hierarchy, .machine = machine}, 2))
        add(collectives_of[candidate.name], collective);
    add_motifs(collectives_of, collective, hierarchy.ranks());
  }
  for (const auto& [name, collectives] : collectives_of) std::printf("%s\t%s\n", name.c_str(), collectives.c_str());
}
