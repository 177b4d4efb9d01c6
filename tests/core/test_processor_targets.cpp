#include "core/processor_targets.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace plait::detail {
namespace {

TEST(ProcessorTargets, AreThoseThatHighwayFinds) {
  constexpr std::int64_t ours = HWY_SSE4 | HWY_AVX2 | HWY_AVX3;
  EXPECT_EQ(processor_targets(), hwy::SupportedTargets() & ours);
}

}  // namespace
}  // namespace plait::detail
