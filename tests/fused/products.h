// Weights and vectors drawn from a seed, the same wherever they are drawn, and what must come of their products: for
// tests and measurements of fused products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fused/kernels/gemv.h"

namespace plait::fused {

struct ProductShape {
  std::int64_t rows = 1;
  int columns = 1;
  std::uint64_t seed = 1;
};

// What one rank has.
struct RankWeights {
  RowType type = RowType::f32;
  std::int64_t depth = 0;
  std::vector<std::byte> weights;
  std::vector<float> scales;
  std::vector<float> x;
};

RankWeights make_weights(const ProductShape& shape, RowType type, std::int64_t depth, int rank);
// Other vectors for the same weights.
void draw_vectors(const ProductShape& shape, int rank, int round, RankWeights& weights);

// An element of the result, in double precision, and how far f32 may be from it. Of K products and a sum over N ranks
// in any order, each at most one rounding, and one for a scale: (2 K + N + 1) * 2^-24 of the sum of what they are made
// of, whatever the type of the weights, as all of these are f32 without a rounding.
struct ExpectedProduct {
  double value = 0, bound = 0;
};
ExpectedProduct expected_product(std::span<const RankWeights> all, std::int64_t row, int column);

// What is wrong with an output; nothing: "".
std::string wrong_product(const ProductShape& shape, std::span<const RankWeights> all, const float* output);

}  // namespace plait::fused
