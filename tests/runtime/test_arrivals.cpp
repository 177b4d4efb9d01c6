// The rate of pieces by when they arrived.
#include "runtime/team/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plait::runtime {
namespace {

TEST(Arrivals, AreALine) {
  Arrivals arrivals(20);
  EXPECT_EQ(arrivals.seconds_a_piece(), 0);
  arrivals.add(7);
  EXPECT_EQ(arrivals.seconds_a_piece(), 0) << "one says nothing";
  for (int piece = 1; piece < 20; ++piece) {
    arrivals.add(7 + 0.25 * piece);
    EXPECT_NEAR(arrivals.seconds_a_piece(), 0.25, 1e-12) << piece;
  }
  arrivals.clear();
  EXPECT_EQ(arrivals.seconds_a_piece(), 0);
}

// The receiver was away for a while, and found what had come meanwhile at once: at the begin, in the middle or at the
// end.
TEST(Arrivals, ALateReceiverDoesNotCount) {
  constexpr int pieces = 64, away = 14;
  for (const int from : {0, 20, pieces - away}) {
    Arrivals arrivals(pieces);
    for (int piece = 0; piece < pieces; ++piece)
      arrivals.add(piece >= from && piece < from + away ? from + away : piece);
    EXPECT_NEAR(arrivals.seconds_a_piece(), 1, 0.01) << "from " << from;
  }
}

}  // namespace
}  // namespace plait::runtime
