#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "core/fiber.h"

namespace plait {
namespace {

TEST(Fiber, RunsAPartAtATime) {
  std::vector<int> order;
  Fiber fiber([&] {
    order.push_back(1);
    Fiber::pause();
    order.push_back(3);
    Fiber::pause();
    order.push_back(5);
  });
  EXPECT_TRUE(order.empty()) << "it begins with the first resume()";
  EXPECT_FALSE(fiber.resume());
  order.push_back(2);
  EXPECT_FALSE(fiber.resume());
  order.push_back(4);
  EXPECT_TRUE(fiber.resume());
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4, 5}));
  EXPECT_TRUE(fiber.resume()) << "an ended one stays so";
}

TEST(Fiber, KnowsWhetherItRuns) {
  bool within = false;
  Fiber fiber([&] {
    within = Fiber::inside();
    Fiber::pause();
  });
  EXPECT_FALSE(Fiber::inside());
  fiber.resume();
  EXPECT_TRUE(within);
  EXPECT_FALSE(Fiber::inside());
  fiber.resume();
  EXPECT_FALSE(Fiber::inside());
}

// Deep calls, which pause in the middle, keep their locals.
int sum_down(int depth) {
  std::string local(100, static_cast<char>('a' + depth % 26));
  if (depth % 100 == 0) Fiber::pause();
  const int below = depth == 0 ? 0 : sum_down(depth - 1);
  return below + (local == std::string(100, static_cast<char>('a' + depth % 26)) ? depth : -1'000'000);
}

TEST(Fiber, KeepsItsStack) {
  int sum = 0;
  Fiber fiber([&] { sum = sum_down(1000); });
  int resumes = 1;
  while (!fiber.resume()) ++resumes;
  EXPECT_EQ(resumes, 12);
  EXPECT_EQ(sum, 1000 * 1001 / 2);
}

TEST(Fiber, SeveralTakeTurns) {
  std::string order;
  const auto body = [&](char name) {
    return [&order, name] {
      for (int i = 0; i < 3; ++i) {
        order += name;
        Fiber::pause();
      }
    };
  };
  Fiber first(body('a')), second(body('b'));
  for (bool first_ended = false, second_ended = false; !first_ended || !second_ended;) {
    first_ended = first.resume();
    second_ended = second.resume();
  }
  EXPECT_EQ(order, "ababab");
}

TEST(Fiber, CatchesItsOwnExceptions) {
  bool caught = false;
  Fiber fiber([&] {
    try {
      Fiber::pause();
      throw std::runtime_error("within");
    } catch (const std::exception&) {
      Fiber::pause();
      caught = true;
    }
  });
  EXPECT_FALSE(fiber.resume());
  EXPECT_FALSE(fiber.resume());
  EXPECT_TRUE(fiber.resume());
  EXPECT_TRUE(caught);
}

TEST(Fiber, MayBeAbandoned) {
  { Fiber never([] {}); }
  Fiber paused([] { Fiber::pause(); });
  EXPECT_FALSE(paused.resume());
}

}  // namespace
}  // namespace plait
