// How often a communicator's calls are tried between devices.
#include "runtime/device/device_calls.h"

#include <gtest/gtest.h>

namespace plait::runtime {
namespace {

using Outcome = tl::DeviceCollective::Outcome;
constexpr ShmCollectiveKind sum = ShmCollectiveKind::all_reduce;

int asked(DeviceCalls& calls, int times, Outcome outcome) {
  int asked = 0;
  for (int call = 0; call < times; ++call)
    if (calls.is_due(sum, 1 << 20)) {
      ++asked;
      calls.note(sum, outcome);
    }
  return asked;
}

TEST(DeviceCalls, AreNotTriedWhereTheyAreNotAllowedOrShort) {
  DeviceCalls calls;
  EXPECT_FALSE(calls.allowed());
  calls.allow(0);
  EXPECT_TRUE(calls.allowed());
  EXPECT_FALSE(calls.is_due(sum, DeviceCalls::usual_from - 1));
  EXPECT_TRUE(calls.is_due(sum, DeviceCalls::usual_from));
  EXPECT_EQ(calls.shared_from(), DeviceCalls::usual_shared_from);
  DeviceCalls always;
  always.allow(1);
  EXPECT_TRUE(always.is_due(sum, 1));
  EXPECT_EQ(always.shared_from(), 1u);
}

TEST(DeviceCalls, AreTriedLessOftenWhereThatWasInVain) {
  DeviceCalls calls;
  calls.allow(0);
  EXPECT_EQ(asked(calls, 100, Outcome::done), 100);
  EXPECT_LE(asked(calls, 10'000, Outcome::elsewhere), 10'000 / 63 + 6);
  EXPECT_TRUE(calls.is_due(ShmCollectiveKind::broadcast, 1 << 20)) << "another collective";
  while (!calls.is_due(sum, 1 << 20)) continue;
  calls.note(sum, Outcome::done);
  EXPECT_EQ(asked(calls, 100, Outcome::done), 100);
}

TEST(DeviceCalls, EndWhereADriverRefuses) {
  DeviceCalls calls;
  calls.allow(1);
  EXPECT_TRUE(calls.is_due(sum, 100));
  calls.note(sum, Outcome::refused);
  EXPECT_EQ(asked(calls, 1000, Outcome::done), 0);
  EXPECT_FALSE(calls.is_due(ShmCollectiveKind::broadcast, 1 << 20));
}

}  // namespace
}  // namespace plait::runtime
