// The pooling kernels of every instruction set against double precision: every type, weighted or not, sums and means,
// dims around the vectors' lengths, empty bags, addresses without alignment; nothing beside the sums is written.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "fused/kernels/pooling.h"
#include "tests/fused/bags.h"

namespace plait::fused {
namespace {

constexpr float poison = -1.25e30f;

std::string wrong_sums(const BagShape& shape, const RankBags& bags, const std::vector<float>& sums, std::size_t pitch) {
  for (std::int64_t bag = 0; bag < shape.batch; ++bag)
    for (std::size_t column = 0; column < pitch; ++column) {
      const float got = sums[static_cast<std::size_t>(bag) * pitch + column];
      const auto where = "bag " + std::to_string(bag) + ", column " + std::to_string(column);
      if (column >= static_cast<std::size_t>(shape.dim)) {
        if (got != poison) return where + " is written";
        continue;
      }
      const ExpectedElement expected = expected_element(shape, bags, 0, bag, static_cast<std::int64_t>(column));
      if (std::abs(static_cast<double>(got) - expected.value) > expected.bound)
        return where + ": " + std::to_string(got) + ", expected " + std::to_string(expected.value);
    }
  return {};
}

std::string try_kernel(PoolingKernel kernel, const BagShape& shape) {
  const RankBags bags = make_bags(shape, 1, 0);
  // A table that begins at an odd place, without a byte behind it.
  const std::size_t shift = bytes_of(shape.type);
  std::vector<std::byte> table(bags.data[0].size() + shift);
  std::memcpy(table.data() + shift, bags.data[0].data(), bags.data[0].size());
  const std::size_t pitch = static_cast<std::size_t>(shape.dim) + 3;
  std::vector<float> sums(pitch * static_cast<std::size_t>(shape.batch), poison);
  kernel({.table = table.data() + shift,
          .scales = bags.scales[0].data(),
          .columns = shape.dim,
          .indices = bags.indices.data(),
          .weights = bags.weights.data(),
          .offsets = bags.offsets.data(),
          .bags = shape.batch,
          .sums = reinterpret_cast<std::byte*>(sums.data()),
          .pitch = static_cast<std::ptrdiff_t>(pitch * sizeof(float)),
          .mean = shape.mean});
  return wrong_sums(shape, bags, sums, pitch);
}

TEST(Pooling, IsRightForEveryDim) {
  for (const RowType type : {RowType::f32, RowType::bf16, RowType::i8})
    for (const bool weighted : {false, true})
      for (const TargetPooling& target : pooling_kernels_of_all_targets(type, weighted))
        for (std::int64_t dim = 1; dim <= 300; dim += dim < 70 ? 1 : 23)
          for (const bool mean : {false, true}) {
            const BagShape shape{.batch = 7, .dim = dim, .type = type, .mean = mean, .weighted = weighted};
            EXPECT_EQ(try_kernel(target.kernel, shape), "")
                << target.target << ", " << name(type) << (weighted ? ", weighted" : "") << ", dim " << dim;
          }
}

TEST(Pooling, OfLongBagsStaysWithinItsBound) {
  for (const TargetPooling& target : pooling_kernels_of_all_targets(RowType::f32, false))
    EXPECT_EQ(try_kernel(target.kernel, {.batch = 5, .dim = 256, .longest_bag = 700, .most_rows = 900}), "")
        << target.target;
}

}  // namespace
}  // namespace plait::fused
