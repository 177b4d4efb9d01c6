// What crosses the borders between switches: the messages of Bine's trees and butterflies beside those of the
// algorithms with distances of 1, 2, 4, ..., counted in the plans of one level of ranks. Prints a table in Markdown,
// which docs/algorithms.md shows. Needs neither MPI nor a network.
#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plan/choose/candidate.h"

namespace {

using namespace plait::plan;

// Ranks in order, so many on each switch; several such placements, over which the table has the mean.
struct Placements {
  std::string name;
  int ranks;
  std::vector<std::vector<int>> switches;
};

// So many ranks over switches of one size, of which the first has `left` free.
std::vector<int> filled(int ranks, int size, int left) {
  std::vector<int> switches = {left};
  for (ranks -= left; ranks > 0; ranks -= size) switches.push_back(std::min(ranks, size));
  return switches;
}

Placements aligned(int ranks, int size) {
  return {std::to_string(ranks) + " on full switches of " + std::to_string(size), ranks, {filled(ranks, size, size)}};
}

Placements anywhere(int ranks, int size) {
  Placements all{
      std::to_string(ranks) + " on switches of " + std::to_string(size) + ", from any rank of one", ranks, {}};
  for (int left = 1; left <= size; ++left) all.switches.push_back(filled(ranks, size, left));
  return all;
}

Placements at_random(int ranks, int most) {
  Placements all{std::to_string(ranks) + ", 1 to " + std::to_string(most) + " a switch at random", ranks, {}};
  std::mt19937 random(1);
  for (int draw = 0; draw < 100; ++draw) {
    std::vector<int>& switches = all.switches.emplace_back();
    for (int left = ranks, here = 0; left > 0; left -= here) {
      here = std::min(left, 1 + static_cast<int>(random() % static_cast<unsigned>(most)));
      switches.push_back(here);
    }
  }
  return all;
}

std::vector<int> switch_of(const std::vector<int>& switches) {
  std::vector<int> of;
  for (std::size_t i = 0; i < switches.size(); ++i)
    of.insert(of.end(), static_cast<std::size_t>(switches[i]), static_cast<int>(i));
  return of;
}

struct Crossing {
  double vectors = 0;  // bytes, in multiples of all the data
  double messages = 0;
};

void add_crossing(Crossing& sum, const LoweredPlan& plan, const std::vector<int>& switch_of) {
  for (std::size_t rank = 0; rank < plan.schedules.size(); ++rank) {
    const Schedule& schedule = plan.schedules[rank];
    for (const Step& step : schedule.steps) {
      if (step.kind != StepKind::send || switch_of[rank] == switch_of[static_cast<std::size_t>(step.peer)]) continue;
      ++sum.messages;
      for (std::uint32_t run = 0; run < step.source.count; ++run)
        sum.vectors += static_cast<double>(schedule.runs[step.source.first + run].count) / plan.semantics.blocks();
    }
  }
}

std::string cell(Collective collective, const char* program, const Placements& placements) {
  const Hierarchy hierarchy = Hierarchy::uniform_of(std::vector<int>{placements.ranks});
  const Candidate candidate{.name = program, .program = *parse_program(program)};
  const auto plan = lower(candidate, collective, 0, true, hierarchy);
  if (!plan.ok()) return "-";
  Crossing sum;
  for (const std::vector<int>& switches : placements.switches) add_crossing(sum, *plan, switch_of(switches));
  const auto count = static_cast<double>(placements.switches.size());
  char text[48];
  std::snprintf(text, sizeof text, "%.1f (%.0f)", sum.vectors / count, sum.messages / count);
  return text;
}

}  // namespace

int main() {
  const std::vector<Placements> rows = {aligned(64, 16),    anywhere(64, 16), anywhere(64, 12),  anywhere(64, 20),
                                        at_random(64, 32),  aligned(256, 32), anywhere(256, 32), anywhere(256, 24),
                                        at_random(256, 64), aligned(48, 16),  anywhere(48, 16),  anywhere(100, 24)};
  const std::vector<std::pair<Collective, std::vector<const char*>>> columns = {
      {Collective::bcast, {"BC.1(binomial)", "BC.1(bine)"}},
      {Collective::allgather, {"AG.1(rd)", "AG.1(diss)", "AG.1(ring)", "AG.1(bine)"}},
      {Collective::allreduce, {"AR.1(rh)", "AR.1(rd)", "AR.1(ring)", "AR.1(bine)"}}};
  std::string head = "| ranks |", line = "|---|";
  for (const auto& [collective, programs] : columns)
    for (const char* program : programs) head += " `" + std::string(program) + "` |", line += "---:|";
  std::printf("%s\n%s\n", head.c_str(), line.c_str());
  for (const Placements& row : rows) {
    std::printf("| %s |", row.name.c_str());
    for (const auto& [collective, programs] : columns)
      for (const char* program : programs) std::printf(" %s |", cell(collective, program, row).c_str());
    std::printf("\n");
  }
}
