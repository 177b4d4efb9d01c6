#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/measure/collective_calls.h"
#include "tuner/text/bench_report.h"
#include "tuner/text/job_shape.h"

namespace plait::tuner {
namespace {

JobShape job_on(const std::vector<std::uint64_t>& hosts) {
  std::vector<Location> locations(hosts.size());
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) locations[rank].host.low = hosts[rank];
  return shape_of(locations);
}

TEST(BenchJob, MappingIsNamedByHowRanksFollowEachOther) {
  EXPECT_EQ(mapping(job_on({7, 7, 3, 3})), "slot");
  EXPECT_EQ(mapping(job_on({7, 3, 7, 3})), "node");
  EXPECT_EQ(mapping(job_on({7, 3, 3, 7})), "other");
  EXPECT_EQ(mapping(job_on({7, 7, 7, 3})), "slot");
  EXPECT_EQ(mapping(job_on({5, 5})), "slot");
  EXPECT_EQ(mapping(job_on({5, 6})), "slot");
}

TEST(BenchJob, EqualNodesMustDivideTheRanks) {
  const auto job = equal_nodes(6, 3);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->node_of, (std::vector<int>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(job->ranks_on_node, (std::vector<int>{2, 2, 2}));
  EXPECT_FALSE(equal_nodes(6, 4).ok());
  EXPECT_FALSE(equal_nodes(6, 0).ok());
  EXPECT_FALSE(equal_nodes(6, 12).ok());
}

TEST(BenchJob, BoundsOfFourNodesOfTwoRanks) {
  const JobShape job = *equal_nodes(8, 4);
  const auto bytes = [&](Collective collective) { return nic_bytes(job, collective, 1000, 0); };
  EXPECT_EQ(bytes(Collective::barrier), 0);
  EXPECT_EQ(bytes(Collective::bcast), 1000);
  EXPECT_EQ(bytes(Collective::reduce), 1000);
  EXPECT_EQ(bytes(Collective::allreduce), 1500);
  EXPECT_EQ(bytes(Collective::allgather), 6000);
  EXPECT_EQ(bytes(Collective::allgatherv), 6000);
  EXPECT_EQ(bytes(Collective::gather), 6000);
  EXPECT_EQ(bytes(Collective::scatter), 6000);
  EXPECT_EQ(bytes(Collective::alltoall), 12000);
  EXPECT_EQ(bytes(Collective::reduce_scatter_block), 750);
  EXPECT_EQ(bytes(Collective::reduce_scatter), 750);
}

TEST(BenchJob, BoundsOfUnequalNodes) {
  const JobShape job = job_on({1, 1, 1, 2});
  EXPECT_EQ(nic_bytes(job, Collective::allgather, 100, 0), 300);
  EXPECT_EQ(nic_bytes(job, Collective::gather, 100, 0), 100);
  EXPECT_EQ(nic_bytes(job, Collective::gather, 100, 3), 300);
  EXPECT_EQ(nic_bytes(job, Collective::alltoall, 100, 0), 300);
  EXPECT_EQ(nic_bytes(job, Collective::reduce_scatter, 100, 0), 75);
}

TEST(BenchJob, OneNodeHasNoBound) {
  for (int collective = 0; collective < collective_count; ++collective) {
    EXPECT_EQ(nic_bytes(job_on({1, 1}), static_cast<Collective>(collective), 100, 0), 0);
  }
}

TEST(BenchCall, SizesAreRoundedUpToWholeElements) {
  EXPECT_EQ(*measurable_bytes(Collective::barrier, 100, 3), 0u);
  EXPECT_EQ(*measurable_bytes(Collective::bcast, 7, 3), 7u);
  EXPECT_EQ(*measurable_bytes(Collective::allreduce, 7, 3), 8u);
  EXPECT_EQ(*measurable_bytes(Collective::reduce_scatter, 8, 3), 8u);
  EXPECT_EQ(*measurable_bytes(Collective::reduce_scatter_block, 8, 3), 12u);
}

TEST(BenchCall, BuffersStayCountable) {
  const std::size_t most = 2147483647;
  EXPECT_TRUE(measurable_bytes(Collective::bcast, most, 2).ok());
  EXPECT_FALSE(measurable_bytes(Collective::bcast, most + 1, 2).ok());
  EXPECT_FALSE(measurable_bytes(Collective::allreduce, most, 2).ok());  // rounded up it is too large
  EXPECT_TRUE(measurable_bytes(Collective::alltoall, most / 4, 4).ok());
  EXPECT_FALSE(measurable_bytes(Collective::alltoall, most / 4 + 1, 4).ok());
  EXPECT_FALSE(measurable_bytes(Collective::allgather, ~std::size_t{0}, 4).ok());
}

BenchHeading heading_with_rate() { return {.job = *equal_nodes(8, 4), .root = 0, .rate_bytes_per_second = 31.25e6}; }

BenchRow allreduce_row() {
  return {.collective = Collective::allreduce,
          .bytes = 1 << 20,
          .measured =
              {.host_seconds = 0.1, .plait_seconds = 0.05, .batches = 5, .plan = "ring", .channels = {"shm", "mpi"}},
          .bound_seconds = 0.04};
}

BenchRow barrier_row() {
  return {.collective = Collective::barrier,
          .bytes = 0,
          .measured = {.host_seconds = 4.2e-6, .plait_seconds = 8.4e-6, .batches = 5, .plan = "host", .channels = {}},
          .bound_seconds = {}};
}

TEST(BenchReport, ATableHasItsColumnsAligned) {
  const BenchHeading heading = heading_with_rate();
  EXPECT_EQ(bench_heading_text(heading, BenchFormat::table) +
                bench_row_text(heading, allreduce_row(), BenchFormat::table) +
                bench_row_text(heading, barrier_row(), BenchFormat::table),
            "8 ranks on 4 nodes, mapping slot, NICs of 31.25 MB/s, root 0\n"
            "\n"
            "collective                 size     host us    Plait us    ratio   of bound  plan\n"
            "allreduce                 1 MiB      100000       50000     2.00     80.0 %  ring (shm,mpi)\n"
            "barrier                       -        4.20        8.40     0.50          -  host\n");
}

TEST(BenchReport, SaysOfHowManyRailsAndWhatIsOnTrial) {
  BenchHeading heading = heading_with_rate();
  heading.rails = 2;
  BenchRow row = allreduce_row();
  row.measured.on_trial = true;
  EXPECT_NE(bench_heading_text(heading, BenchFormat::table).find("NICs of 31.25 MB/s (2 rails), root 0"),
            std::string::npos);
  EXPECT_NE(bench_row_text(heading, row, BenchFormat::table).find("ring (shm,mpi), on trial\n"), std::string::npos);
  EXPECT_EQ(bench_json(heading, {row})["rows"][0]["on_trial"], true);
}

TEST(BenchReport, MarkdownHasARuleBelowItsTitles) {
  BenchHeading heading = heading_with_rate();
  heading.rate_bytes_per_second.reset();
  EXPECT_EQ(bench_heading_text(heading, BenchFormat::markdown) +
                bench_row_text(heading, allreduce_row(), BenchFormat::markdown),
            "8 ranks on 4 nodes, mapping slot, root 0\n"
            "\n"
            "| collective | size | host us | Plait us | ratio | plan |\n"
            "| --- | ---: | ---: | ---: | ---: | --- |\n"
            "| allreduce | 1 MiB | 100000 | 50000 | 2.00 | ring (shm,mpi) |\n");
}

TEST(BenchReport, JsonHasNullWhereThereIsNoBound) {
  const auto json = bench_json(heading_with_rate(), {allreduce_row(), barrier_row()});
  EXPECT_EQ(json["ranks"], 8);
  EXPECT_EQ(json["nodes"], 4);
  EXPECT_EQ(json["mapping"], "slot");
  const auto& allreduce = json["rows"][0];
  EXPECT_EQ(allreduce["collective"], "allreduce");
  EXPECT_EQ(allreduce["bytes"], 1048576);
  EXPECT_EQ(allreduce["host_us"], 100000);
  EXPECT_EQ(allreduce["plait_us"], 50000);
  EXPECT_EQ(allreduce["ratio"], 2);
  EXPECT_EQ(allreduce["bound_us"], 40000);
  EXPECT_EQ(allreduce["bound_share"], 0.8);
  EXPECT_EQ(allreduce["plan"], "ring");
  EXPECT_EQ(allreduce["channels"], (std::vector<std::string>{"shm", "mpi"}));
  EXPECT_EQ(allreduce["on_trial"], false);
  EXPECT_EQ(json["rails"], 1);
  EXPECT_TRUE(json["rows"][1]["bound_us"].is_null());
  EXPECT_TRUE(json["rows"][1]["bound_share"].is_null());
}

}  // namespace
}  // namespace plait::tuner
