// The weighted sums of rows of every instruction set against double precision; nothing beside the sum is written.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fused/kernels/weighted_sum.h"
#include "tests/fused/matrices.h"

namespace plait::fused {
namespace {

constexpr float not_written = -1.5e30f;

std::string try_sum(WeightedSum kernel, int count, std::int64_t columns) {
  const Matrix rows = draw_matrix(count, columns, 1), weights = draw_matrix(1, count, 2);
  std::vector<const float*> list;
  for (int row = 0; row < count; ++row) list.push_back(rows.row(row));
  std::vector<float> sum(static_cast<std::size_t>(columns) + 2, not_written);
  kernel({.rows = list.data(),
          .weights = weights.elements.data(),
          .count = count,
          .columns = columns,
          .sum = sum.data() + 1});
  if (sum.front() != not_written || sum.back() != not_written) return "something beside the sum is written";
  ExpectedMatrix expected(1, columns);
  expected.add_product(weights, 0, rows);
  return expected.compare(sum.data() + 1, 2 * count);
}

TEST(WeightedSum, IsRight) {
  for (const TargetWeightedSum& target : weighted_sums_of_all_targets())
    for (const int count : {0, 1, 2, 3, 64})
      for (const std::int64_t columns : {1, 3, 4, 8, 15, 16, 17, 63, 64, 65, 200})
        EXPECT_EQ(try_sum(target.kernel, count, columns), "") << target.target << ", " << count << " x " << columns;
}

}  // namespace
}  // namespace plait::fused
