// Shapes of communicators as text.
#include <gtest/gtest.h>

#include "topo/shape.h"

namespace plait::topo {
namespace {

std::string again(std::string_view text) {
  const auto shape = parse_shape(text);
  const auto usual = usual_shape(text);
  EXPECT_EQ(usual.ok(), shape.ok());
  if (shape.ok() && usual.ok()) {
    EXPECT_EQ(*usual, shape_text(shape->hierarchy, shape->siblings));
  }
  return shape.ok() ? shape_text(shape->hierarchy, shape->siblings) : shape.status().message();
}

TEST(Shape, ComesBackFromItsText) {
  for (const char* text : {"4x2", "1x8", "4x1", "4x2x8", "2x2x3x2", "1x2x2x2x2x2", "2/4x2", "2/2x1", "3,2,1", "4x1*8",
                           "3,2,1*1.5", "64x2x32"})
    EXPECT_EQ(again(text), text);
}

TEST(Shape, OnesWithinANodeAreLeftOut) {
  EXPECT_EQ(again("4x1x2"), "4x2");
  EXPECT_EQ(again("4"), "4x1");
  EXPECT_EQ(again("2,2,2"), "3x2");
  EXPECT_EQ(again("4x2*1"), "4x2");
  EXPECT_EQ(again("2/1x4"), "2x4");
  EXPECT_EQ(again("1,1,1"), "3x1");
}

TEST(Shape, SaysWhatIsWhere) {
  const auto shape = parse_shape("2/3x2x4*2");
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->hierarchy.describe(), "[2 switch, 3 node, 2 package, 4 core]");
  EXPECT_EQ(shape->hierarchy.nodes(), 6);
  EXPECT_EQ(shape->siblings, 2);
  EXPECT_EQ(parse_shape("1x4")->hierarchy.nodes(), 1);
  EXPECT_EQ(parse_shape("4x1")->hierarchy.nodes(), 4);
}

TEST(Shape, RanksThatNothingTellsApartHaveTheSameText) {
  EXPECT_EQ(shape_text(Hierarchy::nodes_of(std::vector<int>{2, 2, 2, 2}), 1), "4x2");
  EXPECT_EQ(shape_text(Hierarchy::nodes_of(std::vector<int>{4}), 1), "1x4");
  EXPECT_EQ(shape_text(Hierarchy::nodes_of(std::vector<int>{3, 2}), 2), "3,2*2");
}

TEST(Shape, UnevenLevelsWithinANodeHaveNoText) {
  std::vector<Location> locations(7);
  for (int rank = 0; rank < 7; ++rank) {
    locations[static_cast<std::size_t>(rank)].host.low = rank < 4 ? 0 : 1;
    locations[static_cast<std::size_t>(rank)].package = rank % 2;
    locations[static_cast<std::size_t>(rank)].core = rank;
  }
  EXPECT_EQ(shape_text(Hierarchy::from_locations(locations), 1), "");
}

TEST(Shape, WhatIsWrongIsRefused) {
  for (const char* text : {"",
                           "x",
                           "4x",
                           "x4",
                           "0",
                           "4x0",
                           "-1x2",
                           "4x2x",
                           "4 x2",
                           "4x2*",
                           "4x2*0.5",
                           "4x2*nan",
                           "4x2*inf",
                           "1/4x2",
                           "2/",
                           "/4",
                           "3,,2",
                           "3,0",
                           "3,2,",
                           "1048577",
                           "2048x1024",
                           "65536x65536",
                           "2x2x2x2x2x2x2",
                           "99999999999",
                           "2/2/2",
                           "4x2,3"}) {
    const auto shape = parse_shape(text);
    ASSERT_FALSE(shape.ok()) << text;
    EXPECT_EQ(shape.status().code(), Code::invalid);
    EXPECT_NE(shape.status().message().find("expected"), std::string::npos);
  }
}

}  // namespace
}  // namespace plait::topo
