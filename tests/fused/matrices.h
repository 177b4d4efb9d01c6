// Matrices drawn from a seed, the same wherever they are drawn, and what must come of their products: for tests and
// measurements of fused products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace plait::fused {

// Row after row.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> elements;

  const float* row(std::int64_t number) const { return elements.data() + number * columns; }
};

Matrix draw_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed);

// The sum of some products, in double precision, and for each element the sum of the magnitudes of what it is made of.
class ExpectedMatrix {
 public:
  ExpectedMatrix(std::int64_t rows, std::int64_t columns);
  // Some rows of `a` times `b`.
  void add_product(const Matrix& a, std::int64_t first_row, const Matrix& b);
  void add_row(std::int64_t row, const float* a, const Matrix& b, double factor = 1);

  // What is wrong with an output of f32 that has at most so many roundings an element; nothing: "". Each is at most
  // 2^-24 of the magnitudes. Of K products and their sum in any order there are 2 K.
  std::string compare(const float* output, std::int64_t roundings) const;

 private:
  std::int64_t rows_, columns_;
  std::vector<double> values_, magnitudes_;
};

}  // namespace plait::fused
