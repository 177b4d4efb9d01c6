// The scattering kernels of every instruction set against double precision: both types, weighted or not, sums and
// means, dims around the vectors' lengths, columns of a row alone, rows that come twice, empty bags, addresses without
// alignment; nothing beside the rows is written.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "fused/kernels/scatter.h"
#include "tests/fused/gradients.h"

namespace plait::fused {
namespace {

// What the kernel makes of one table, of whose rows `columns` are changed.
std::string try_scatter(ScatterKernel kernel, const BagShape& shape, const OutputRows& columns) {
  const std::vector<RankBags> all = {make_bags(shape, 1, 0)};
  const RankBags& bags = all[0];
  const std::vector<std::vector<float>> gradients = {make_gradients(shape, all, 0)};
  const std::size_t bytes = bytes_of(shape.type);
  // A table that begins at an odd place, without a byte behind it.
  std::vector<std::byte> table(bags.data[0].size() + bytes);
  std::memcpy(table.data() + bytes, bags.data[0].data(), bags.data[0].size());
  constexpr float factor = -0.37f;
  kernel({.table = table.data() + bytes + static_cast<std::size_t>(columns.begin) * bytes,
          .row_elements = shape.dim,
          .columns = columns.end - columns.begin,
          .indices = bags.indices.data(),
          .weights = bags.weights.data(),
          .offsets = bags.offsets.data(),
          .bags = shape.batch,
          .gradients = reinterpret_cast<const std::byte*>(gradients[0].data() + columns.begin),
          .pitch = static_cast<std::ptrdiff_t>(shape.dim) * static_cast<std::ptrdiff_t>(sizeof(float)),
          .factor = factor,
          .mean = shape.mean});
  const ExpectedTable expected = expected_table(shape, all, gradients, {.rank = 0, .table = 0, .factor = factor});
  return wrong_table(shape, expected, columns, table.data() + bytes);
}

class ScatterKernelOf : public testing::TestWithParam<RowType> {};

TEST_P(ScatterKernelOf, IsRightForEveryDim) {
  for (const bool weighted : {false, true})
    for (const TargetScatter& target : scatter_kernels_of_all_targets(GetParam(), weighted))
      for (std::int64_t dim = 1; dim <= 300; dim += dim < 70 ? 1 : 23)
        for (const bool mean : {false, true}) {
          if (mean && weighted) continue;
          const BagShape shape{
              .batch = 7, .dim = dim, .type = GetParam(), .mean = mean, .weighted = weighted, .most_rows = 12};
          EXPECT_EQ(try_scatter(target.kernel, shape, {0, dim}), "")
              << target.target << (weighted ? ", weighted" : "") << ", dim " << dim;
        }
}

TEST_P(ScatterKernelOf, LeavesOtherColumnsAlone) {
  for (const TargetScatter& target : scatter_kernels_of_all_targets(GetParam(), false))
    for (std::int64_t begin = 0; begin < 40; begin += 3)
      for (std::int64_t end = begin + 1; end <= 77; end += 5) {
        const BagShape shape{.batch = 5, .dim = 77, .type = GetParam(), .most_rows = 6};
        EXPECT_EQ(try_scatter(target.kernel, shape, {begin, end}), "") << target.target << ", " << begin << ", " << end;
      }
}

// Small whole numbers: there is no rounding then, and nothing that is left out or counted twice goes unseen.
TEST_P(ScatterKernelOf, AddsEveryTermOnce) {
  constexpr std::int64_t dim = 45;
  const std::vector<std::int64_t> indices = {1, 1, 1, 0, 1}, offsets = {0, 3, 3, 5};
  std::vector<float> gradients;
  for (int bag = 0; bag < 3; ++bag) gradients.insert(gradients.end(), dim, static_cast<float>(bag + 1));
  for (const TargetScatter& target : scatter_kernels_of_all_targets(GetParam(), false)) {
    std::vector<std::byte> table(2 * dim * bytes_of(GetParam()));
    target.kernel({.table = table.data(),
                   .row_elements = dim,
                   .columns = dim,
                   .indices = indices.data(),
                   .offsets = offsets.data(),
                   .bags = 3,
                   .gradients = reinterpret_cast<const std::byte*>(gradients.data()),
                   .pitch = dim * sizeof(float),
                   .factor = 2});
    for (std::size_t column = 0; column < dim; ++column) {
      EXPECT_EQ(element_at(GetParam(), table.data() + column * bytes_of(GetParam())), 6) << target.target;
      EXPECT_EQ(element_at(GetParam(), table.data() + (dim + column) * bytes_of(GetParam())), 12) << target.target;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ScatterKernelOf, testing::Values(RowType::f32, RowType::bf16),
                         [](const auto& info) { return std::string(name(info.param)); });

// One row of one element for each: 1 plus what is a half, less, more, and the next half of a bf16's last place.
TEST(ScatterInBf16, RoundsToTheNearestAndTiesToEven) {
  const float half = std::ldexp(1.0f, -8), none = std::numeric_limits<float>::quiet_NaN();
  struct Sum {
    float added;
    std::uint16_t becomes;
  };
  const std::vector<Sum> sums = {{half, 0x3f80},         {half * 0.99f, 0x3f80},
                                 {half * 1.01f, 0x3f81}, {half * 3, 0x3f82},
                                 {none, 0x7fc0},         {std::numeric_limits<float>::infinity(), 0x7f80}};
  const std::int64_t index = 0, offsets[] = {0, 1};
  for (const TargetScatter& target : scatter_kernels_of_all_targets(RowType::bf16, false))
    for (const std::size_t columns : {1u, 40u})
      for (const auto& [added, becomes] : sums) {
        std::vector<std::uint16_t> row(columns, 0x3f80);
        const std::vector<float> gradient(columns, added);
        target.kernel({.table = reinterpret_cast<std::byte*>(row.data()),
                       .row_elements = static_cast<std::int64_t>(columns),
                       .columns = static_cast<std::int64_t>(columns),
                       .indices = &index,
                       .offsets = offsets,
                       .bags = 1,
                       .gradients = reinterpret_cast<const std::byte*>(gradient.data())});
        for (const std::uint16_t element : row) EXPECT_EQ(element & 0x7fffu, becomes) << target.target << ", " << added;
      }
}

}  // namespace
}  // namespace plait::fused
