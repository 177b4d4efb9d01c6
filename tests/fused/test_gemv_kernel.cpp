// The kernels of rows times vectors of every instruction set against double precision: every type, 1 to 16 vectors,
// depths and rows around those of a block, addresses without alignment; nothing beside the results is written.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "fused/kernels/gemv.h"
#include "tests/fused/products.h"

namespace plait::fused {
namespace {

constexpr float not_written = -1.5e30f;

struct KernelCase {
  std::int64_t rows, depth;
  int columns;
  RowType type;
};

std::string text_of(const KernelCase& given) {
  return std::to_string(given.rows) + " x " + std::to_string(given.depth) + " " + std::string(name(given.type)) +
         ", columns " + std::to_string(given.columns);
}

// Weights, scales and vectors that begin at an odd place and end where their memory does.
template <class T>
class Shifted {
 public:
  Shifted(const std::vector<T>& from) : memory_(from.size() + 1) {
    if (!from.empty()) std::memcpy(memory_.data() + 1, from.data(), from.size() * sizeof(T));
  }
  const T* data() const { return memory_.data() + 1; }

 private:
  std::vector<T> memory_;
};

std::vector<std::byte> shifted_bytes(const std::vector<std::byte>& from, std::size_t shift) {
  std::vector<std::byte> made(from.size() + shift);
  if (!from.empty()) std::memcpy(made.data() + shift, from.data(), from.size());
  return made;
}

std::string wrong_results(const ProductShape& shape, const RankWeights& weights, const std::vector<float>& results,
                          std::size_t pitch) {
  const std::span<const RankWeights> all(&weights, 1);
  for (int column = 0; column < shape.columns; ++column)
    for (std::size_t row = 0; row < pitch; ++row) {
      const float got = results[static_cast<std::size_t>(column) * pitch + row];
      const auto where = "row " + std::to_string(row) + ", column " + std::to_string(column);
      if (row >= static_cast<std::size_t>(shape.rows)) {
        if (got != not_written) return where + " is written";
        continue;
      }
      const ExpectedProduct expected = expected_product(all, static_cast<std::int64_t>(row), column);
      if (std::abs(static_cast<double>(got) - expected.value) > expected.bound)
        return where + ": " + std::to_string(got) + ", expected " + std::to_string(expected.value);
    }
  return {};
}

std::string try_gemv(GemvKernel kernel, const KernelCase& given) {
  const ProductShape shape{.rows = given.rows, .columns = given.columns};
  const RankWeights weights = make_weights(shape, given.type, given.depth, 0);
  const std::vector<std::byte> bytes = shifted_bytes(weights.weights, bytes_of(given.type));
  const Shifted<float> scales(weights.scales), x(weights.x);
  const std::size_t pitch = static_cast<std::size_t>(given.rows) + 3;
  std::vector<float> results(pitch * static_cast<std::size_t>(given.columns), not_written);
  kernel({.weights = bytes.data() + bytes_of(given.type),
          .scales = scales.data(),
          .rows = given.rows,
          .depth = given.depth,
          .inputs = x.data(),
          .columns = given.columns,
          .results = reinterpret_cast<std::byte*>(results.data()),
          .pitch = static_cast<std::ptrdiff_t>(pitch * sizeof(float))});
  return wrong_results(shape, weights, results, pitch);
}

class GemvKernelOf : public testing::TestWithParam<RowType> {};

TEST_P(GemvKernelOf, IsRightForEveryNumberOfColumns) {
  for (const TargetGemv& target : gemv_kernels_of_all_targets(GetParam()))
    for (int columns = 1; columns <= most_columns; ++columns)
      for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 11})
        for (const std::int64_t depth : {1, 15, 16, 17, 63, 64, 129, 300}) {
          const KernelCase given{rows, depth, columns, GetParam()};
          EXPECT_EQ(try_gemv(target.kernel, given), "") << target.target << ", " << text_of(given);
        }
}

TEST_P(GemvKernelOf, IsRightForEveryDepth) {
  for (const TargetGemv& target : gemv_kernels_of_all_targets(GetParam()))
    for (std::int64_t depth = 0; depth <= 600; depth += depth < 280 ? 1 : 37)
      for (const int columns : {1, 2, 5}) {
        const KernelCase given{6, depth, columns, GetParam()};
        EXPECT_EQ(try_gemv(target.kernel, given), "") << target.target << ", " << text_of(given);
      }
}

// Rows that are longer than what is fetched ahead.
TEST_P(GemvKernelOf, IsRightForLongRows) {
  for (const TargetGemv& target : gemv_kernels_of_all_targets(GetParam()))
    for (const std::int64_t depth : {4096, 5003})
      for (const int columns : {1, 2, 3, 7}) {
        const KernelCase given{9, depth, columns, GetParam()};
        EXPECT_EQ(try_gemv(target.kernel, given), "") << target.target << ", " << text_of(given);
      }
}

// Small whole numbers: f32 has no rounding then, and nothing that is left out or counted twice goes unseen.
TEST_P(GemvKernelOf, HasEveryElementOnce) {
  constexpr std::int64_t rows = 6, depth = 777;
  constexpr int columns = 7;
  RankWeights weights = make_weights({.rows = rows, .columns = columns}, GetParam(), depth, 0);
  for (std::int64_t i = 0; i < rows * depth; ++i) {
    const float value = static_cast<float>(i % 13 - 6);
    std::byte* to = weights.weights.data() + static_cast<std::size_t>(i) * bytes_of(GetParam());
    if (GetParam() == RowType::f32) std::memcpy(to, &value, 4);
    if (GetParam() == RowType::bf16) std::memcpy(to, reinterpret_cast<const std::byte*>(&value) + 2, 2);
    if (GetParam() == RowType::i8) *to = static_cast<std::byte>(i % 13 - 6);
  }
  for (std::size_t i = 0; i < weights.x.size(); ++i) weights.x[i] = static_cast<float>(i % 17);
  std::ranges::fill(weights.scales, 1.0f);
  for (const TargetGemv& target : gemv_kernels_of_all_targets(GetParam())) {
    std::vector<float> results(rows * columns);
    target.kernel({.weights = weights.weights.data(),
                   .scales = weights.scales.data(),
                   .rows = rows,
                   .depth = depth,
                   .inputs = weights.x.data(),
                   .columns = columns,
                   .results = reinterpret_cast<std::byte*>(results.data()),
                   .pitch = rows * sizeof(float)});
    for (int column = 0; column < columns; ++column)
      for (std::int64_t row = 0; row < rows; ++row)
        EXPECT_EQ(static_cast<double>(results[static_cast<std::size_t>(column * rows + row)]),
                  expected_product({&weights, 1}, row, column).value)
            << target.target;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GemvKernelOf, testing::Values(RowType::f32, RowType::bf16, RowType::i8),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace plait::fused
