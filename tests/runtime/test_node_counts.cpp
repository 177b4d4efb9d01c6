// What the report says about private and shared buffers.
#include <gtest/gtest.h>

#include "runtime/record/node_counts.h"
#include "runtime/report/node_report.h"

namespace plait::runtime {
namespace {

TEST(SharedMemoryAdvice, NamesTheSwitchWhereLargeCallsHavePrivateBuffers) {
  const BufferCounts counts{.shared_calls = 1, .private_calls = 9, .shared_bytes = 1 << 20, .private_bytes = 9 << 20};
  const std::string advice = shared_memory_advice(counts, "mpi");
  EXPECT_NE(advice.find("9 of 10 collectives"), std::string::npos) << advice;
  EXPECT_NE(advice.find("PLAIT_SHARED=malloc would"), std::string::npos) << advice;
  EXPECT_EQ(shared_memory_advice(counts, "malloc").find("PLAIT_SHARED=malloc would"), std::string::npos);
  EXPECT_NE(shared_memory_advice(counts, "malloc"), "");
}

TEST(SharedMemoryAdvice, SaysNothingWhereThereIsNothingToGain) {
  EXPECT_EQ(shared_memory_advice({}, "mpi"), "");
  EXPECT_EQ(
      shared_memory_advice({.shared_calls = 5, .private_calls = 0, .shared_bytes = 5 << 20, .private_bytes = 0}, "mpi"),
      "");
  const BufferCounts mostly_shared{
      .shared_calls = 9, .private_calls = 1, .shared_bytes = 9 << 20, .private_bytes = 1 << 20};
  EXPECT_EQ(shared_memory_advice(mostly_shared, "mpi"), "");
}

TEST(SharedMemoryAdvice, CountsLargeCallsOnly) {
  note_buffers(large_call_bytes - 1, false);
  note_buffers(large_call_bytes, false);
  note_buffers(2 * large_call_bytes, true);
  const BufferCounts counts = buffer_counts();
  EXPECT_EQ(counts.private_calls, 1u);
  EXPECT_EQ(counts.private_bytes, large_call_bytes);
  EXPECT_EQ(counts.shared_calls, 1u);
  EXPECT_EQ(counts.shared_bytes, 2 * large_call_bytes);
}

}  // namespace
}  // namespace plait::runtime
