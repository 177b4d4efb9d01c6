// Weighted sums of a few rows that lie anywhere: what a token gets of its experts' results.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fused/layer.h"

namespace plait::fused {

struct WeightedRows {
  const float* const* rows = nullptr;  // each of `columns`
  const float* weights = nullptr;      // by row
  int count = 0;                       // of the rows; 0: the sum is 0
  std::int64_t columns = 0;
  float* sum = nullptr;
};

// In f32, in the order of the rows. Writes the sum and nothing else. No address needs alignment. The last bits may
// differ between processors.
using WeightedSum = void (*)(const WeightedRows& rows);

// That of this processor.
WeightedSum weighted_sum();

// Those of every instruction set that this processor has, for the tests.
struct TargetWeightedSum {
  std::string_view target;
  WeightedSum kernel;
};
std::vector<TargetWeightedSum> weighted_sums_of_all_targets();

}  // namespace plait::fused
