#include "tests/fused/matrices.h"

#include <algorithm>
#include <cmath>

#include "tests/fused/elements.h"

namespace plait::fused {

Matrix draw_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Random random(seed);
  Matrix made{.rows = rows, .columns = columns, .elements = {}};
  made.elements.resize(static_cast<std::size_t>(rows * columns));
  for (float& element : made.elements) element = draw_float(random);
  return made;
}

ExpectedMatrix::ExpectedMatrix(std::int64_t rows, std::int64_t columns)
    : rows_(rows),
      columns_(columns),
      values_(static_cast<std::size_t>(rows * columns)),
      magnitudes_(static_cast<std::size_t>(rows * columns)) {}

void ExpectedMatrix::add_product(const Matrix& a, std::int64_t first_row, const Matrix& b) {
  for (std::int64_t row = 0; row < rows_; ++row) add_row(row, a.row(first_row + row), b);
}

void ExpectedMatrix::add_row(std::int64_t row, const float* a, const Matrix& b, double factor) {
  double* values = values_.data() + row * columns_;
  double* magnitudes = magnitudes_.data() + row * columns_;
  for (std::int64_t at = 0; at < b.rows; ++at)
    for (std::int64_t column = 0; column < columns_; ++column) {
      const double term = static_cast<double>(a[at]) * static_cast<double>(b.row(at)[column]) * factor;
      values[column] += term;
      magnitudes[column] += std::abs(term);
    }
}

std::string ExpectedMatrix::compare(const float* output, std::int64_t roundings) const {
  const double share = static_cast<double>(roundings) * std::pow(2.0, -24);
  for (std::size_t at = 0; at < values_.size(); ++at) {
    if (std::abs(static_cast<double>(output[at]) - values_[at]) <= magnitudes_[at] * share) continue;
    const std::int64_t row = static_cast<std::int64_t>(at) / columns_,
                       column = static_cast<std::int64_t>(at) % columns_;
    return "row " + std::to_string(row) + ", column " + std::to_string(column) + ": " + std::to_string(output[at]) +
           ", expected " + std::to_string(values_[at]);
  }
  return {};
}

}  // namespace plait::fused
