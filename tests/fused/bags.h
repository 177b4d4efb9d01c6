// Tables and lookups drawn from a seed, the same wherever they are drawn, and what must come of them: for tests and
// measurements of fused embeddings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fused/kernels/pooling.h"

namespace plait::fused {

struct BagShape {
  std::int64_t batch = 1, dim = 1;
  RowType type = RowType::f32;
  bool mean = false, weighted = false;
  std::int64_t longest_bag = 9;  // and bags of nothing
  std::int64_t most_rows = 50;   // of a table
  std::uint64_t seed = 1;
};

// What one rank has.
struct RankBags {
  std::vector<std::int64_t> rows;
  std::vector<std::vector<std::byte>> data;
  std::vector<std::vector<float>> scales;
  std::vector<const void*> data_list;
  std::vector<const float*> scales_list;
  std::vector<std::int64_t> indices, offsets;
  std::vector<float> weights;

  std::int64_t tables() const { return static_cast<std::int64_t>(rows.size()); }
};

RankBags make_bags(const BagShape& shape, std::int64_t tables, int rank);
// Other lookups in the same tables.
void draw_lookups(const BagShape& shape, int rank, int round, RankBags& bags);

// An element of the result, in double precision, and how far f32 may be from it: a rounding for each of n products and
// n sums, and one for the mean: (2n + 1) * 2^-24 of the sum of what they are made of.
struct ExpectedElement {
  double value = 0, bound = 0;
};
ExpectedElement expected_element(const BagShape& shape, const RankBags& bags, std::int64_t table, std::int64_t bag,
                                 std::int64_t column);

// What is wrong with the output of a rank, of all of which `all` are the bags; nothing: "". `rows`: of the batch.
struct OutputRows {
  std::int64_t begin, end;
};
std::string wrong_output(const BagShape& shape, std::span<const RankBags> all, const OutputRows& rows,
                         const float* output);

}  // namespace plait::fused
