#include "tests/fused/products.h"

#include <cmath>

#include "tests/fused/elements.h"

namespace plait::fused {

RankWeights make_weights(const ProductShape& shape, RowType type, std::int64_t depth, int rank) {
  Random random(shape.seed * 1000 + static_cast<std::uint64_t>(rank));
  RankWeights made{.type = type, .depth = depth, .weights = {}, .scales = {}, .x = {}};
  const auto elements = static_cast<std::size_t>(shape.rows * depth);
  made.weights.resize(elements * bytes_of(type));
  for (std::size_t i = 0; i < elements; ++i) put_element(type, random, made.weights.data() + i * bytes_of(type));
  for (std::int64_t row = 0; row < shape.rows; ++row) made.scales.push_back(draw_float(random));
  draw_vectors(shape, rank, 0, made);
  return made;
}

void draw_vectors(const ProductShape& shape, int rank, int round, RankWeights& weights) {
  Random random(shape.seed * 1000 + static_cast<std::uint64_t>(rank) + static_cast<std::uint64_t>(round + 1) * 77777);
  weights.x.resize(static_cast<std::size_t>(weights.depth * shape.columns));
  for (float& value : weights.x) value = draw_float(random);
}

ExpectedProduct expected_product(std::span<const RankWeights> all, std::int64_t row, int column) {
  double sum = 0, magnitude = 0;
  std::int64_t depth = 0;
  for (const RankWeights& rank : all) {
    depth += rank.depth;
    for (std::int64_t at = 0; at < rank.depth; ++at) {
      double term = element_at(rank.type, rank.weights.data() +
                                              static_cast<std::size_t>(row * rank.depth + at) * bytes_of(rank.type)) *
                    static_cast<double>(rank.x[static_cast<std::size_t>(column * rank.depth + at)]);
      if (rank.type == RowType::i8) term *= static_cast<double>(rank.scales[static_cast<std::size_t>(row)]);
      sum += term;
      magnitude += std::abs(term);
    }
  }
  const double roundings = 2 * static_cast<double>(depth) + static_cast<double>(all.size()) + 1;
  return {.value = sum, .bound = magnitude * roundings * std::pow(2.0, -24)};
}

std::string wrong_product(const ProductShape& shape, std::span<const RankWeights> all, const float* output) {
  for (int column = 0; column < shape.columns; ++column)
    for (std::int64_t row = 0; row < shape.rows; ++row, ++output) {
      const ExpectedProduct expected = expected_product(all, row, column);
      if (std::abs(static_cast<double>(*output) - expected.value) <= expected.bound) continue;
      return "row " + std::to_string(row) + ", column " + std::to_string(column) + ": " + std::to_string(*output) +
             ", expected " + std::to_string(expected.value);
    }
  return {};
}

}  // namespace plait::fused
