// The kernels of products of matrices, Plait's own of every instruction set and the library's, against double
// precision: rows, columns and depths around those of a block, pitches, sums to what is there; nothing beside the
// results is written; and which library is taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fused/kernels/gemm.h"
#include "tests/fused/matrices.h"

namespace plait::fused {
namespace {

constexpr float not_written = -1.5e30f;

struct GemmCase {
  std::int64_t rows, columns, depth;
  bool adds = false;
};

std::string text_of(const GemmCase& given) {
  return std::to_string(given.rows) + " x " + std::to_string(given.depth) + " x " + std::to_string(given.columns) +
         (given.adds ? ", added" : "");
}

template <class Kernel>
std::string try_gemm(const Kernel& kernel, const GemmCase& given) {
  constexpr std::int64_t behind = 3;
  const Matrix a = draw_matrix(given.rows, given.depth, 1), b = draw_matrix(given.depth, given.columns, 2);
  const Matrix before = draw_matrix(given.rows, given.columns, 3);
  const auto padded = [](const Matrix& matrix) {
    std::vector<float> made(static_cast<std::size_t>(matrix.rows * (matrix.columns + behind)) + 1, not_written);
    for (std::int64_t row = 0; row < matrix.rows; ++row)
      std::copy_n(matrix.row(row), matrix.columns, made.data() + 1 + row * (matrix.columns + behind));
    return made;
  };
  const std::vector<float> a_memory = padded(a), b_memory = padded(b);
  std::vector<float> c_memory = padded(before);
  const std::int64_t pitch = given.columns + behind;
  kernel(GemmTile{.a = a_memory.data() + 1,
                  .a_pitch = given.depth + behind,
                  .b = b_memory.data() + 1,
                  .b_pitch = pitch,
                  .c = c_memory.data() + 1,
                  .c_pitch = pitch,
                  .rows = given.rows,
                  .columns = given.columns,
                  .depth = given.depth,
                  .adds = given.adds});
  ExpectedMatrix expected(given.rows, given.columns);
  expected.add_product(a, 0, b);
  if (given.adds) {
    Matrix one{.rows = given.columns, .columns = given.columns, .elements = {}};
    one.elements.resize(static_cast<std::size_t>(given.columns * given.columns));
    for (std::int64_t at = 0; at < given.columns; ++at)
      one.elements[static_cast<std::size_t>(at * (given.columns + 1))] = 1;
    expected.add_product(before, 0, one);
  }
  std::vector<float> results;
  for (std::int64_t row = 0; row < given.rows; ++row) {
    const float* from = c_memory.data() + 1 + row * pitch;
    results.insert(results.end(), from, from + given.columns);
    if (std::any_of(from + given.columns, from + pitch, [](float value) { return value != not_written; }))
      return "something behind row " + std::to_string(row) + " is written";
  }
  return c_memory[0] == not_written ? expected.compare(results.data(), 2 * given.depth + 1)
                                    : "something before the results is written";
}

template <class Kernel>
void expect_right(const Kernel& kernel, const std::string& name) {
  for (const std::int64_t rows : {1, 2, 5, 6, 7, 13})
    for (const std::int64_t columns : {1, 3, 4, 15, 16, 17, 33, 64, 100})
      for (const std::int64_t depth : {0, 1, 2, 17, 255, 256, 257, 600})
        for (const bool adds : {false, true}) {
          const GemmCase given{rows, columns, depth, adds};
          EXPECT_EQ(try_gemm(kernel, given), "") << name << ", " << text_of(given);
        }
}

TEST(GemmKernel, OfPlaitIsRight) {
  for (const TargetGemm& target : gemm_kernels_of_all_targets())
    expect_right(target.kernel, std::string(target.target));
}

TEST(GemmKernel, OfTheLibraryIsRight) {
  const Gemm gemm = Gemm::find("auto", 1);
  expect_right(gemm, std::string(gemm.name()));
}

TEST(GemmKernel, IsPlaitsOwnWhereThereIsNoLibrary) {
  EXPECT_EQ(Gemm::find("none", 1).name(), "own");
  EXPECT_EQ(Gemm::find("/nowhere/libopenblas.so", 1).name(), "own");
  // A library, but none of these.
  EXPECT_EQ(Gemm::find("libc.so.6", 1).name(), "own");
}

}  // namespace
}  // namespace plait::fused
