// Threads that compute have a core each before any two share one.
#include "topo/core_order.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace plait::topo {
namespace {

using Order = std::vector<int>;

Order order_of(const std::string& machine, std::initializer_list<int> usable) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : usable) CPU_SET(processor, &set);
  const Result<std::vector<int>> order =
      processors_by_core(set, {.kind = TopologySource::Kind::synthetic, .text = machine});
  EXPECT_TRUE(order.ok()) << order.status().message();
  return order.ok() ? order.value() : Order{};
}

TEST(ProcessorsByCore, TakesOneOfEachCoreFirst) {
  EXPECT_EQ(order_of("package:1 core:3 pu:2", {0, 1, 2, 3, 4, 5}), (Order{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(order_of("package:2 core:2 pu:3", {1, 2, 3, 9, 11}), (Order{1, 3, 9, 2, 11}));
}

TEST(ProcessorsByCore, TakesOnlyWhatMayBeUsedAndIsThere) {
  EXPECT_EQ(order_of("package:1 core:4 pu:1", {3, 1}), (Order{1, 3}));
  EXPECT_EQ(order_of("package:1 core:4 pu:1", {4, 1023}), (Order{}));
}

TEST(ProcessorsByCore, SaysWhatIsWrongWithAMachine) {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_FALSE(processors_by_core(set, {.kind = TopologySource::Kind::synthetic, .text = "nonsense"}).ok());
}

}  // namespace
}  // namespace plait::topo
