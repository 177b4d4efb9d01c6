// Gradients drawn from a seed for the bags of all ranks, and what must become of a table that they are added to: for
// tests and measurements of fused embeddings' backward direction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/fused/bags.h"
#include "tests/fused/elements.h"

namespace plait::fused {

// Those that a rank has: of its samples those of all ranks' tables, as the output of the forward direction.
std::vector<float> make_gradients(const BagShape& shape, std::span<const RankBags> all, int rank, int round = 0);

// A table after one run, in double precision, and how far it may be from that. Each of n terms has a product, a factor
// of at most two roundings and a sum: 4 n * 2^-24 of the sum of what an element is made of; in bf16 each sum is rounded
// to 2^-9 of itself beside.
struct ExpectedTable {
  std::vector<double> before, values, bounds;  // rows x dim
};
struct WhichTable {
  int rank = 0;
  std::int64_t table = 0;
  float factor = 1;
};
// `gradients`: of all ranks, by rank. From the rows as the rank's bags have them.
ExpectedTable expected_table(const BagShape& shape, std::span<const RankBags> all,
                             std::span<const std::vector<float>> gradients, const WhichTable& which);

// What is wrong with the columns of a table's rows that were added to, or with others, which stay; nothing: "".
std::string wrong_table(const BagShape& shape, const ExpectedTable& expected, const OutputRows& columns,
                        const std::byte* table);

}  // namespace plait::fused
