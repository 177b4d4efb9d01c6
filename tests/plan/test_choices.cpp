// Golden tables: what the planner chooses on the default machine, for every collective and size.
//
// A line a collective: "FROM plan" for each size from which on another plan is chosen, up to 16 MiB (of a v-collective:
// of the largest segment's share times the ranks). A change of the cost model changes them: look at each line before it
// goes into the table.
#include <gtest/gtest.h>

#include <sstream>

#include "plan/choose/planner.h"

namespace plait::plan {
namespace {

std::string chosen(Planner& planner, Collective collective, std::size_t bytes, int ranks) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(ranks), bytes / 4 / static_cast<std::size_t>(ranks));
  Call call{.collective = collective, .count = bytes / 4, .element_bytes = 4};
  if (collective == Collective::barrier) call = {.collective = collective, .count = 0, .element_bytes = 0};
  if (collective == Collective::allgatherv || collective == Collective::reduce_scatter) {
    counts.front() += bytes / 4 % static_cast<std::size_t>(ranks);
    call.count = 0;
    call.counts = counts.data();
  }
  const Choice choice = planner.choose(call);
  return choice.plan == nullptr ? "none: " + std::string(choice.reason) : choice.plan->name;
}

std::string size_text(std::size_t bytes) {
  if (bytes >= 1 << 20) return std::to_string(bytes >> 20) + "M";
  return bytes >= 1 << 10 ? std::to_string(bytes >> 10) + "K" : std::to_string(bytes);
}

std::string choices(const std::vector<int>& ranks_per_node) {
  const Hierarchy hierarchy = Hierarchy::nodes_of(ranks_per_node);
  std::string table;
  for (int c = 0; c < planned_collectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    Planner planner(hierarchy, 0, {});
    std::string line = std::string(name(collective)) + ":", last;
    const std::size_t most = collective == Collective::barrier ? 8 : std::size_t{16} << 20;
    for (std::size_t bytes = 8; bytes <= most; bytes *= 2) {
      const std::string plan = chosen(planner, collective, bytes, hierarchy.ranks());
      if (plan != last) line += (last.empty() ? " " : " | ") + size_text(bytes) + " " + plan;
      last = plan;
    }
    table += line + "\n";
  }
  return table;
}

// Line by line, so that a failure names the collective.
void expect_choices(const std::vector<int>& ranks_per_node, const char* golden) {
  std::istringstream found(choices(ranks_per_node)), wanted(golden + 1);  // behind the literal's first line break
  std::string line, expected;
  while (std::getline(found, line)) {
    std::getline(wanted, expected);
    EXPECT_EQ(line, expected);
  }
  EXPECT_FALSE(std::getline(wanted, expected)) << expected;
}

TEST(Choices, TwoRanksOfANode) {
  expect_choices({2}, R"(
barrier: 8 AR.1(shared)
bcast: 8 BC.1(shared)
reduce: 8 RD.1(shared)
allreduce: 8 AR.1(shared)
allgather: 8 AG.1(shared)
allgatherv: 8 AG.1(shared)
gather: 8 GA.1(shared)
scatter: 8 SC.1(shared)
alltoall: 8 shared
reduce_scatter_block: 8 RS.1(shared)
reduce_scatter: 8 RS.1(shared)
)");
}

TEST(Choices, SixteenRanksOfANode) {
  expect_choices({16}, R"(
barrier: 8 AR.1(shared)
bcast: 8 BC.1(shared)
reduce: 8 RD.1(shared)
allreduce: 8 AR.1(shared)
allgather: 8 AG.1(shared)
allgatherv: 8 AG.1(shared)
gather: 8 GA.1(shared)
scatter: 8 SC.1(shared)
alltoall: 8 shared
reduce_scatter_block: 8 RS.1(shared)
reduce_scatter: 8 RS.1(shared)
)");
}

TEST(Choices, FourNodesOfTwo) {
  expect_choices({2, 2, 2, 2}, R"(
barrier: 8 AR.1(rd) AR.2(shared)
bcast: 8 BC.1(flat) BC.2(shared) | 4K SC.2(shared) BC.1(flat) AG.2(shared) | 16K SC.2(shared) BC.1(binomial) AG.2(shared) | 64K SC.2(shared) SC.1(direct) AG.1(direct) AG.2(shared) | 128K SC.2(shared) BC.1(chain) AG.2(shared) x8 | 256K SC.2(shared) BC.1(chain) AG.2(shared) x16 | 512K SC.2(shared) BC.1(chain) AG.2(shared) x32 | 2M SC.2(shared) BC.1(chain) AG.2(shared) x64
reduce: 8 RD.2(shared) RD.1(flat) | 4K RS.2(shared) RD.1(flat) GA.2(shared) | 16K RS.2(shared) RD.1(binomial) GA.2(shared) | 64K RS.2(shared) RS.1(direct) GA.1(direct) GA.2(shared) | 128K RS.2(shared) RD.1(chain) GA.2(shared) x8 | 256K RS.2(shared) RD.1(chain) GA.2(shared) x16 | 512K RS.2(shared) RD.1(chain) GA.2(shared) x32 | 2M RS.2(shared) RD.1(chain) GA.2(shared) x64
allreduce: 8 AR.2(shared) AR.1(rd) | 512 RS.2(shared) AR.1(rd) AG.2(shared) | 32K RS.2(shared) AR.1(rd) AG.2(shared) x2 | 128K RS.2(shared) AR.1(direct) AG.2(shared) x2 | 256K RS.2(shared) RS.1(direct) AG.1(direct) AG.2(shared) x2 | 512K RS.2(shared) RS.1(direct) AG.1(direct) AG.2(shared) x4 | 1M RS.2(shared) AR.1(direct) AG.2(shared) x4 | 2M RS.2(shared) AR.1(direct) AG.2(shared) x8 | 8M RS.2(shared) RS.1(direct) AG.1(rd) AG.2(shared) x16 | 16M RS.2(shared) RS.1(direct) AG.1(rd) AG.2(shared) x32
allgather: 8 AG.1(direct) AG.2(shared) | 16K AG.1(direct) AG.2(shared) x2 | 64K AG.1(direct) AG.2(shared) x4 | 256K AG.1(rd) AG.2(shared) x8 | 512K AG.1(rd) AG.2(shared) x16 | 2M AG.1(rd) AG.2(shared) x32 | 4M AG.1(rd) AG.2(shared) x64
allgatherv: 8 AG.1(direct) AG.2(shared) | 1M AG.1(direct) AG.2(shared) x2 | 4M AG.1(direct) AG.2(shared) x4 | 16M AG.1(rd) AG.2(shared) x8
gather: 8 GA.1(direct) GA.2(shared) | 32K GA.1(direct) GA.2(shared) x2 | 128K GA.1(direct) GA.2(shared) x4 | 512K GA.1(direct) GA.2(shared) x8 | 1M GA.1(direct) GA.2(shared) x16 | 2M GA.1(direct) GA.2(shared) x32 | 4M GA.1(direct) GA.2(shared) x64
scatter: 8 SC.2(shared) SC.1(direct) | 32K SC.2(shared) SC.1(direct) x2 | 128K SC.2(shared) SC.1(direct) x4 | 512K SC.2(shared) SC.1(direct) x8 | 1M SC.1(direct) SC.2(shared) x16 | 2M SC.1(direct) SC.2(shared) x32 | 4M SC.1(direct) SC.2(shared) x64
alltoall: 8 leaders | 16K pairwise
reduce_scatter_block: 8 none: the host is faster | 128 RS.2(shared) RS.1(direct) | 16K RS.2(shared) RS.1(direct) x2 | 64K RS.2(shared) RS.1(direct) x4 | 256K RS.2(shared) RS.1(rh) x8 | 512K RS.2(shared) RS.1(rh) x16 | 2M RS.2(shared) RS.1(rh) x32 | 4M RS.2(shared) RS.1(rh) x64
reduce_scatter: 8 none: the host is faster | 1K RS.2(shared) RS.1(direct) | 1M RS.2(shared) RS.1(direct) x2 | 4M RS.2(shared) RS.1(direct) x4 | 16M RS.2(shared) RS.1(rh) x8
)");
}

TEST(Choices, UnevenNodes) {
  expect_choices({3, 2, 1}, R"(
barrier: 8 RS.2(shared) RD.1(flat) BC.1(flat) AG.2(shared)
bcast: 8 BC.1(flat) BC.2(shared) | 4K SC.2(shared) BC.1(flat) AG.2(shared) | 64K SC.2(shared) BC.1(chain) AG.2(shared) x4 | 128K SC.2(shared) SC.1(direct) AG.1(direct) AG.2(shared) | 256K BC.12(chain) x16 | 512K SC.2(shared) BC.1(chain) AG.2(shared) x16 | 2M SC.2(shared) BC.1(chain) AG.2(shared) x32 | 8M SC.2(shared) BC.1(chain) AG.2(shared) x64
reduce: 8 RD.2(shared) RD.1(flat) | 4K RS.2(shared) RD.1(flat) GA.2(shared) | 64K RS.2(shared) RD.1(chain) GA.2(shared) x4 | 128K RS.2(shared) RS.1(direct) GA.1(direct) GA.2(shared) | 256K RD.12(chain) x16 | 512K RS.2(shared) RD.1(chain) GA.2(shared) x16 | 2M RS.2(shared) RD.1(chain) GA.2(shared) x32 | 8M RS.2(shared) RD.1(chain) GA.2(shared) x64
allreduce: 8 RS.2(shared) RD.1(flat) BC.1(flat) AG.2(shared) | 8K RS.2(shared) RS.1(direct) AG.1(direct) AG.2(shared) | 32K RS.2(shared) AR.1(direct) AG.2(shared) | 64K RS.2(shared) RS.1(direct) AG.1(direct) AG.2(shared) | 256K RS.2(shared) RS.1(direct) AG.1(direct) AG.2(shared) x2 | 512K RS.2(shared) AR.1(direct) AG.2(shared) x2 | 1M RS.2(shared) RS.1(direct) AG.1(direct) AG.2(shared) x4 | 2M RS.2(shared) AR.1(direct) AG.2(shared) x4 | 4M RS.2(shared) RS.1(direct) AG.1(direct) AG.2(shared) x8 | 8M RS.2(shared) AR.1(direct) AG.2(shared) x8 | 16M RS.2(shared) AR.1(direct) AG.2(shared) x16
allgather: 8 AG.1(direct) AG.2(shared) | 32K AG.1(direct) AG.2(shared) x2 | 128K AG.1(direct) AG.2(shared) x4 | 512K AG.1(direct) AG.2(shared) x8 | 1M AG.1(direct) AG.2(shared) x16 | 2M AG.1(direct) AG.2(shared) x32 | 4M AG.1(direct) AG.2(shared) x64
allgatherv: 8 AG.1(direct) AG.2(shared) | 1M AG.1(direct) AG.2(shared) x2 | 4M AG.1(direct) AG.2(shared) x4 | 16M AG.1(direct) AG.2(shared) x8
gather: 8 GA.1(direct) GA.2(shared) | 64K GA.1(direct) GA.2(shared) x2 | 256K GA.1(direct) GA.2(shared) x4 | 512K GA.1(direct) GA.2(shared) x8 | 1M GA.1(direct) GA.2(shared) x16 | 2M GA.1(direct) GA.2(shared) x32 | 4M GA.1(direct) GA.2(shared) x64
scatter: 8 SC.2(shared) SC.1(direct) | 64K SC.2(shared) SC.1(direct) x2 | 256K SC.2(shared) SC.1(direct) x4 | 512K SC.2(shared) SC.1(direct) x8 | 1M SC.2(shared) SC.1(direct) x16 | 2M SC.2(shared) SC.1(direct) x32 | 4M SC.2(shared) SC.1(direct) x64
alltoall: 8 leaders | 8K pairwise
reduce_scatter_block: 8 none: the host is faster | 128 RS.2(shared) RS.1(direct) | 32K RS.2(shared) RS.1(direct) x2 | 128K RS.2(shared) RS.1(direct) x4 | 512K RS.2(shared) RS.1(direct) x8 | 1M RS.2(shared) RS.1(direct) x16 | 2M RS.2(shared) RS.1(direct) x32 | 4M RS.2(shared) RS.1(direct) x64
reduce_scatter: 8 none: the host is faster | 1K RS.2(shared) RS.1(direct) | 1M RS.2(shared) RS.1(direct) x2 | 4M RS.2(shared) RS.1(direct) x4 | 16M RS.2(shared) RS.1(direct) x8
)");
}

}  // namespace
}  // namespace plait::plan
