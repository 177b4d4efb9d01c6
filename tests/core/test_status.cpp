#include "core/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace plait {
namespace {

TEST(Status, IsOkUnlessGivenACode) {
  EXPECT_TRUE(Status().ok());
  const Status status(Code::unavailable, "no device \"mlx5_9\"");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::unavailable);
  EXPECT_EQ(status.message(), "no device \"mlx5_9\"");
}

TEST(Result, HoldsAValue) {
  Result<std::string> result(std::string("value"));
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.status().ok());
  EXPECT_EQ(*result, "value");
  EXPECT_EQ(result->size(), 5u);
}

TEST(Result, HoldsTheReasonForNone) {
  const Result<int> result(Code::invalid, "not a number");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::invalid);
  EXPECT_EQ(result.status().message(), "not a number");
}

TEST(Result, MovesOutWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 7);
}

}  // namespace
}  // namespace plait
