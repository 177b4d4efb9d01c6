// What is asked for: parsing, checking, shards and unit tasks.
#include <gtest/gtest.h>

#include <map>

#include "plan/reshard/unit_tasks.h"
#include "tests/plan/reshard/random_task.h"

namespace plait::plan::reshard {
namespace {

constexpr unsigned seed = 20261122;

Task task_of(const std::string& source, const std::string& destination, std::vector<int> dims,
             std::vector<std::int64_t> shape) {
  Task task;
  task.source = consecutive_mesh(dims, 0);
  task.destination = consecutive_mesh(dims, static_cast<int>(task.source.ranks.size()));
  task.source_spec = *parse_spec(source, "src_spec");
  task.destination_spec = *parse_spec(destination, "dst_spec");
  task.shape = std::move(shape);
  task.element_bytes = 4;
  return task;
}

std::string refusal(const Task& task, int ranks = 16) { return check(task, ranks).message(); }

TEST(Spec, IsReadAndWritten) {
  for (const char* spec : {"S0R", "S01R", "RS1R", "R", "S10S2RR"}) {
    const auto parsed = parse_spec(spec, "src_spec");
    ASSERT_TRUE(parsed.ok()) << spec;
    EXPECT_EQ(text(*parsed), spec);
  }
}

TEST(Spec, NamesTheArgumentOfWhatItRefuses) {
  for (const char* spec : {"", "S", "SR", "0R", "R0", "s0R", "S0 R", "RRRRRRRRR", "S0X", "\x01", "RS"}) {
    const auto parsed = parse_spec(spec, "dst_spec");
    ASSERT_FALSE(parsed.ok()) << spec;
    EXPECT_EQ(parsed.status().message().rfind("dst_spec: ", 0), 0u) << parsed.status().message();
  }
}

TEST(Dims, AreReadStrictly) {
  EXPECT_EQ(*parse_dims("2x4", "m"), (std::vector<int>{2, 4}));
  EXPECT_EQ(*parse_shape("1024,7", "s"), (std::vector<std::int64_t>{1024, 7}));
  for (const char* text : {"", "x", "2x", "x2", "2xx4", "0x2", "-1", "2,4", "99999999999", "1x1x1x1x1x1x1x1x1", "2x4 "})
    EXPECT_FALSE(parse_dims(text, "m").ok()) << text;
  EXPECT_FALSE(parse_shape("99999999999999999999", "s").ok());
}

TEST(Check, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(check(task_of("S0R", "RS1", {2, 4}, {8, 8}), 16).ok());
  EXPECT_NE(refusal(task_of("S0S0", "RR", {2, 4}, {8, 8})).find("src_spec: \"S0S0\": mesh dimension 0 is used twice"),
            std::string::npos);
  EXPECT_NE(refusal(task_of("S01R", "S1S01", {2, 4}, {8, 8})).find("dst_spec"), std::string::npos);
  EXPECT_NE(refusal(task_of("S2R", "RR", {2, 4}, {8, 8})).find("no dimension 2"), std::string::npos);
  EXPECT_NE(refusal(task_of("S0RR", "RRR", {2, 4}, {8, 8})).find("src_spec"), std::string::npos);
  EXPECT_NE(refusal(task_of("S0R", "RR", {2, 4}, {8, 8}), 15).find("dst_mesh: rank 15"), std::string::npos);
  EXPECT_NE(refusal(task_of("RR", "RR", {2, 4}, {8, 0})).find("shape"), std::string::npos);
  const std::int64_t huge = std::int64_t{1} << 31;
  EXPECT_NE(refusal(task_of("RR", "RR", {2, 4}, {huge, huge})).find("shape"), std::string::npos);
  EXPECT_TRUE(check(task_of("RR", "RR", {2, 4}, {huge, huge >> 4}), 16).ok());
  Task twice = task_of("RR", "RR", {2, 4}, {8, 8});
  twice.source.ranks[1] = 0;
  EXPECT_NE(refusal(twice).find("src_mesh: rank 0 is named twice"), std::string::npos);
  Task few = task_of("RR", "RR", {2, 4}, {8, 8});
  few.destination.ranks.pop_back();
  EXPECT_NE(refusal(few).find("dst_mesh"), std::string::npos);
  Task nothing = task_of("RR", "RR", {2, 4}, {8, 8});
  nothing.element_bytes = 0;
  EXPECT_NE(refusal(nothing).find("element"), std::string::npos);
}

// The figure 2 of the paper: the second dimension of the mesh replicates.
TEST(Shard, FollowsTheSpec) {
  const Mesh mesh = consecutive_mesh({2, 2}, 0);
  const auto rows = [&](const char* spec, int place) {
    return shard(mesh, *parse_spec(spec, "s"), {4, 4}, place).extent[0];
  };
  EXPECT_EQ(rows("S01R", 1), (Extent{1, 2}));
  EXPECT_EQ(rows("S10R", 1), (Extent{2, 3}));
  EXPECT_EQ(rows("S0R", 1), (Extent{0, 2}));
  EXPECT_EQ(rows("S1R", 1), (Extent{2, 4}));
  EXPECT_EQ(rows("RS0", 1), (Extent{0, 4}));
}

TEST(Shard, MakesTheLastPartsShorter) {
  const Mesh mesh = consecutive_mesh({4}, 0);
  const auto part = [&](std::int64_t length, int place) {
    return shard(mesh, *parse_spec("S0", "s"), {length}, place).extent[0];
  };
  EXPECT_EQ(part(10, 2), (Extent{6, 9}));
  EXPECT_EQ(part(10, 3), (Extent{9, 10}));
  EXPECT_EQ(part(5, 2), (Extent{4, 5}));
  EXPECT_EQ(part(5, 3), (Extent{5, 5}));
}

TEST(UnitTasks, OfFullyShardedMeshesAreAllPairs) {
  EXPECT_EQ(cut(task_of("S01RR", "RS01R", {2, 4}, {8, 8, 8})).tasks.size(), 64u);
  EXPECT_EQ(cut(task_of("S0RR", "RS1R", {2, 4}, {1024, 1024, 512})).tasks.size(), 8u);
  EXPECT_EQ(cut(task_of("S01R", "S01R", {2, 4}, {8, 8})).tasks.size(), 8u);
}

// Every element that a rank wants is in exactly one task that it receives, and all holders of that have it.
TEST(UnitTasks, CoverWhatEveryRankWantsOnce) {
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    const int ranks = draw(random, 1, 8);
    const Task task = random_task(random, ranks, 7);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(task));
    ASSERT_TRUE(check(task, ranks).ok()) << check(task, ranks).message();
    const UnitTasks unit = cut(task);
    std::map<int, std::int64_t> received;
    for (const UnitTask& one : unit.tasks) {
      EXPECT_EQ(one.bytes, static_cast<std::uint64_t>(one.box.elements()) * task.element_bytes);
      for (const int rank : unit.receivers(one)) received[rank] += one.box.elements();
      EXPECT_EQ(intersection(one.box, unit.sources[static_cast<std::size_t>(one.source)].box), one.box);
    }
    for (std::size_t place = 0; place < task.destination.ranks.size(); ++place) {
      const Box wanted = shard(task.destination, task.destination_spec, task.shape, static_cast<int>(place));
      EXPECT_EQ(received[task.destination.ranks[place]], wanted.elements());
    }
    for (std::size_t a = 0; a < unit.tasks.size(); ++a)
      for (std::size_t b = a + 1; b < unit.tasks.size(); ++b) {
        if (unit.tasks[a].destination != unit.tasks[b].destination) continue;
        EXPECT_EQ(intersection(unit.tasks[a].box, unit.tasks[b].box).elements(), 0);
      }
  }
}

}  // namespace
}  // namespace plait::plan::reshard
