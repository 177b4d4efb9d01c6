#include "runtime/job/attendance.h"

#include <gtest/gtest.h>

#include <vector>

namespace plait::runtime {
namespace {

struct Called {
  Attendance found;
  int asked = 0;
};

Called call(const std::vector<bool>& answers) {
  Called called;
  called.found = call_roll(static_cast<int>(answers.size()), [&](int rank) {
    ++called.asked;
    return static_cast<bool>(answers[static_cast<std::size_t>(rank)]);
  });
  return called;
}

TEST(Attendance, AllArePresent) {
  const Called called = call({true, true, true});
  EXPECT_TRUE(called.found.known);
  EXPECT_FALSE(called.found.some_absent());
  EXPECT_EQ(called.asked, 3);
}

TEST(Attendance, WhoAsksNamesTheFirstOfEach) {
  const Called last = call({true, true, false, true, false});
  EXPECT_TRUE(last.found.some_absent());
  EXPECT_EQ(last.found.first_present, 0);
  EXPECT_EQ(last.found.first_absent, 2);
  EXPECT_EQ(last.asked, 3);

  const Called first = call({false, false, true, true});
  EXPECT_TRUE(first.found.some_absent());
  EXPECT_EQ(first.found.first_present, 2);
  EXPECT_EQ(first.found.first_absent, 0);
  EXPECT_EQ(first.asked, 3);
}

TEST(Attendance, NothingIsKnownWhereNotEvenTheAskersAnswerIsThere) {
  const Called called = call({false, false});
  EXPECT_FALSE(called.found.known);
  EXPECT_FALSE(called.found.some_absent());
}

}  // namespace
}  // namespace plait::runtime
